"""Merchants announce transfers, and finance books each of them once."""

import re
from decimal import Decimal
from functools import partial
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.db.models import Q
from django.test import Client
from django.utils import timezone

from accounts.models import Account
from core.backoffice.staff_roles import StaffRole
from core.database.columns import BOOKING_REFERENCE_LENGTH
from merchants.email.transfer_notices import sweep_transfers
from merchants.models import Membership, Role
from merchants.money.wallet_pages import _transfers_of
from tests.factories import make_account
from tests.merchants.people import browser_of, make_member
from tests.operators.back_office import (
    form_of,
    list_url,
    make_approval,
    make_staff,
    signed_in,
    text_of,
    url,
)
from wallets.approvals import reject_booking
from wallets.models import AnnouncedTransfer, BankDetails, EntryKind, LedgerEntry, Wallet
from wallets.selectors import newest_with
from wallets.services import deposit
from wallets.transfers import (
    MAX_OPEN,
    announce_transfer,
    close_transfer,
    find_transfers,
)

pytestmark = pytest.mark.django_db

ANNOUNCE = "/merchant/wallet/transfers/new/"


@pytest.fixture
def account() -> Account:
    return make_account(balance="0")


@pytest.fixture
def owner(account: Account) -> Client:
    return browser_of(make_member(account, Role.OWNER).user)


@pytest.fixture
def finance() -> Client:
    user = make_staff()
    user.groups.add(Group.objects.get(name=StaffRole.FINANCE.value))
    return signed_in(user)


def wallet_page(browser: Client) -> str:
    return browser.get("/merchant/wallet/").content.decode()


def test_an_announced_transfer_is_confirmed_by_its_deposit(
    account: Account, owner: Client, finance: Client
) -> None:
    owner.post(ANNOUNCE, {"amount": "250", "reference": "TR-99 b"})
    transfer = AnnouncedTransfer.objects.get()
    assert sweep_transfers() == 0
    assert "on its way" in wallet_page(owner)
    assert "Book the deposit" in finance.get(url(transfer)).content.decode()

    form_page = finance.get(url(transfer, "confirm"), follow=True)
    form = form_page.context["form"]
    data = {name: form[name].value() or "" for name in form.fields}
    assert (data["kind"], data["amount"], data["reference"]) == ("deposit", "250.00", "TR-99 b")
    for spelling in ("TR-99 b", "tr99B"):
        finance.post(url(account, "book"), {**data, "reference": spelling, "confirmed": "1"})

    assert Wallet.objects.get(pk=account.pk).balance == 250
    assert [sweep_transfers(), sweep_transfers()] == [1, 0]
    (link,) = re.findall(r'received</span> <a[^>]* href="[^?]*(.*?)#entries"', wallet_page(owner))
    entries = owner.get(f"/merchant/wallet/{unescape(link)}").context["entries"]
    assert [entry.amount for entry, _ in entries] == [250]
    assert "Book the deposit" not in finance.get(url(transfer)).content.decode()
    assert not close_transfer(transfer=transfer, actor=make_staff())


def test_a_transfer_whose_deposit_waits_for_approval_is_not_booked_again(
    account: Account, owner: Client, finance: Client
) -> None:
    owner.post(ANNOUNCE, {"amount": "250", "reference": "TR-99 b"})
    transfer = AnnouncedTransfer.objects.get()
    waiting = make_approval(account, reference="tr99B")

    page = finance.get(url(transfer)).content.decode()
    assert url(waiting) in page
    assert "Book the deposit" not in page
    assert "It did not arrive" not in page

    reject_booking(booking=waiting, actor=make_staff(), note="")
    page = finance.get(url(transfer)).content.decode()
    assert url(waiting) not in page
    assert "Book the deposit" in page


def test_a_transfer_whose_deposit_waits_for_approval_is_no_work_to_do(
    account: Account, owner: Client, finance: Client
) -> None:
    for reference in ("TR-99 b", "TR-100"):
        owner.post(ANNOUNCE, {"amount": "250", "reference": reference})
    make_approval(make_account(balance="0"), reference="TR-100")  # of another account
    make_approval(account, reference="tr99B")

    assert "announced transfer to look for" in finance.get("/admin/").content.decode()
    assert references(finance, "on-its-way") == ["TR-100"]
    assert references(finance, "waits") == ["TR-99 b"]
    assert references(finance, "") == ["TR-100", "TR-99 b"]
    assert "on its way" in wallet_page(owner)
    assert "approval" not in wallet_page(owner)


def test_the_page_of_a_transfer_leads_to_its_deposit_and_to_the_reversal(
    account: Account, owner: Client, finance: Client
) -> None:
    for reference in ("TR-99 b", "TR-100"):
        owner.post(ANNOUNCE, {"amount": "250", "reference": reference})
    transfer = AnnouncedTransfer.objects.get(reference="TR-99 b")
    other = make_account(balance="0")
    deposit(account=other, amount=Decimal(250), actor="test", note="", booking_reference="TR-100")
    booked = deposit(
        account=account, amount=Decimal(250), actor="test", note="", booking_reference="tr99B"
    )
    assert url(booked) in finance.get(url(transfer)).content.decode()

    answer = finance.post(url(booked, "reverse"), {"reason": "Wrong shop"}, follow=True)
    assert "Deposit of 250.00 USD reversed for" in text_of(answer)
    reversal = LedgerEntry.objects.get(booking_reference=booked.reversal_reference)
    page = finance.get(url(transfer)).content.decode()
    assert url(booked) in page
    assert url(reversal) in page
    states = text_of(finance.get(list_url(AnnouncedTransfer)))
    assert states.count("received, deposit reversed") == 1
    assert states.count("on its way") == 1


