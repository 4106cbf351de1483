"""Members see why a request of their account was refused, and nobody else's requests."""

import html

import pytest

from accounts.models import RequestRecord
from merchants.models import Role
from tests.factories import make_account, make_client, make_record
from tests.merchants.people import browser_of, make_member

pytestmark = pytest.mark.django_db

PATH = "/merchant/requests/"


def test_a_viewer_reads_why_a_purchase_was_refused_and_what_to_do() -> None:
    client = make_client(make_account())
    record = make_record(client)
    page = browser_of(make_member(client.account, Role.VIEWER)).get(PATH).content.decode()

    for text in (str(record.request_id), "shop-4711", "insufficient_balance", client.name):
        assert text in page
    assert "Add money to the wallet" in html.unescape(page)


def test_a_request_is_found_by_its_id_order_and_key_and_only_in_its_own_account() -> None:
    client, other = make_client(make_account()), make_client(make_account())
    bought = make_record(client, status=201, code="", reason="", order_reference="ABC123")
    refused = make_record(client, idempotency_key="shop-4712")
    theirs = make_record(other, idempotency_key="shop-4712", order_reference="ABC124")
    browser = browser_of(make_member(client.account))

    def found(**query: str) -> list[RequestRecord]:
        answer = browser.post(PATH, query, follow=True)
        return [row for row, _ in answer.context["requests"]]

    assert found() == [refused, bought]
    assert found(q=str(bought.request_id)) == found(q="abc123") == [bought]
    assert found(q="shop-4712") == found(code="refused") == [refused]
    assert found(q=str(theirs.request_id)) == found(q="ABC124") == []
    assert found(client=str(client.pk), code="order_refused") == [refused]
    assert browser.get(PATH, {"client": str(other.pk)}).context["requests"] == []


@pytest.mark.parametrize("odd", ["\x00", "x" * 500, "'", "\ud800"])
def test_odd_searches_find_nothing(odd: str) -> None:
    answer = browser_of(make_member()).post(PATH, {"q": odd.encode("utf-8", "surrogatepass")})
    assert answer.status_code == 200
    assert not answer.context["requests"]


def test_what_is_searched_for_stays_out_of_the_address_and_a_filter_goes_into_it() -> None:
    client = make_client(make_account())
    make_record(client)
    browser = browser_of(make_member(client.account))

    assert len(browser.get(PATH, {"q": "nothing like it"}).context["requests"]) == 1
    answer = browser.post(PATH, {"q": "", "code": "refused", "client": ""})
    assert answer.headers["Location"] == f"{PATH}?code=refused"


def test_a_replay_says_that_it_made_no_new_order() -> None:
    client = make_client(make_account())
    make_record(client, status=201, code="", reason="", order_reference="ABC123")
    browser = browser_of(make_member(client.account))
    assert "no new order" not in browser.get(PATH).content.decode()

    make_record(client, status=201, code="", reason="")
    assert browser.get(PATH).content.decode().count("no new order") == 1
