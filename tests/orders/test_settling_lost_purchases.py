"""A lost purchase is settled once: its price is debited after all, or it is not."""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.db import connection

from core.inputs import InputProblem
from operators.upkeep.reconcile import reconcile
from orders.models import LostPurchase, Settlement
from orders.recovery.settlements import settle_lost_purchase
from tests.commands import refusal, run
from tests.factories import Merchant, make_lost_purchase, make_merchant
from tests.operators.back_office import make_staff, signed_in, url
from wallets.models import LedgerEntry, Wallet
from wallets.services import adjust

pytestmark = pytest.mark.django_db(transaction=True)

MAY = ("orders.view_lostpurchase", "wallets.move_money")
BY_SHELL = ("lost_purchases", "settle", "--note", "agreed")


@pytest.fixture
def merchant() -> Merchant:
    return make_merchant(balance="10.00")


def lose(merchant: Merchant, price: str, **fields: Any) -> LostPurchase:
    return make_lost_purchase(merchant.client, price, **fields)


def balance(merchant: Merchant) -> Decimal:
    return Wallet.objects.get(account=merchant.account).balance


def test_all_are_debited_once(merchant: Merchant) -> None:
    first, second = lose(merchant, "2.00"), lose(merchant, "3.50")
    assert run(*BY_SHELL, "--all", "--debit") == {"settled": 2, "not_settled": {}}
    assert run(*BY_SHELL, "--all", "--debit") == {"settled": 0, "not_settled": {}}
    assert balance(merchant) == Decimal("4.50")
    debits = LedgerEntry.objects.filter(booking_reference__startswith="lost:").order_by("pk")
    assert [(each.booking_reference, each.amount, each.note) for each in debits] == [
        (f"lost:{first.reference}", Decimal("-2"), "agreed"),
        (f"lost:{second.reference}", Decimal("-3.5"), "agreed"),
    ]
    assert [each["state"] for each in listed()] == ["debited", "debited"]
    assert reconcile()["ok"] is True


def listed() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = run("lost_purchases", "list")["lost_purchases"]
    return rows


def test_one_that_is_not_debited_costs_nothing(merchant: Merchant) -> None:
    lost, other = lose(merchant, "2.00"), lose(merchant, "3.00")
    assert run(*BY_SHELL, "--reference", lost.reference, "--no-debit")["settled"] == 1
    assert balance(merchant) == 10
    (first, second) = listed()
    assert (first["state"], first["note"], first["account_id"]) == (
        "not debited",
        "agreed",
        merchant.account.pk,
    )
    assert (second["state"], second["amount"]) == ("open", 3)
    refused = refusal(*BY_SHELL, "--reference", lost.reference, other.reference, "--debit")
    assert f"Not an open lost purchase: {lost.reference}." in refused
    assert balance(merchant) == 10


def test_one_that_cannot_be_debited_stays_open(merchant: Merchant) -> None:
    """It stops no other."""
    expensive, foreign, cheap = (
        lose(merchant, "11.00"),
        lose(merchant, "1.00", currency="EUR"),
        lose(merchant, "1.00"),
    )
    answer = run(*BY_SHELL, "--account", merchant.account.pk, "--debit")
    assert answer["settled"] == 1
    assert set(answer["not_settled"]) == {expensive.reference, foreign.reference}
    assert "is in EUR, and the account is not" in answer["not_settled"][foreign.reference]
    assert Settlement.objects.get().lost_purchase == cheap
    assert balance(merchant) == 9


def test_a_debit_that_somebody_booked_by_hand_is_the_debit(merchant: Merchant) -> None:
    lost = lose(merchant, "2.00")
    booked = adjust(
        account=merchant.account,
        amount=Decimal("-2.00"),
        actor="shell:anna",
        booking_reference=f"lost:{lost.reference}",
        note="by hand",
    )
    run(*BY_SHELL, "--all", "--debit")
    assert Settlement.objects.get().debit == booked
    assert balance(merchant) == 8


@pytest.mark.parametrize("ways", [(True, True), (True, False), (False, False)])
def test_of_two_people_one_settles(merchant: Merchant, ways: tuple[bool, bool]) -> None:
    lost = lose(merchant, "2.00")

    def settle(debits: bool) -> bool:
        try:
            settle_lost_purchase(lost, debits=debits, note="n", actor="shell:anna")
        except InputProblem as problem:
            assert "is settled already" in str(problem)  # noqa: PT017
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(2) as threads:
        results = list(threads.map(settle, ways))
    assert sorted(results) == [False, True]
    settled = Settlement.objects.get()
    assert balance(merchant) == (8 if settled.debit else 10)
    assert LedgerEntry.objects.filter(booking_reference__startswith="lost:").count() == (
        1 if settled.debit else 0
    )


def test_the_notice_names_the_open_purchases_of_one_account(merchant: Merchant) -> None:
    mine, other = lose(merchant, "2.00"), lose(make_merchant(), "3.00")
    notice = run("lost_purchases", "notice", merchant.account.pk)["notice"]
    assert f"{mine.reference}: 2026-11-22 00:00:00 UTC, 2.00 USD" in notice
    assert other.reference not in notice
    run(*BY_SHELL, "--all", "--no-debit")
    assert run("lost_purchases", "notice", merchant.account.pk)["notice"] == ""


def test_the_page_settles_one_and_the_list_the_others(merchant: Merchant) -> None:
    first, second = lose(merchant, "2.00"), lose(merchant, "3.00")
    staff = make_staff(*MAY)
    browser = signed_in(staff)
    assert "2026-11-22 00:00:00 UTC, 2.00 USD" in browser.get(url(first)).content.decode()
    browser.post(f"/admin/orders/lostpurchase/{first.pk}/settle/", {"debits": "no", "note": "gift"})
    assert Settlement.objects.get().settled_by == f"admin:{staff.username}"
    answer = browser.post(
        "/admin/orders/lostpurchase/settle-all/", {"debits": "yes", "note": "n"}, follow=True
    )
    assert [str(each) for each in answer.context["messages"]] == ["Settled: 1."] * 2
    assert balance(merchant) == 7
    assert Settlement.objects.get(pk=second.pk).debit is not None
    assert "Settle…" not in browser.get(url(first)).content.decode()


@pytest.mark.parametrize("rights", [MAY[:1], MAY[1:]])
def test_both_rights_are_needed(merchant: Merchant, rights: tuple[str, ...]) -> None:
    lost = lose(merchant, "2.00")
    post = partial(signed_in(make_staff(*rights)).post, data={"debits": "yes", "note": "n"})
    for page in (f"{lost.pk}/settle/", "settle-all/"):
        assert post(f"/admin/orders/lostpurchase/{page}").status_code in {302, 403}
    assert not Settlement.objects.exists()
    assert balance(merchant) == 10


def test_a_settlement_with_another_debit_is_a_finding(merchant: Merchant) -> None:
    lost = lose(merchant, "2.00")
    run(*BY_SHELL, "--all", "--debit")
    lost.total_price = Decimal("3.00")
    lost.save()
    (finding,) = reconcile()["findings"]
    assert finding["check"].startswith("the debit of a lost purchase is its price")
