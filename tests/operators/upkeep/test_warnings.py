"""Warnings for staff: raised once for each crossing, to those whom they concern."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from threading import Barrier, Thread
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection
from django.db.models import Model
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Account
from cases.services import replace_code_of_case
from catalogue.models import Batch, PriceList, PriceListEntry, Product, Shelf
from catalogue.price_lists import Target, Terms, add_price_entry, end_price_entry
from core.backoffice.registry import watches
from core.texts import message_of
from figures.margin_counting import count_margins
from figures.models import DailySales, DailySpending, StockThreshold
from figures.stock_counting import count_stock
from merchants.models import Email
from operators.catalogue.price_list_changes import ListChoice
from operators.imports.low_prices import two_people_set_low_prices
from operators.telegram import bot_api
from operators.telegram.models import TelegramLink
from operators.upkeep.models import Heartbeat, HeartbeatKind, ReconcileRun, RunState
from operators.warnings import posting, raising
from operators.warnings.models import StaffWarning, WarningPost, WarningRule
from operators.warnings.raising import receivers_of, rules, sweep_kind, sweep_warnings
from tests.factories import (
    Merchant,
    buy_topup,
    make_batch,
    make_category,
    make_merchant,
    make_product,
    make_topup_product,
    own_shelf,
)
from tests.operators.back_office import make_approval, make_case, make_staff, signed_in
from topups.models import Fulfilment, TopUpProduct
from wallets.models import BookingApproval, EntryKind

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("alone")]

LOW = "0.01"


def today() -> Any:
    return datetime.now(UTC).date()


def make_keeper(**fields: Any) -> User:
    user = make_staff("catalogue.view_shelf", "warnings.view_staffwarning")
    User.objects.filter(pk=user.pk).update(email=f"{user.username}@shop.example", **fields)
    user.refresh_from_db()
    return user


def sweep(kind: str = "low_stock") -> int:
    return sweep_kind(watches()[kind], rules()[kind])


def set_stock(shelf: Shelf, number: int) -> None:
    Shelf.objects.filter(pk=shelf.pk).update(available_stock=number)


@pytest.fixture
def shelf(merchant: Merchant) -> Shelf:
    """A shelf that sells 80 codes in eight days, at most."""
    shelf = own_shelf(make_product(name="Steam 10", codes=1))
    DailySales.objects.create(
        day=today() - timedelta(days=7),
        account=merchant.account,
        shelf=shelf,
        orders=70,
        quantity=70,
        amount=70,
    )
    set_stock(shelf, 100)
    return shelf


def open_texts() -> list[str]:
    """The sentences of the open warnings. Pages can translate each of them."""
    warnings = list(StaffWarning.objects.filter(ended_at=None))
    for one in warnings:
        assert message_of(one.text, *watches()[one.kind].sentences), one.text
    return [one.text for one in warnings]


def test_a_crossing_warns_once(shelf: Shelf) -> None:
    keeper = make_keeper()
    assert sweep() == 0

    set_stock(shelf, 12)
    assert [sweep(), sweep()] == [1, 0]

    (email,) = Email.objects.all()
    assert email.to == keeper.email
    assert email.facts["title"].startswith("Steam 10: 12 left, enough for 1.")
    set_stock(shelf, 100)
    assert sweep() == 0
    assert open_texts() == []
    set_stock(shelf, 0)
    assert sweep() == 1
    assert open_texts() == ["Steam 10: sold out"]


def test_a_shelf_can_have_a_limit_of_its_own(shelf: Shelf) -> None:
    threshold = StockThreshold.objects.create(shelf=shelf, stock=101)
    assert sweep() == 1
    StockThreshold.objects.filter(pk=threshold.pk).update(stock=None, days=2)
    assert sweep() == 0
    assert open_texts() == []
    StockThreshold.objects.filter(pk=threshold.pk).update(days=30)
    assert sweep() == 1


@pytest.mark.parametrize("of_list", [True, False])
def test_a_shelf_that_only_lists_sell_warns(shelf: Shelf, of_list: bool) -> None:
    Shelf.objects.filter(pk=shelf.pk).update(price=None)
    prices = PriceList.objects.create(name="Large shops", currency="USD")
    terms: dict[str, Any] = {"price": 9} if of_list else {"for_sale": False}
    PriceListEntry.objects.create(price_list=prices, shelf=shelf, added_by="test", **terms)
    set_stock(shelf, 0)

    assert sweep() == of_list
    assert open_texts() == ["Steam 10: sold out"] * of_list


def test_a_topup_product_with_counted_stock_warns(merchant: Merchant) -> None:
    counted = make_topup_product(name="Gems", available_stock=4)
    make_topup_product(name="Endless")
    StockThreshold.objects.create(topup_product=counted, stock=5)

    assert sweep() == 1
    assert open_texts() == ["Gems: 4 left"]


def test_an_expiring_batch_warns_twice() -> None:
    batch = make_batch(own_shelf(make_product()), 3, expires_on=today() + timedelta(days=29))
    make_batch(own_shelf(make_product()), 3, expires_on=today() + timedelta(days=31))
    count_stock()
    assert [sweep("expiring_batch"), sweep("expiring_batch")] == [1, 0]
    (text,) = open_texts()
    assert text.startswith(f"Batch {batch.pk} of ")
    assert ": 3 codes expire on " in text

    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(
            "UPDATE catalogue_batch SET expires_on = %s WHERE id = %s",
            [today() + timedelta(days=6), batch.pk],
        )
        cursor.execute("SET session_replication_role = origin")
    assert [sweep("expiring_batch"), sweep("expiring_batch")] == [1, 0]


def test_spending_is_compared_with_the_clients_own_past(merchant: Merchant) -> None:
    for age in range(1, 8):
        day = today() - timedelta(days=age)
        DailySpending.objects.create(client=merchant.client, day=day, amount=100)
    now = DailySpending.objects.create(client=merchant.client, day=today(), amount=200)
    assert sweep("unusual_spending") == 0
    DailySpending.objects.filter(pk=now.pk).update(amount="1988.3100")
    assert sweep("unusual_spending") == 1
    assert (
        "spent 1,988.31 USD today; on its best day of the last 28 it spent 100.00"
        in (open_texts()[0])
    )


def test_a_new_client_has_no_past(merchant: Merchant) -> None:
    DailySpending.objects.create(client=merchant.client, day=today(), amount=9999)
    assert sweep("unusual_spending") == 0


def test_late_topups_and_refunds_warn(merchant: Merchant) -> None:
    product = make_topup_product(name="Gems")
    for _ in range(2):
        buy_topup(merchant, product)
    assert sweep("late_topups") == 0
    long_ago = timezone.now() - timedelta(hours=2)
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        Fulfilment.objects.update(created_at=long_ago)
        cursor.execute("SET session_replication_role = origin")
    assert sweep("late_topups") == 1
    assert open_texts() == ["Orders of Gems that have waited longer than 60 minutes: 2"]
    assert sweep("overdue_refunds") == 0


def test_a_product_is_late_after_its_own_promise(merchant: Merchant) -> None:
    fast, slow = make_topup_product(name="Fast"), make_topup_product(name="Slow")
    TopUpProduct.objects.filter(pk=fast.pk).update(promised_minutes=5)
    TopUpProduct.objects.filter(pk=slow.pk).update(promised_minutes=600)
    for product in (fast, slow):
        buy_topup(merchant, product)
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        Fulfilment.objects.update(created_at=timezone.now() - timedelta(minutes=70))
        cursor.execute("SET session_replication_role = origin")
    assert sweep("late_topups") == 1
    assert open_texts() == ["Orders of Fast that have waited longer than 5 minutes: 1"]


def test_a_silent_worker_and_findings_warn() -> None:
    Heartbeat.objects.create(kind=HeartbeatKind.WORKER, host="one")
    run = ReconcileRun.objects.create(
        state=RunState.FINDINGS,
        finished_at=timezone.now(),
        findings=[{"check": "a", "finding": "b"}],
    )
    assert (sweep("silent_process"), sweep("reconcile_findings")) == (0, 1)
    assert open_texts() == ["Problems in the books that the last reconcile found: 1"]
    Heartbeat.objects.update(beat_at=timezone.now() - timedelta(minutes=6))
    assert sweep("silent_process") == 1
    ReconcileRun.objects.filter(pk=run.pk).update(findings=[], state=RunState.CLEAN)
    assert sweep("reconcile_findings") == 0
    assert open_texts() == ["The worker on one has given no sign of life for 5 minutes"]


def test_cases_and_approvals_that_wait_warn(merchant: Merchant) -> None:
    order = merchant.buy(product_id=make_product(codes=1).pk, quantity=1).json()
    case = make_case(order["data"]["reference"])
    make_approval(merchant.account)
    make_approval(merchant.account, kind=EntryKind.ADJUSTMENT, amount="-10500.5")
    age(case, "waits_since", timedelta(hours=25))
    for booking in BookingApproval.objects.all():
        age(booking, "asked_at", timedelta(hours=5))
    assert [sweep("waiting_cases"), sweep("waiting_approvals")] == [1, 2]
    assert set(open_texts()) == {
        f"Case {case.pk} of {merchant.account} has waited for longer than 24 hours",
        f"A deposit of 20,000.00 USD for {merchant.account} has waited for approval for longer"
        " than 4 hours",
        f"An adjustment of 10,500.50 USD for {merchant.account} has waited for approval for longer"
        " than 4 hours",
    }


def age(row: Model, field: str, by: timedelta) -> None:
    """Moves a time into the past, although triggers keep it."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        type(row)._default_manager.filter(pk=row.pk).update(**{field: timezone.now() - by})
        cursor.execute("SET session_replication_role = origin")


