"""Bookings in the back office need the permission and a confirmation, and are made once."""

from decimal import Decimal
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from django.test import Client

from core.backoffice.staff_roles import StaffRole
from operators.upkeep.reconcile import reconcile
from tests.commands import run
from tests.factories import make_account
from tests.operators.back_office import make_staff, signed_in, staff_with, url
from tests.operators.pages.test_pages_are_audited import hidden
from wallets.models import BookingLimit, LedgerEntry, Wallet
from wallets.services import deposit, reverse
from wallets.transfers import announce_transfer

pytestmark = pytest.mark.django_db(transaction=True)

MAY = ("wallets.view_wallet", "wallets.move_money")


@pytest.fixture
def wallet() -> Wallet:
    return Wallet.objects.get(account=make_account(balance="100.00"))


def asked(**changes: Any) -> dict[str, Any]:
    return {
        "kind": "deposit",
        "amount": "25.50",
        "reason": "bank 4711",
        "reference": f"transfer {uuid4().hex}",
        "form_id": str(uuid4()),
        **changes,
    }


def send(browser: Client, wallet: Wallet, data: dict[str, Any]) -> Any:
    return browser.post(f"/admin/wallets/wallet/{wallet.pk}/book/", data, follow=True)


def balance(wallet: Wallet) -> Decimal:
    wallet.refresh_from_db()
    return wallet.balance


def test_a_deposit_is_booked_after_a_confirmation(wallet: Wallet) -> None:
    staff = make_staff(*MAY)
    browser, form = signed_in(staff), asked()

    question = send(browser, wallet, form).content.decode()
    assert "100.00 USD" in question
    assert "125.50 USD" in question
    assert balance(wallet) == 100

    send(browser, wallet, {**form, "confirmed": "1"})
    entry = LedgerEntry.objects.get(note="bank 4711")
    assert balance(wallet) == Decimal("125.50")
    assert (entry.kind, entry.actor) == ("deposit", f"admin:{staff.username}")
    assert reconcile()["ok"] is True


def test_the_confirmation_in_german_books_the_amount_that_it_shows(wallet: Wallet) -> None:
    browser = signed_in(make_staff(*MAY))
    browser.defaults["HTTP_ACCEPT_LANGUAGE"] = "de"
    question = send(browser, wallet, asked())
    assert "125,50 USD" in question.content.decode()

    send(browser, wallet, hidden(question))

    assert balance(wallet) == Decimal("125.50")


def test_going_back_after_a_booking_shows_its_result(wallet: Wallet) -> None:
    browser, form = signed_in(make_staff(*MAY)), asked()
    [(question, _)] = send(browser, wallet, form).redirect_chain
    assert "Book this deposit" in browser.get(question).content.decode()

    [(result, _)] = send(browser, wallet, {**form, "confirmed": "1"}).redirect_chain
    back = browser.get(question, follow=True)

    assert back.redirect_chain == [(result, 302)]
    assert "This booking was already made" in " ".join(map(str, back.context["messages"]))
    assert balance(wallet) == Decimal("125.50")


def test_the_confirmation_leads_back_to_the_form_with_what_was_typed(wallet: Wallet) -> None:
    browser, form = signed_in(make_staff(*MAY)), asked()
    question = send(browser, wallet, form)

    again = browser.get(question.context["back_to_form"]).context["form"]
    typed = {name: str(again[name].value()) for name in form}
    assert typed == {name: str(value) for name, value in form.items()}

    changed = browser.post(
        question.context["back_to_form"], {**typed, "amount": "30"}, follow=True
    ).content.decode()
    assert "130.00 USD" in changed
    assert balance(wallet) == 100


def test_a_link_of_somebody_else_asks_for_no_booking(wallet: Wallet) -> None:
    anna, ben = (signed_in(make_staff(*MAY)) for _ in range(2))
    [(question, _)] = send(anna, wallet, asked()).redirect_chain
    plain = f"{question.partition('?')[0]}?{urlencode(asked())}"
    other = Wallet.objects.get(account=make_account(balance="1.00"))
    elsewhere = question.replace(f"/{wallet.pk}/", f"/{other.pk}/")

    for browser, link in ((ben, question), (anna, plain), (anna, elsewhere)):
        assert "Book a deposit, a payout" in browser.get(link).content.decode()
        assert "Book this deposit" not in browser.get(link).content.decode()


