"""Members see why a request of their account was refused, and nobody else's requests."""

import html
from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from accounts.models import RequestRecord
from merchants.api_access import request_pages
from merchants.models import Role
from merchants.templatetags.merchants_words import breakable
from orders.spending_limits import Limits, set_spending_limits
from tests.factories import make_account, make_client, make_merchant, make_product, make_record
from tests.merchants.people import browser_of, make_member

pytestmark = pytest.mark.django_db

PATH = "/merchant/requests/"


def test_a_viewer_reads_why_a_purchase_was_refused_and_what_to_do() -> None:
    client = make_client(make_account())
    record = make_record(client)
    page = browser_of(make_member(client.account, Role.VIEWER)).get(PATH).content.decode()

    for text in (
        str(record.request_id),
        "shop-4711",
        breakable("insufficient_balance"),
        client.name,
    ):
        assert text in page
    assert "Add money to the wallet, or ask an owner to raise the limit." in html.unescape(page)
    assert "See the spending limit" not in page


def test_a_refusal_leads_to_the_spending_limit_of_its_client() -> None:
    client = make_client(make_account())
    set_spending_limits(client=client, limits=Limits(per_day=Decimal(5)))
    make_record(client)
    page = browser_of(make_member(client.account)).get(PATH).content.decode()
    assert f'<a href="/merchant/clients/{client.pk}/">See the spending limit</a>' in page


def test_a_refusal_for_stock_says_that_a_variation_may_be_missing() -> None:
    client = make_client(make_account())
    make_record(client, reason="insufficient_stock")
    page = browser_of(make_member(client.account)).get(PATH).content.decode()
    assert "If the product has variations, send the variation_id" in page


REFERENCE, THEIRS = (f"01JABCDEFGHJKMNPQRSTVWXY{last:02}" for last in (1, 2))


def test_a_request_is_found_by_its_id_order_and_key_and_only_in_its_own_account() -> None:
    client, other = make_client(make_account()), make_client(make_account())
    bought = make_record(client, status=201, code="", reason="", order_reference=REFERENCE)
    refused = make_record(client, idempotency_key="shop-4712")
    theirs = make_record(other, idempotency_key="shop-4712", order_reference=THEIRS)
    browser = browser_of(make_member(client.account))

    def found(**query: str) -> list[RequestRecord]:
        answer = browser.post(PATH, query, follow=True)
        return [row for row, _, _ in answer.context["requests"]]

    assert found() == [refused, bought]
    assert found(q=str(bought.request_id)) == found(q=REFERENCE.lower()) == [bought]
    assert found(q="shop-4712") == found(code="refused") == [refused]
    assert found(q=str(theirs.request_id)) == found(q=THEIRS) == []
    assert found(client=str(client.pk), code="order_refused") == [refused]
    assert browser.get(PATH, {"client": str(other.pk)}).context["requests"] == []


def test_many_requests_have_no_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    client = make_client(make_account())
    for _ in range(2):
        make_record(client)
    monkeypatch.setattr("merchants.frame.paging.MOST_COUNTED", 1)
    page = browser_of(make_member(client.account)).get("/merchant/requests/").content.decode()
    assert "Total: more than 1.</p>" in page


def test_a_filter_looks_at_the_newest_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_pages, "FILTERED", 2)
    client = make_client(make_account())
    _, refused = make_record(client), make_record(client)
    make_record(client, status=201, code="", reason="")
    browser = browser_of(make_member(client.account))

    page = browser.get(PATH, {"code": "refused"})
    nothing = browser.get(PATH, {"code": "rate_limited"}).content.decode()

    assert [row for row, _, _ in page.context["requests"]] == [refused]
    assert "A filter looks at the newest 2 requests." in page.content.decode()
    assert "None of the newest 2 requests matches this filter." in nothing


@pytest.mark.parametrize("odd", ["\x00", "x" * 500, "'", "\ud800"])
def test_odd_searches_find_nothing(odd: str) -> None:
    answer = browser_of(make_member()).post(
        PATH, {"q": odd.encode("utf-8", "surrogatepass")}, follow=True
    )
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


def test_a_replay_leads_to_the_order_whose_response_it_got() -> None:
    merchant, product = make_merchant(balance="10"), make_product(codes=1)
    bought = merchant.buy("shop-1", product_id=product.pk, quantity=1).json()["data"]
    make_record(merchant.client, status=201, code="", reason="", idempotency_key="shop-1")
    page = browser_of(make_member(merchant.client.account)).get(PATH).content.decode()

    assert f"/merchant/orders/{bought['reference']}/" in page


def test_a_reused_key_leads_to_the_order_that_holds_it_and_only_of_the_same_client() -> None:
    merchant, product = make_merchant(balance="10"), make_product(codes=2)
    account = merchant.client.account
    neighbour, stranger = make_client(account), make_client(make_account())
    bought = merchant.buy("shop-1", product_id=product.pk, quantity=1).json()["data"]
    for client in (neighbour, stranger):
        make_record(client, code="idempotency_key_reused", reason="", idempotency_key="shop-1")
    for owner in (account, stranger.account):
        assert bought["reference"] not in browser_of(make_member(owner)).get(PATH).content.decode()

    assert merchant.buy("shop-1", product_id=product.pk, quantity=2).status_code == 409
    make_record(merchant.client, code="idempotency_key_reused", reason="", idempotency_key="shop-1")
    page = browser_of(make_member(account)).get(PATH).content.decode()
    assert page.count(f"/merchant/orders/{bought['reference']}/") == 1
    assert "This order holds the key" in page


def test_a_replay_does_not_lead_to_a_later_purchase_with_a_forgotten_key() -> None:
    merchant, product = make_merchant(balance="10"), make_product(codes=1)
    replay = make_record(merchant.client, status=201, code="", reason="", idempotency_key="shop-1")
    RequestRecord.objects.filter(pk=replay.pk).update(at=timezone.now() - timedelta(days=8))
    bought = merchant.buy("shop-1", product_id=product.pk, quantity=1).json()["data"]
    page = browser_of(make_member(merchant.client.account)).get(PATH).content.decode()

    assert bought["reference"] not in page


def test_a_long_word_may_break_between_its_parts() -> None:
    assert breakable("order_refused") == "order_<wbr>refused"
    assert breakable("/orders/{error.reference}. Then wait.") == (
        "/<wbr>orders/{error.<wbr>reference}. Then wait."
    )
    assert breakable("<b>_x") == "&lt;b&gt;_<wbr>x"