def test_every_kind_can_be_read() -> None:
    assert sweep_warnings() == dict.fromkeys(watches(), 0)


def test_a_rule_chooses_who_receives_it(shelf: Shelf) -> None:
    seeing, chosen, of_role, gone = (make_keeper() for _ in range(4))
    watch, rule = watches()["low_stock"], rules()["low_stock"]
    User.objects.filter(pk=gone.pk).update(is_active=False)
    assert receivers_of(watch, rule) == [seeing, chosen, of_role]

    group = Group.objects.create(name="Buyers")
    of_role.groups.add(group)
    rule.people.add(chosen, gone)
    rule.roles.add(group)
    assert receivers_of(watch, rule) == [chosen, of_role]


def test_a_rule_can_be_off(shelf: Shelf) -> None:
    set_stock(shelf, 0)
    assert sweep() == 1
    WarningRule.objects.filter(kind="low_stock").update(active=False)
    assert sweep() == 0
    assert open_texts() == []


def test_linked_staff_get_a_message_in_telegram(shelf: Shelf, settings: Any) -> None:
    settings.TELEGRAM_BOT_TOKEN = "1:token"
    linked = make_keeper()
    make_keeper()
    TelegramLink.objects.create(user=linked, telegram_user_id=77)
    set_stock(shelf, 0)
    sweep()

    (post,) = WarningPost.objects.all()
    assert (post.user, post.lines[0]) == (linked, "Steam 10: sold out")


