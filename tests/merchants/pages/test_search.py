"""The field on the first page finds the account's orders and requests, and nobody else's."""

from decimal import Decimal
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.sessions.models import Session
from django.test import Client

from accounts.models import RequestRecord
from core.backoffice.search import find_for_member
from merchants.models import Membership, Role
from orders.models import Order
from tests.factories import (
    Merchant,
    buy_topup,
    make_account,
    make_client,
    make_merchant,
    make_product,
    make_record,
)
from tests.merchants.people import browser_of, make_member
from tests.operators.back_office import make_case
from wallets.services import adjust, deposit, pay_out
from wallets.transfers import announce_transfer

pytestmark = pytest.mark.django_db

PATH = "/merchant/search/"


def found(browser: Client, text: str) -> list[str]:
    """The references of the orders, and the request ids of the requests."""
    shown = browser.post(PATH, {"q": text}, follow=True).context
    requests = [str(row.request_id) for row, _, _ in shown["requests"]]
    return [order.reference for order in shown["orders"]] + requests


def test_orders_and_requests_are_found_by_what_names_them() -> None:
    client = make_client(make_account())
    reference = buy_topup(Merchant(client), player_id="p-77")
    bought = make_record(client, order_reference=reference, status=201, code="", reason="")
    refused = make_record(client, idempotency_key="shop-4712")
    stranger = browser_of(make_member())
    viewer = browser_of(make_member(client.account, Role.VIEWER))

    assert found(viewer, "p-77") == [reference]
    assert found(viewer, reference[:-1]) == [reference]
    assert found(viewer, str(bought.request_id)) == [reference, str(bought.request_id)]
    assert found(viewer, "shop-4712") == found(viewer, str(refused.request_id))
    assert found(viewer, "shop-4712") == [str(refused.request_id)]
    for text in ("p-77", reference, "shop-4712", str(refused.request_id)):
        assert found(stranger, text) == []


def test_a_whole_order_reference_leads_to_its_order_and_only_in_its_own_account() -> None:
    client = make_client(make_account())
    reference = buy_topup(Merchant(client))
    viewer, stranger = (
        browser_of(make_member(client.account, Role.VIEWER)),
        browser_of(make_member()),
    )

    for text in (reference, f" {reference.lower()} "):
        assert viewer.post(PATH, {"q": text})["Location"] == f"/merchant/orders/{reference}/"
        assert stranger.post(PATH, {"q": text})["Location"].startswith(f"{PATH}?search=")


def test_each_finder_keeps_to_the_account() -> None:
    """Both accounts have the same player and the same idempotency key."""
    rows = []
    for client in (make_client(make_account()), make_client(make_account())):
        reference = buy_topup(Merchant(client), player_id="p-77")
        record = make_record(client, order_reference=reference, idempotency_key="shop-4712")
        rows.append((client.account, Order.objects.get(reference=reference), record))

    for account, order, record in rows:
        assert account is not None
        for text in ("p-77", "shop-4712", *(order.reference for _, order, _ in rows)):
            mine = text in ("p-77", "shop-4712", order.reference)
            assert find_for_member(text, account=account, limit=50) == {
                Order: [order] if mine else [],
                RequestRecord: [record] if mine and text != "p-77" else [],
            }


def test_payments_are_found_by_their_bank_reference() -> None:
    account, other = make_account(balance="0"), make_account(balance="0")
    deposit(
        account=account, amount=Decimal(5), booking_reference="TR 4743-1", reason="Thank you.",
        actor="test",
    )  # fmt: skip
    adjust(account=account, amount=Decimal(1), booking_reference="ours-1", actor="test", note="")
    owner = make_member(account, Role.OWNER)
    for text in ("INV-2026-118", "other-1"):
        announce_transfer(account=account, amount=Decimal(7), reference=text, actor=owner.user)
    browser, stranger = browser_of(owner.user), browser_of(make_member(other).user)

    page = browser.post(PATH, {"q": "tr4743 1"}, follow=True).content.decode()
    assert 'Thank you. · <span class="mono">TR 4743-1</span>' in page
    announced = browser.post(PATH, {"q": "inv 2026 118"}, follow=True).content.decode()
    assert "INV-2026-118</td>" in announced
    assert "other-1" not in announced
    for reader, text in ((stranger, "tr4743 1"), (stranger, "INV-2026-118"), (browser, "ours-1")):
        answer = reader.post(PATH, {"q": text}, follow=True)
        assert answer.context["entries"] == []
        assert list(answer.context["transfers"]) == []
        assert "No order, request or payment of this account matches" in answer.content.decode()


