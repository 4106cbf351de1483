"""Finance credits an order from its page: with a note, a confirmation, and once per form."""

from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from cases.services import replace_code_of_case
from catalogue.stock.codes import open_code
from core.backoffice.staff_roles import StaffRole
from operators.upkeep.reconcile import reconcile
from orders.models import Order
from tests.cases.complaints import make_complaint
from tests.factories import (
    Merchant,
    buy_topup,
    make_operator,
    make_product,
    make_topup_product,
    move_now,
)
from tests.operators.back_office import (
    browser_with,
    make_staff,
    signed_in,
    staff_with,
    text_of,
    url,
)
from topups.fulfilment.transitions import Move
from wallets.models import LedgerEntry

pytestmark = pytest.mark.django_db(transaction=True)

MAY = ("orders.view_order", "wallets.move_money")


def failed_order(merchant: Merchant) -> Order:
    reference = buy_topup(merchant, make_topup_product(price="4.99"))
    senior = make_operator(senior=True)
    for move in (Move.CLAIM, Move.REVIEW, Move.REJECT_UNREFUNDED):
        move_now(reference=reference, move=move, operator=senior)
    return Order.objects.get(reference=reference)


def asked(**changes: Any) -> dict[str, Any]:
    return {"amount": "4.99", "note": "Not delivered", "form_id": str(uuid4()), **changes}


def send(browser: Client, order: Order, data: dict[str, Any]) -> Any:
    return browser.post(f"/admin/orders/order/{order.pk}/credit/", data, follow=True)


def messages(answer: Any) -> str:
    return " ".join(map(str, answer.context["messages"]))


def test_a_failed_order_is_credited_after_a_confirmation(merchant: Merchant) -> None:
    order = failed_order(merchant)
    staff = make_staff(*MAY)
    browser, form = signed_in(staff), asked()

    first = browser.get(f"/admin/orders/order/{order.pk}/credit/").content.decode()
    assert "Left to credit: 4.99 USD" in first
    assert 'value="4.99"' in first
    question = send(browser, order, form).content.decode()
    assert f"Credit order {order.reference}?" in question
    assert "Not delivered" in question
    assert not LedgerEntry.objects.filter(kind="credit").exists()

    told = send(browser, order, {**form, "confirmed": "1"})

    entry = LedgerEntry.objects.get(kind="credit")
    assert (entry.order_reference, entry.note, entry.actor) == (
        order.reference,
        "Not delivered",
        f"admin:{staff.username}",
    )
    assert "Credit of 4.99 USD booked for" in messages(told)
    assert "The balance is now 100.00 USD" in messages(told)
    assert merchant.get(f"/orders/{order.reference}").json()["data"]["refunded"] is True
    assert reconcile()["findings"] == []


def test_the_same_form_sent_twice_credits_once(merchant: Merchant) -> None:
    order = failed_order(merchant)
    browser, form = signed_in(make_staff(*MAY)), asked(confirmed="1")

    send(browser, order, form)
    again = send(browser, order, form)

    assert "was booked already" in messages(again)
    assert LedgerEntry.objects.filter(kind="credit").count() == 1


def test_more_than_is_left_is_refused(merchant: Merchant) -> None:
    order = failed_order(merchant)
    browser = signed_in(make_staff(*MAY))
    send(browser, order, asked(amount="4.00", confirmed="1"))

    for amount, words in (("1.00", "Only 0.99 USD is left to credit."), ("0.999", "2 decimals")):
        form = send(browser, order, asked(amount=amount)).content.decode()
        assert words in form
        assert "Not delivered" in form
    told = send(browser, order, asked(amount="1.00", confirmed="1"))

    assert "more than it cost" in messages(told)
    assert LedgerEntry.objects.get(kind="credit").amount == 4


@pytest.mark.parametrize(
    "change",
    [
        {"amount": "0"},
        {"amount": "-1"},
        {"amount": "NaN"},
        {"amount": ""},
        {"note": ""},
        {"note": "x" * 401},
        {"form_id": "x"},
    ],
)
def test_a_mistake_is_explained_and_books_nothing(
    merchant: Merchant, change: dict[str, str]
) -> None:
    order = failed_order(merchant)

    answer = send(signed_in(make_staff(*MAY)), order, asked(confirmed="1", **change))

    assert answer.status_code == 200
    assert not LedgerEntry.objects.filter(kind="credit").exists()


@pytest.mark.parametrize("permissions", [["orders.view_order"], ["wallets.move_money"], []])
def test_crediting_needs_both_permissions(merchant: Merchant, permissions: list[str]) -> None:
    order = failed_order(merchant)

    answer = send(signed_in(make_staff(*permissions)), order, asked(confirmed="1"))

    assert answer.status_code == 403
    assert not LedgerEntry.objects.filter(kind="credit").exists()