def test_the_overview_shows_open_warnings(shelf: Shelf) -> None:
    set_stock(shelf, 0)
    sweep()

    def sees(*permissions: str) -> bool:
        browser: Client = signed_in(make_staff("warnings.view_staffwarning", *permissions))
        pages = [reverse("admin:index"), reverse("admin:warnings_staffwarning_changelist")]
        found = {"Steam 10: sold out" in browser.get(page).content.decode() for page in pages}
        assert len(found) == 1
        return found.pop()

    assert sees("catalogue.view_shelf")
    assert not sees("accounts.view_account")


@pytest.mark.parametrize("fields", [{}, {"stock": 3}, {"days": 3}])
def test_a_stock_limit_needs_one_thing_and_a_number(fields: dict[str, int]) -> None:
    with pytest.raises(IntegrityError):
        StockThreshold.objects.create(**fields)


@pytest.mark.parametrize("fields", [{}, {"days": -1}, {"stock": 3, "days": -1}])
def test_a_stock_limit_of_a_shelf_needs_a_number(fields: dict[str, int], shelf: Shelf) -> None:
    with pytest.raises(ValidationError, match="Enter a number, or days, or both"):
        StockThreshold(shelf=shelf, **fields).validate_constraints()
    with pytest.raises(IntegrityError, match="figures_stock_threshold_has_a_limit"):
        StockThreshold.objects.create(shelf=shelf, **fields)