def test_a_part_of_a_bank_reference_finds_the_newest_announced_transfers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    owner, stranger = make_member(make_account()), make_member()
    for text in ("INV-2026-117", "INV-2026-118", "a_b%c", "7"):
        announce_transfer(
            account=owner.account, amount=Decimal(7), reference=text, actor=owner.user
        )

    def references(text: str, member: Membership = owner) -> list[str]:
        answer = browser_of(member).post(PATH, {"q": text}, follow=True)
        return [one.reference for one in answer.context["transfers"]]

    assert references("inv 2026") == ["INV-2026-118", "INV-2026-117"]
    assert references("abc") == ["a_b%c"]
    assert references("7") == ["7"]
    assert references("118") == references("26-118") == ["INV-2026-118"]
    for text in ("in", "18", "2026-119", "%", "_", "---"):
        assert references(text) == [], text
    assert references("INV", stranger) == []
    monkeypatch.setattr("wallets.selectors.SEARCHED", 3)
    assert references("inv") == ["INV-2026-118"]


def test_a_part_of_a_bank_reference_finds_the_deposits_of_the_account(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    account, other = make_account(balance="0"), make_account(balance="0")
    for number, whose in enumerate((account, other, account, other)):
        deposit(
            account=whose, amount=Decimal(5), booking_reference=f"RF18 BANK-778{number}", actor="a"
        )
    pay_out(account=account, amount=Decimal(1), booking_reference="RF18 BANK-9", actor="a")

    def references(text: str) -> list[str]:
        answer = browser_of(make_member(account).user).post(PATH, {"q": text}, follow=True)
        return [entry.bank_reference for entry, _ in answer.context["entries"]]

    assert references("rf18") == ["RF18 BANK-7782", "RF18 BANK-7780"]
    assert references("BANK-7780") == ["RF18 BANK-7780"]
    assert references("rf18bank 7782") == ["RF18 BANK-7782"]
    assert references("rf18bank9") == ["RF18 BANK-9"]
    assert references("7781") == references("82") == references("opening") == []
    monkeypatch.setattr("wallets.selectors.SEARCHED", 1)
    assert references("rf18") == ["RF18 BANK-7782"]
    assert references("RF18 BANK-7780") == ["RF18 BANK-7780"]


def test_the_title_of_a_case_leads_to_it_and_only_in_its_own_account() -> None:
    merchant = make_merchant()
    bought = merchant.buy(product_id=make_product(codes=1).pk, quantity=1).json()["data"]
    case = make_case(bought["reference"])
    browser = browser_of(make_member(merchant.account).user)
    german = {"Accept-Language": "de"}

    page = f"/merchant/cases/{case.pk}/"
    assert browser.post(PATH, {"q": f"case  {case.pk}"})["Location"] == page
    assert browser.post(PATH, {"q": f"Fall {case.pk}"}, headers=german)["Location"] == page
    stranger = browser_of(make_member().user)
    for reader, text in ((stranger, f"Case {case.pk}"), (browser, "Case 999"), (browser, "Case")):
        assert reader.post(PATH, {"q": text})["Location"].startswith(PATH), text


@pytest.mark.parametrize("odd", ["\x00", "x" * 500, "'", "\ud800", " "])
def test_odd_texts_find_nothing(odd: str) -> None:
    browser = browser_of(make_member())
    answer = browser.post(PATH, {"q": odd.encode("utf-8", "surrogatepass")}, follow=True)
    assert answer.status_code == 200
    assert answer.context["orders"] == answer.context["requests"] == []


def test_an_address_searches_nothing() -> None:
    client = make_client(make_account())
    make_record(client)
    answer = browser_of(make_member(client.account)).get(PATH, {"q": "shop-4711"})
    assert answer.context["requests"] == []
    assert "shop-4711" not in answer.content.decode()


def test_a_search_says_when_it_leaves_out_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("merchants.frame.paging.MOST_FOUND", 1)
    client = make_client(make_account())
    buy_topup(Merchant(client), player_id="p-77")
    viewer = browser_of(make_member(client.account, Role.VIEWER))

    assert (
        "Only the newest matches"
        not in viewer.post(PATH, {"q": "p-77"}, follow=True).content.decode()
    )
    newest = buy_topup(Merchant(client), player_id="p-77")
    answer = viewer.post(PATH, {"q": "p-77"}, follow=True)

    assert [order.reference for order in answer.context["orders"]] == [newest]
    assert "Only the newest matches are shown" in answer.content.decode()


@pytest.mark.parametrize("kind", ["payments", "transfers"])
def test_a_search_says_when_it_leaves_out_payments(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("merchants.frame.paging.MOST_FOUND", 1)
    owner = make_member(make_account())
    pages = []
    for reference in ("INV-1", "INV-2"):
        if kind == "payments":
            deposit(
                account=owner.account, amount=Decimal(5), booking_reference=reference, actor="a"
            )
        else:
            announce_transfer(
                account=owner.account, amount=Decimal(5), reference=reference, actor=owner.user
            )
        answer = browser_of(owner).post(PATH, {"q": "inv"}, follow=True)
        pages.append("Only the newest payments" in answer.content.decode())
        assert len([*answer.context["entries"], *answer.context["transfers"]]) == 1
    assert pages == [False, True]


@pytest.mark.parametrize("page", [PATH, "/merchant/orders/", "/merchant/requests/"])
def test_a_result_has_an_address_that_holds_its_text_encrypted(page: str) -> None:
    browser = browser_of(make_member(role=Role.VIEWER))
    session = Session.objects.get(pk=browser.session.session_key)

    sent = browser.post(page, {"q": " shop-4711 ", "client": ""})
    address = sent["Location"]

    assert sent.status_code == 302
    assert (urlsplit(address).path, list(parse_qs(urlsplit(address).query))) == (page, ["search"])
    for _ in range(2):  # Back, reload and a second tab
        assert 'value="shop-4711"' in browser.get(address).content.decode()
    assert "shop-4711" not in browser.get(page).content.decode()
    assert Session.objects.get(pk=session.pk).session_data == session.session_data


@pytest.mark.parametrize("page", [PATH, "/merchant/orders/", "/merchant/requests/"])
def test_only_the_session_that_searched_reads_the_text(page: str) -> None:
    member = make_member()
    browser = browser_of(member)
    address = browser.post(page, {"q": "shop-4711"})["Location"]
    browser.post("/merchant/sign-out/")

    for reader in (browser_of(member), browser_of(make_member(member.account))):
        for changed in (address, address[:-4], f"{address}ä"):
            shown = reader.get(changed).content.decode()
            assert "shop-4711" not in shown
            assert "The text of this search can no longer be read. Type it again." in shown
    assert "/sign-in/" in browser.get(address)["Location"]


def test_a_search_keeps_its_other_filters_in_the_address() -> None:
    client = make_client(make_account())
    reference = buy_topup(Merchant(client), player_id="p-77")
    browser = browser_of(make_member(client.account))

    for status, expected in (("pending", [reference]), ("failed", [])):
        answer = browser.post("/merchant/orders/", {"q": "p-77", "status": status}, follow=True)
        assert f"?status={status}&search=" in answer.redirect_chain[0][0]
        assert [order.reference for order in answer.context["orders"]] == expected
