"""Staff find out why a request was refused from any of its values."""

from typing import Any

import pytest

from accounts.models import RequestRecord
from core.api.errors import ErrorCode, RefusalReason
from operators.frame import long_lists
from tests.factories import make_account, make_client, make_record
from tests.operators.back_office import make_staff, signed_in

pytestmark = pytest.mark.django_db

PATH = "/admin/accounts/requestrecord/"


def found(**query: Any) -> set[RequestRecord]:
    answer = signed_in().get(PATH, query)
    assert answer.status_code == 200
    return set(answer.context["cl"].result_list)


REFERENCE = "01JABCDEFGHJKMNPQRSTVWXYZ0"


def test_a_request_is_found_by_its_values_its_account_and_its_answer() -> None:
    client, other = make_client(make_account()), make_client(make_account())
    bought = make_record(client, status=201, code="", reason="", order_reference=REFERENCE)
    refused = make_record(other, idempotency_key="shop-4712")

    assert found(q=str(bought.request_id)) == found(q=REFERENCE) == {bought}
    assert found(q="shop-4712") == found(code="refused") == {refused}
    assert found(account__id__exact=client.account_id) == {bought}
    assert found(code="order_refused") == {refused}
    assert found(q="unknown") == set()


def test_the_page_of_a_request_links_to_its_client_account_and_order() -> None:
    client = make_client(make_account())
    record = make_record(client, status=201, code="", reason="", order_reference="ABC123")
    page = signed_in().get(f"{PATH}{record.pk}/change/").content.decode()

    for part in (f"/admin/accounts/apiclient/{client.pk}/", "q=ABC123", str(record.request_id)):
        assert part in page


def test_the_page_of_a_refused_request_says_what_its_answer_means() -> None:
    client = make_client(make_account())
    low = make_record(client)
    unknown = make_record(client, status=404, code="order_not_found", reason="")

    def said(record: RequestRecord) -> str:
        return signed_in().get(f"{PATH}{record.pk}/change/").content.decode()

    assert RefusalReason.INSUFFICIENT_BALANCE.message in said(low)
    assert ErrorCode.ORDER_NOT_FOUND.default_message in said(unknown)


def test_only_a_search_or_an_account_reads_older_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_lists, "LOOKED_AT", 2)
    client = make_client(make_account())
    old, *newest = (make_record(client, idempotency_key=f"key-{number}") for number in range(3))

    assert found() == {old, *newest}
    assert found(code="refused") == set(newest)
    assert found(q="key-0") == {old}
    assert found(account__id__exact=client.account_id) == {old, *newest}
    signed_in().get(f"{PATH}{old.pk}/change/")


def test_staff_without_the_permission_see_no_requests() -> None:
    assert signed_in(make_staff("orders.view_order")).get(PATH).status_code == 403