@pytest.fixture
def without_index() -> Iterator[None]:
    name = "warnings_one_for_each_crossing"
    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX {name}")
        yield
        cursor.execute("DELETE FROM warnings_staffwarning")
        cursor.execute(
            f"CREATE UNIQUE INDEX {name} ON warnings_staffwarning (kind, subject)"
            " WHERE ended_at IS NULL"
        )


def sweep_by_two(patch: pytest.MonkeyPatch) -> None:
    """Two workers that have both read the stock before either raises its warning."""
    both, read = Barrier(2, timeout=20), raising._read

    def read_together(*values: Any) -> Any:
        rows = read(*values)
        both.wait()
        return rows

    def work() -> None:
        sweep()
        connection.close()

    rules()
    patch.setattr(raising, "_read", read_together)
    workers = [Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


@pytest.mark.django_db(transaction=True)
def test_two_workers_warn_once(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    make_keeper()
    set_stock(shelf, 0)

    sweep_by_two(monkeypatch)

    assert (StaffWarning.objects.count(), Email.objects.count()) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_control_without_the_index_two_workers_warn_twice(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, without_index: None
) -> None:
    make_keeper()
    set_stock(shelf, 0)
    conflict = "ON CONFLICT (kind, subject) WHERE ended_at IS NULL DO NOTHING"
    monkeypatch.setattr(raising, "RAISE", raising.RAISE.replace(conflict, ""))

    sweep_by_two(monkeypatch)

    assert (StaffWarning.objects.count(), Email.objects.count()) == (2, 2)


def test_a_message_is_posted_once(shelf: Shelf, settings: Any, monkeypatch: Any) -> None:
    settings.TELEGRAM_BOT_TOKEN = "1:token"
    TelegramLink.objects.create(user=make_keeper(), telegram_user_id=78)
    set_stock(shelf, 0)
    sweep()
    sent: list[Any] = []

    def send(**message: Any) -> int:
        if not sent:  # meanwhile another worker looks for messages
            sent.append(message)
            posting._post(WarningPost.objects.get().pk)
        else:
            sent.append(message)
        return 1

    monkeypatch.setattr(bot_api, "send", send)

    assert [posting.post_warnings(), posting.post_warnings()] == [1, 0]
    assert len(sent) == 1
    assert sent[0]["message"].text.startswith("<b>⚠️ Steam 10: sold out</b>")


def test_a_low_price_warns_finance_when_it_begins() -> None:
    finance = make_staff("figures.view_dailymargin")
    finance.email = "finance@example.com"
    finance.save()
    small, large, later = (own_shelf(make_product(price="2.50")) for _ in range(3))
    Shelf.objects.filter(pk=small.pk).update(price="1.75")
    assert sweep("price_fell") == 0
    Shelf.objects.filter(pk=large.pk).update(price="0.01")
    tomorrow = timezone.now() + timedelta(days=1)
    Shelf.objects.filter(pk=later.pk).update(next_price="0.02", next_price_from=tomorrow)
    begun = own_shelf(make_product(price="3.00"))
    soon = timezone.now() + timedelta(milliseconds=200)
    Shelf.objects.filter(pk=begun.pk).update(next_price="0.03", next_price_from=soon)
    time.sleep(0.3)
    topup = make_topup_product(price="5.00")
    type(topup).objects.filter(pk=topup.pk).update(price="1.00")

    assert [sweep("price_fell"), sweep("price_fell")] == [3, 0]
    assert sorted(text.partition(": ")[2] for text in open_texts()) == [
        "the price fell from 2.50 to 0.01 USD",
        "the price fell from 3.00 to 0.03 USD",
        "the price fell from 5.00 to 1.00 USD",
    ]
    assert {email.to for email in Email.objects.all()} == {finance.email}


def test_half_off_in_a_price_list_warns() -> None:
    row = PriceList.objects.create(name="Gold", currency="USD")
    for percent in ("30", "50"):
        add_price_entry(
            price_list_id=row.pk,
            target=Target(product_id=make_product().pk),
            terms=Terms(percent_off=Decimal(percent)),
            actor=make_staff(),
        )
    assert sweep("price_fell") == 1
    assert open_texts()[0].startswith("Price list Gold: 50 percent off since ")


def _list_with(price_list: PriceList, target: Target, **terms: Any) -> PriceListEntry:
    times = {one: terms.pop(one) for one in ("valid_from", "valid_until") if one in terms}
    return add_price_entry(
        price_list_id=price_list.pk,
        target=target,
        terms=Terms(**terms),
        actor=make_staff(),
        **times,
    )


def test_a_low_price_of_a_list_warns_when_it_begins(merchant: Merchant) -> None:
    """A fixed price, one that began under another one, and a category with a discount."""
    row = PriceList.objects.create(name="Gold", currency="USD")
    steam, cover, small = (
        own_shelf(make_product(name=name, price="2.50")) for name in ("Steam", "Cover", "Small")
    )
    tomorrow = timezone.now() + timedelta(days=1)
    _list_with(row, Target(product_id=steam.product_id), price=Decimal(LOW))
    above = _list_with(row, Target(shelf_id=cover.pk), price=Decimal("2.50"), valid_until=tomorrow)
    _list_with(row, Target(product_id=cover.product_id), price=Decimal(LOW))
    _list_with(row, Target(product_id=small.product_id), price=Decimal("1.80"))
    _list_with(row, Target(shelf_id=small.pk), price=Decimal(LOW), valid_from=tomorrow)
    assert sweep("price_fell") == 1
    end_price_entry(entry_id=above.pk, actor=make_staff())
    assert [sweep("price_fell"), sweep("price_fell")] == [1, 0]

    texts = sorted(text.partition(" since ")[0] for text in open_texts())

    assert texts == [
        "Price list Gold: Cover costs 0.01 instead of 2.50 USD",
        "Price list Gold: Steam costs 0.01 instead of 2.50 USD",
    ]


def test_a_low_price_of_a_category_names_one_and_counts_the_others() -> None:
    row = PriceList.objects.create(name="Gold", currency="USD")
    category = make_category()
    for price in ("2.50", "5.00"):
        make_product(name=f"Card {price}", price=price, category=category)
    make_topup_product(name="Gems", price="4.00", category=category)
    _list_with(row, Target(category_id=category.pk), price=Decimal("1.00"))
    assert sweep("price_fell") == 1
    (text,) = open_texts()
    assert text.startswith("Price list Gold: Card 5.00 costs 1.00 instead of 5.00 USD since ")
    assert text.endswith(" UTC, and 2 more")


def test_a_product_in_another_category_and_a_larger_step_warn() -> None:
    row, boss = PriceList.objects.create(name="Gold", currency="USD"), make_staff(superuser=True)
    category = make_category()
    _list_with(row, Target(category_id=category.pk), percent_off=Decimal(30))
    Account.objects.filter(pk=make_merchant().account.pk).update(price_list_id=row.pk)
    expensive = make_category()
    _list_with(row, Target(category_id=expensive.pk), price=Decimal("9.00"))
    shelf = own_shelf(make_product(name="Steam", price="2.50", category=expensive))
    topup = make_topup_product(name="Gems", price="2.50", category=expensive)
    StaffWarning.objects.all().delete()
    rows = (Shelf.objects.filter(pk=shelf.pk), TopUpProduct.objects.filter(pk=topup.pk))
    with two_people_set_low_prices(*rows, actor=boss):
        Product.objects.filter(pk=shelf.product_id).update(category=category)
        rows[0].update(quantity_step=2, price="2.60")
        rows[1].update(category=category)
    sweep("price_fell")
    assert sorted(text.partition(" since ")[0] for text in open_texts()) == [
        "Price list Gold: Gems costs 1.75 instead of 9.00 USD",
        "Price list Gold: Steam costs 1.82 instead of 9.00 USD",
        "Steam: the price fell from 2.50 to 1.30 USD",
    ]


def test_an_account_with_low_prices_of_another_list_warns(merchant: Merchant) -> None:
    row, boss = PriceList.objects.create(name="Gold", currency="USD"), make_staff(superuser=True)
    for price in ("2.50", "1.10"):
        product = make_product(price=price)
        _list_with(row, Target(product_id=product.pk), price=Decimal("1.00"))
    StaffWarning.objects.all().delete()
    sweep("price_fell")
    before = set(open_texts())
    ListChoice(merchant.account, row, boss).make()
    assert sweep("price_fell") == 1
    (text,) = set(open_texts()) - before
    assert text.startswith(f"{merchant.account.name}: 1 low prices of price list Gold since ")


def test_a_sale_below_cost_to_one_of_many_accounts_warns(merchant: Merchant) -> None:
    product, other = make_product(price="2.50"), make_merchant(balance="100.00")
    batch = make_batch(own_shelf(product), 10)
    Batch.objects.filter(pk=batch.pk).update(unit_cost="2.00", cost_currency="USD")
    merchant.buy(product_id=product.pk, quantity=5)
    code = make_case(merchant.buy(product_id=product.pk, quantity=1).json()["data"]["reference"])
    replace_code_of_case(case=code, version=code.version, actor=make_staff(superuser=True))
    count_margins()
    assert sweep("sold_below_cost") == 0

    row = PriceList.objects.create(name="Gold", currency="USD")
    _list_with(row, Target(product_id=product.pk), price=Decimal("1.90"))
    Account.objects.filter(pk=other.account.pk).update(price_list_id=row.pk)
    other.buy(product_id=product.pk, quantity=1)
    count_margins()

    assert sweep("sold_below_cost") == 1
    assert ": 1, for 1.90 USD" in open_texts()[0]


def test_a_new_product_that_costs_more_than_its_price_warns(merchant: Merchant) -> None:
    """Codes that are imported to a shelf with a lower price wait for nobody."""
    product = make_product(price="0.01")
    batch = make_batch(own_shelf(product), 1)
    Batch.objects.filter(pk=batch.pk).update(unit_cost="2.00", cost_currency="USD")
    merchant.buy(product_id=product.pk, quantity=1)
    count_margins()
    assert sweep("sold_below_cost") == 1


def test_a_sale_below_cost_warns(merchant: Merchant) -> None:
    product = make_product(price="2.50")
    batch = make_batch(own_shelf(product), 3)
    Batch.objects.filter(pk=batch.pk).update(unit_cost="2.50", cost_currency="USD")
    merchant.buy(product_id=product.pk, quantity=1)
    count_margins()
    assert sweep("sold_below_cost") == 0

    Shelf.objects.filter(product=product).update(price="0.01")
    merchant.buy(product_id=product.pk, quantity=1)
    count_margins()

    assert [sweep("sold_below_cost"), sweep("sold_below_cost")] == [1, 0]
    assert ": 2, for 2.51 USD" in open_texts()[0]