def test_the_button_is_shown_while_something_is_left(merchant: Merchant) -> None:
    order = failed_order(merchant)
    product = make_product(price="9.99", codes=1)
    reference = merchant.buy(product_id=product.pk, quantity=1).json()["data"]["reference"]
    codes = Order.objects.get(reference=reference)
    finance, reader = signed_in(make_staff(*MAY)), signed_in(make_staff("orders.view_order"))

    def offers(browser: Client, order: Order) -> bool:
        page = browser.get(f"/admin/orders/order/{order.pk}/change/").content.decode()
        return f"/admin/orders/order/{order.pk}/credit/" in page

    assert (offers(finance, order), offers(finance, codes)) == (True, True)
    assert (offers(reader, order), offers(reader, codes)) == (False, False)
    send(finance, order, asked(confirmed="1"))
    assert offers(finance, order) is False


def test_the_page_says_what_can_be_done_about_a_complaint(merchant: Merchant) -> None:
    product = make_product(price="10", codes=2)
    bought = merchant.buy(product_id=product.pk, quantity=2).json()["data"]["reference"]
    voucher, failed = Order.objects.get(reference=bought), failed_order(merchant)
    finance, support = (
        signed_in(make_staff(*MAY)),
        signed_in(make_staff("orders.view_order", "cases.answer_case", "cases.view_case")),
    )

    def remedies(browser: Client, order: Order) -> dict[str, tuple[str, list[str]]]:
        found = browser.get(f"/admin/orders/order/{order.pk}/change/").context["remedies"]
        return {one["name"]: (one["text"], [name for name, _ in one["steps"]]) for one in found}

    of_finance = remedies(finance, voucher)
    assert of_finance["Replace a code"][0].startswith("No money moves")
    assert of_finance["Refund"][0].startswith("Not possible for codes")
    assert of_finance["Credit"][1] == ["Credit 20.00 USD…", "Credit one code, 10.00 USD…"]
    form = finance.get(f"/admin/orders/order/{voucher.pk}/credit/?amount=10.00").content.decode()
    assert 'value="10.00"' in form
    of_support = remedies(support, voucher)
    assert of_support["Replace a code"][1] == ["Open a case…"]
    assert "Propose it in a case" in of_support["Credit"][0]
    assert remedies(finance, failed) == {
        "Refund": ("Not possible: this top-up failed without a refund. Credit it.", []),
        "Credit": (
            f"Pays up to 4.99 USD back to the wallet of {merchant.account}.",
            ["Credit 4.99 USD…"],
        ),
    }
    send(finance, failed, {**asked(), "confirmed": "1"})
    assert remedies(finance, failed)["Credit"][0] == "Not possible: the whole price was paid back."
    assert remedies(finance, failed)["Refund"][0] == "Not necessary: the price was credited."
    page = support.get(f"/admin/orders/order/{failed.pk}/change/").content.decode()
    assert "Top-up credited in full" in page
    assert "Top-up refunded" not in page
    assert "4.99 USD. Not delivered" in page


def test_a_credit_whose_note_has_a_code_of_the_order_is_refused() -> None:
    """The note is in the address of the confirmation, and in the ledger for ever."""
    complaint, browser = make_complaint(), signed_in(make_staff(*MAY))
    sold = complaint.codes[0]
    note = f"Code {open_code(sold.sealed, sold.digest).code} was used"

    answer = send(browser, complaint.order, asked(amount="1.00", note=note))

    assert "This note has a code of the order in it." in answer.content.decode()
    assert answer.redirect_chain == []


def test_an_order_with_nothing_to_give_offers_no_case() -> None:
    complaint = make_complaint(quantity=1)
    order = complaint.order
    support, finance = browser_with(StaffRole.SUPPORT), staff_with(StaffRole.FINANCE)

    def replacing(one: Order) -> tuple[str, int]:
        answer = support.get(url(one))
        remedy = next(
            each for each in answer.context["remedies"] if each["name"] == "Replace a code"
        )
        return remedy["text"], answer.content.decode().count(url(one, "open_case"))

    assert replacing(order)[1] == 2
    case = complaint.open()
    # The other link of the two is that of the credit.
    assert replacing(order) == ("Each code has a case already.", 2)
    replacement = replace_code_of_case(case=case, version=1, actor=finance)

    gone = "Not possible: each code was replaced or credited."
    assert replacing(order) == (gone, 0)
    assert "Replace the code" not in text_of(support.get(url(order)))
    assert replacing(replacement)[1] == 2
    paid_back = make_complaint(quantity=1).order
    send(signed_in(make_staff(*MAY)), paid_back, {**asked(amount="10.00"), "confirmed": "1"})
    assert replacing(paid_back) == ("Not possible: the whole price was paid back.", 0)