def test_a_long_reference_can_be_booked_again(account: Account, finance: Client) -> None:
    member = make_member(account)
    transfer = announce_transfer(
        account=account,
        amount=Decimal(250),
        reference="R" * BOOKING_REFERENCE_LENGTH,
        actor=member.user,
    )
    booked = deposit(
        account=account,
        amount=Decimal(250),
        actor="test",
        note="",
        booking_reference=transfer.reference,
    )
    finance.post(url(booked, "reverse"), {"reason": "Wrong shop"})
    assert "Book again" in finance.get(url(transfer)).content.decode()

    form = finance.get(url(transfer, "confirm"), follow=True).context["form"]

    assert form.initial["reference"] == f"{'R' * (BOOKING_REFERENCE_LENGTH - 6)} again"


def test_the_reference_of_another_transfer_is_not_used_to_book_again(
    account: Account, owner: Client, finance: Client
) -> None:
    owner.post(ANNOUNCE, {"amount": "250", "reference": "TR-1"})
    transfer = AnnouncedTransfer.objects.get()
    booked = deposit(
        account=account, amount=Decimal(250), actor="test", note="", booking_reference="TR-1"
    )
    finance.post(url(booked, "reverse"), {"reason": "Wrong shop"})
    owner.post(ANNOUNCE, {"amount": "250", "reference": "TR-1 again, in part"})
    assert "Book again" in finance.get(url(transfer)).text

    owner.post(ANNOUNCE, {"amount": "250", "reference": "tr 1 AGAIN"})

    assert "Book again" not in finance.get(url(transfer)).text
    form = finance.get(url(transfer, "confirm"), follow=True).context["form"]
    assert not form.initial


def withdraw_many(member: Membership) -> None:
    """Adds 3,000 transfers that the member announced and withdrew."""
    AnnouncedTransfer.objects.bulk_create(
        AnnouncedTransfer(
            account=member.account,
            amount=Decimal(1),
            reference=f"TR-{number}",
            announced_by=member.user,
            closed_at=timezone.now(),
            closed_by=member.user,
        )
        for number in range(3_000)
    )


def test_the_wallet_page_reads_few_of_many_transfers(account: Account) -> None:
    member = make_member(account)
    withdraw_many(member)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE wallets_announcedtransfer")

    plan = _transfers_of(account).explain(analyze=True, timing=False)

    assert "loops" in plan
    assert "Rows Removed by Filter: 29" not in plan


def references(browser: Client, state: str) -> list[str]:
    address = list_url(AnnouncedTransfer, **({"state": state} if state else {}))
    return [row.reference for row in browser.get(address).context["cl"].result_list]


@pytest.mark.parametrize("again", ["tr-1", "TR 1", "TR1."])
def test_an_announced_reference_is_refused_in_another_spelling(
    account: Account, owner: Client, again: str
) -> None:
    """One deposit would mark both as received, and nobody would look for the second transfer."""
    for reference in ("TR-1", again):
        answer = owner.post(ANNOUNCE, {"amount": "250", "reference": reference})
    assert "announced already" in answer.content.decode()
    assert AnnouncedTransfer.objects.get(account=account).reference == "TR-1"


def test_a_booked_or_announced_reference_is_refused(account: Account, owner: Client) -> None:
    for _ in range(2):
        answer = owner.post(ANNOUNCE, {"amount": "250", "reference": "TR-1"})
    assert "announced already" in answer.content.decode()
    LedgerEntry.objects.create(
        wallet_id=account.pk,
        kind="deposit",
        counterpart="bank",
        amount=5,
        balance_after=0,
        actor="a",
        booking_reference="TR-2",
    )
    answer = owner.post(ANNOUNCE, {"amount": "250", "reference": "tr 2"})
    assert "booked already" in answer.content.decode()
    assert AnnouncedTransfer.objects.count() == 1


def test_a_deposit_of_another_account_does_not_confirm_it(account: Account, owner: Client) -> None:
    owner.post(ANNOUNCE, {"amount": "250", "reference": "TR-3"})
    other = make_account(balance="0")
    LedgerEntry.objects.create(
        wallet_id=other.pk,
        kind="deposit",
        counterpart="bank",
        amount=5,
        balance_after=0,
        actor="a",
        booking_reference="TR-3",
    )

    assert "on its way" in wallet_page(owner)