def test_the_same_form_sent_twice_is_booked_once(wallet: Wallet) -> None:
    browser, form = signed_in(make_staff(*MAY)), asked(confirmed="1")

    send(browser, wallet, form)
    again = send(browser, wallet, form)

    assert "was booked already" in " ".join(map(str, again.context["messages"]))
    assert balance(wallet) == Decimal("125.50")


def test_a_payout_is_entered_as_a_positive_amount(wallet: Wallet) -> None:
    browser = signed_in(make_staff(*MAY))
    form = asked(kind="payout", amount="40")

    question = send(browser, wallet, form).content.decode()
    assert "-40.00 USD" in question
    assert "60.00 USD" in question
    send(browser, wallet, {**form, "confirmed": "1"})

    entry = LedgerEntry.objects.get(kind="payout")
    assert entry.amount == -40
    assert balance(wallet) == 60
    assert reconcile()["ok"] is True


def test_a_bank_reference_is_booked_once_by_forms_and_commands(wallet: Wallet) -> None:
    browser = signed_in(make_staff(*MAY))
    run("deposit", wallet.pk, "25.50", "--reference", "bank 4711")

    repeated = send(browser, wallet, asked(reference=" bank 4711", confirmed="1"))
    other = send(browser, wallet, asked(reference="bank 4711", amount="9", confirmed="1"))

    assert "was booked already" in " ".join(map(str, repeated.context["messages"]))
    assert "was used before" in " ".join(map(str, other.context["messages"]))
    assert balance(wallet) == Decimal("125.50")
    found = browser.get("/admin/wallets/ledgerentry/", {"q": "bank 4711"})
    assert found.status_code == 403  # booking and reading the ledger are two permissions
    reader = signed_in(make_staff("wallets.view_ledgerentry"))
    entry = LedgerEntry.objects.get(booking_reference="bank 4711")
    found = reader.get("/admin/wallets/ledgerentry/", {"q": "bank 4711"})
    assert list(found.context["cl"].result_list) == [entry]


def test_a_reference_whose_booking_was_reversed_says_what_to_enter(wallet: Wallet) -> None:
    browser = signed_in(make_staff(*MAY))
    send(browser, wallet, asked(reference="INV-118", confirmed="1"))
    reverse(entry=LedgerEntry.objects.latest("pk"), actor="admin:anna", note="wrong account")
    other = Wallet.objects.get(account=make_account(balance="0"))

    for to in (wallet, other):
        [problem] = (
            send(browser, to, asked(reference="inv 118")).context["form"].errors["reference"]
        )
        assert "which was reversed" in problem
    assert "“INV-118 again”" in problem
    send(browser, other, asked(reference="INV-118 again", confirmed="1"))
    assert balance(other) == Decimal("25.50")


def test_a_transfer_whose_deposit_was_reversed_is_booked_again(wallet: Wallet) -> None:
    browser = signed_in(make_staff(*MAY, "wallets.view_announcedtransfer"))
    transfer = announce_transfer(
        account=wallet.account, amount=Decimal("25.50"), reference="INV-118", actor=make_staff()
    )
    book = f"{url(wallet.account, 'book')}?transfer={transfer.pk}"
    assert "Book again" not in browser.get(url(transfer)).text
    send(browser, wallet, asked(reference="INV-118", confirmed="1"))
    assert "Book again" not in browser.get(url(transfer)).text
    assert 'value="INV-118' not in browser.get(book).text
    reverse(entry=LedgerEntry.objects.latest("pk"), actor="admin:anna", note="wrong account")

    page = browser.get(url(transfer)).text

    assert "Book again…" in page
    assert "It did not arrive…" not in page
    form = browser.get(book).text
    assert 'value="INV-118 again"' in form
    assert 'value="25.50"' in form