def test_a_reference_that_is_booked_for_another_account_is_not_revealed(
    account: Account, owner: Client, finance: Client
) -> None:
    other = make_account(balance="0")
    deposit(account=other, amount=Decimal(5), actor="a", booking_reference="TR-7")

    foreign = owner.post(ANNOUNCE, {"amount": "250", "reference": "tr 7"}, follow=True)
    unknown = owner.post(ANNOUNCE, {"amount": "250", "reference": "TR-8"}, follow=True)

    assert foreign.redirect_chain == unknown.redirect_chain == [("/merchant/wallet/", 302)]
    said = [list(map(str, answer.context["messages"])) for answer in (foreign, unknown)]
    assert said[0] == said[1]
    clash, free = (
        finance.get(url(AnnouncedTransfer.objects.get(reference=reference))).content.decode()
        for reference in ("tr 7", "TR-8")
    )
    entry = LedgerEntry.objects.get(booking_reference="TR-7")
    assert url(entry) in clash
    assert url(entry) not in free


def test_a_transfer_is_withdrawn_and_announced_again(account: Account, owner: Client) -> None:
    owner.post(ANNOUNCE, {"amount": "250", "reference": "TR-4"})
    transfer = AnnouncedTransfer.objects.get()

    owner.post(f"/merchant/wallet/transfers/{transfer.pk}/withdraw/")
    assert "withdrawn" in wallet_page(owner)
    owner.post(ANNOUNCE, {"amount": "250", "reference": "TR-4"})

    assert AnnouncedTransfer.objects.filter(closed_at=None).count() == 1


def test_a_transfer_of_another_account_cannot_be_withdrawn(account: Account, owner: Client) -> None:
    stranger = browser_of(make_member(make_account(), Role.OWNER).user)
    owner.post(ANNOUNCE, {"amount": "250", "reference": "TR-99"})
    page = f"/merchant/wallet/transfers/{AnnouncedTransfer.objects.get().pk}/withdraw/"

    assert [stranger.get(page).status_code, stranger.post(page).status_code] == [404, 404]
    assert AnnouncedTransfer.objects.filter(closed_at=None).exists()


def test_staff_close_a_transfer_that_did_not_come(
    account: Account, owner: Client, finance: Client
) -> None:
    owner.post(ANNOUNCE, {"amount": "250", "reference": "TR-5"})

    finance.post(url(AnnouncedTransfer.objects.get(), "close"))

    assert "did not arrive" in wallet_page(owner)


def test_transfers_on_their_way_are_limited(account: Account, owner: Client) -> None:
    user = make_member(account, Role.OWNER).user
    announce: Any = partial(announce_transfer, account=account, amount=Decimal(1), actor=user)
    for number in range(MAX_OPEN):
        announce(reference=f"TR {number}")

    answer = owner.post(ANNOUNCE, {"amount": "1", "reference": "one more"})

    assert f"At most {MAX_OPEN} transfers" in answer.content.decode()


def test_the_wallet_page_has_the_bank_details_of_its_currency(owner: Client) -> None:
    assert "Contact support to learn where" in wallet_page(owner)
    BankDetails.objects.create(currency="EUR", details="IBAN DE1")
    BankDetails.objects.create(currency="USD", details="IBAN US1")

    assert "IBAN US1" in wallet_page(owner)
    assert "IBAN DE1" not in wallet_page(owner)


def test_bank_details_need_the_right(finance: Client) -> None:
    details = BankDetails.objects.create(currency="EUR", details="IBAN DE1")
    assert finance.post(url(details), {"details": "mine"}).status_code == 403
    rights = ("wallets.view_bankdetails", "wallets.change_bankdetails")
    for editor in (signed_in(make_staff(*rights)), signed_in(make_staff(*rights))):
        editor.post(url(details), {**form_of(editor, url(details)), "details": "IBAN DE2"})

    details.refresh_from_db()
    assert details.details == "IBAN DE2"


def test_a_search_reads_the_newest_transfers_of_the_account(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wallets.selectors.SEARCHED", 20)
    for member in (make_member(account), make_member()):
        withdraw_many(member)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE wallets_announcedtransfer")
        cursor.execute("SET LOCAL enable_seqscan = off")  # so small a table may be read whole

    plan = find_transfers("tr-29", account=account)[:50].explain(analyze=True, timing=False)

    read = re.findall(r"actual rows=([0-9]+)|Removed by Filter: ([0-9]+)", plan)
    assert max(int(one or other) for one, other in read) <= 20, plan


def test_a_search_reads_the_newest_deposits_of_the_account(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wallets.selectors.SEARCHED", 20)
    other = make_member().account
    for number in range(60):
        for whose in (account, other):
            deposit(
                account=whose,
                amount=Decimal(1),
                actor="a",
                booking_reference=f"{whose.pk}x{number}",
            )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE wallets_ledgerentry")
        cursor.execute("SET LOCAL enable_seqscan = off")  # so small a table may be read whole

    deposits = Q(wallet=account.pk, kind=EntryKind.DEPOSIT)
    rows = newest_with("nothing", LedgerEntry.objects.all(), "booking_reference", of=deposits)
    plan = rows.explain(analyze=True, timing=False)

    read = re.findall(r"actual rows=([0-9]+)|Removed by Filter: ([0-9]+)", plan)
    assert max(int(one or other) for one, other in read) <= 20, plan