@pytest.mark.parametrize("limit", [None, "1"])
def test_a_reversed_deposit_is_booked_again_once_in_all_languages(
    wallet: Wallet, limit: str | None
) -> None:
    finance = staff_with(StaffRole.FINANCE)
    if limit:
        group = finance.groups.get()
        BookingLimit.objects.create(group=group, kind="deposit", amount=limit, per_day=limit)
    browser, german = signed_in(finance), signed_in(staff_with(StaffRole.FINANCE))
    german.defaults["HTTP_ACCEPT_LANGUAGE"] = "de"
    transfer = announce_transfer(
        account=wallet.account, amount=Decimal("25.50"), reference="INV-118", actor=finance
    )
    entry = deposit(
        account=wallet.account,
        amount=transfer.amount,
        actor="admin:anna",
        booking_reference="INV-118",
    )
    reverse(entry=entry, actor="admin:anna", note="wrong amount")
    book = f"{url(wallet.account, 'book')}?transfer={transfer.pk}"
    assert 'value="INV-118 again"' in german.get(book).text

    send(browser, wallet, asked(reference="INV-118 again", confirmed="1"))

    assert "INV-118" not in german.get(book).text
    assert url(transfer, "confirm") not in german.get(url(transfer)).text


def test_an_adjustment_cannot_make_the_balance_negative(wallet: Wallet) -> None:
    browser = signed_in(make_staff(*MAY))
    form = asked(kind="adjustment", amount="-100.01", confirmed="1")

    answer = send(browser, wallet, form)

    assert "Nothing was booked" in " ".join(map(str, answer.context["messages"]))
    assert balance(wallet) == 100
    send(browser, wallet, asked(kind="adjustment", amount="-100.00", confirmed="1"))
    assert balance(wallet) == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "payout", "amount": "100.01"}, "The balance is 100.00 USD"),
        ({"kind": "adjustment", "amount": "-100.01"}, "The balance is 100.00 USD"),
        ({"amount": "4.9999"}, "Enter at most 2 decimals."),
        ({"amount": "4.999"}, "4.999 may mean 4.9990 or 4999. Write one of these."),
        ({"reference": ""}, "Enter the bank&#x27;s reference of the transfer."),
        ({"kind": "payout", "reference": " "}, "Enter the bank&#x27;s reference of the transfer."),
    ],
)
def test_the_form_refuses_what_cannot_be_booked(
    wallet: Wallet, change: dict[str, str], words: str
) -> None:
    answer = send(signed_in(make_staff(*MAY)), wallet, asked(**change))

    html = answer.content.decode()
    assert words in html
    assert "Book a deposit, a payout" in html  # the form, not the confirmation
    assert f'value="{asked(**change)["amount"]}"' in html
    assert "bank 4711" in html


def test_going_back_after_a_payout_of_everything_shows_its_result(wallet: Wallet) -> None:
    browser, form = signed_in(make_staff(*MAY)), asked(kind="payout", amount="100.00")
    [(question, _)] = send(browser, wallet, form).redirect_chain
    send(browser, wallet, {**form, "confirmed": "1"})

    for again in (browser.get(question, follow=True), send(browser, wallet, form)):
        assert "This booking was already made" in " ".join(map(str, again.context["messages"]))
    assert balance(wallet) == 0


def test_decimals_follow_the_currency_and_the_balance() -> None:
    browser = signed_in(make_staff(*MAY))
    dinar = Wallet.objects.get(account=make_account(balance="1.00", currency="KWD"))
    uneven = Wallet.objects.get(account=make_account(balance="1.0125"))
    for wallet, value in ((dinar, "0.005"), (uneven, "1.0125")):
        question = send(browser, wallet, asked(kind="payout", amount=value))
        assert "Book this payout" in question.content.decode()


@pytest.mark.parametrize(
    "change",
    [
        {"amount": "0"},
        {"amount": "-1"},
        {"amount": "NaN"},
        {"amount": "1e30"},
        {"amount": "0.00001"},
        {"amount": ""},
        {"reason": ""},
        {"kind": "purchase"},
        {"kind": "refund"},
        {"form_id": "x"},
        {"kind": "credit"},
        {"kind": "payout", "amount": "-1"},
        {"reference": "x" * 101},
    ],
)
def test_a_mistake_is_explained_and_books_nothing(wallet: Wallet, change: dict[str, str]) -> None:
    answer = send(signed_in(make_staff(*MAY)), wallet, asked(confirmed="1", **change))

    assert answer.status_code == 200
    assert balance(wallet) == 100


def test_booking_needs_the_permission(wallet: Wallet) -> None:
    answer = send(signed_in(make_staff("wallets.view_wallet")), wallet, asked(confirmed="1"))

    assert answer.status_code == 403
    assert balance(wallet) == 100
