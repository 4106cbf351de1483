"""One stock keeper cannot sell for nearly nothing: low prices wait for a second person."""

import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import orjson
import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone

from accounts.models import Account
from audit.models import AuditAction, AuditEntry
from catalogue.models import Batch, PriceList, Product, Shelf
from catalogue.price_lists import Target, Terms, add_price_entry
from catalogue.stock.batches import BatchDetails
from catalogue.stock.holds import hold_codes, void_hold
from core.backoffice.staff_roles import StaffRole
from core.files.table_files import write_table
from figures.models import DailyStock, ExchangeRate
from operators.imports import jobs
from operators.imports.catalogue_file import check_catalogue
from operators.imports.low_prices import LowPrices, two_people_import_codes
from operators.imports.models import FileImport, ImportKind, ImportState
from operators.imports.rate_file import COLUMNS as RATES
from operators.sign_in.models import TwoPersonChange
from operators.sign_in.second_person import LOCK, WAITS_FOR
from tests.concurrency.racing import holding_locks, in_background, wait_for_waiting
from tests.factories import (
    Merchant,
    make_batch,
    make_category,
    make_merchant,
    make_product,
    make_topup_product,
    own_shelf,
)
from tests.operators.back_office import form_of, make_staff, signed_in, staff_with, text_of, url
from tests.operators.catalogue.test_price_list_files import confirm, uploaded, words_of
from tests.operators.pages.test_pages_are_audited import hidden
from topups.models import TopUpProduct

pytestmark = pytest.mark.django_db

LOW = "0.01"
Set = Callable[[User, Any, str], Any]


@pytest.fixture
def merchant() -> Merchant:
    return make_merchant(balance="1000.00")


def keeper() -> User:
    return staff_with(StaffRole.STOCK_KEEPER)


def page_after(answer: Any) -> Any:
    """What the person sees: the answer, or the page to which it leads. Few tests read it."""
    return answer.client.get(answer.url) if answer.status_code == 302 else answer


def on_product_page(person: User, shelf: Shelf, price: str) -> Any:
    browser, address = signed_in(person), url(shelf.product)
    typed = {"shelves-0-price": price, "shelves-0-price-confirmed": price}
    return browser.post(address, form_of(browser, address) | typed)


def on_shelf_page(person: User, shelf: Any, price: str) -> Any:
    browser, address = signed_in(person), url(shelf)
    typed = {"price": price, "price-confirmed": price}
    return browser.post(address, form_of(browser, address) | typed)


def on_prices_page(person: User, row: Any, price: str, **typed: str) -> Any:
    browser = signed_in(person)
    address = f"/admin/{row._meta.app_label}/{row._meta.model_name}/prices/?row={row.pk}"
    preview = browser.post(
        address,
        hidden(browser.get(address)) | {"change": "prices", f"price-{row.pk}": price, **typed},
    )
    return browser.post(address, {"change": "prices", **hidden(preview), "confirmed": "1"})


def by_file(person: User, shelf: Shelf, price: str) -> Any:
    waiting = FileImport.objects.filter(state=ImportState.READY).first()
    if waiting is None:
        product = {"id": shelf.product_id, "name": shelf.product.name, "currency": "USD"}
        waiting = jobs.upload_file(
            kind=ImportKind.CATALOGUE,
            content=orjson.dumps({"products": [product | {"price": price}]}),
            file_name="prices.json",
            shelf=None,
            actor=person,
            token=uuid4(),
        )
        jobs.run_import(pk=waiting.pk)
    browser = signed_in(person)
    waiting.refresh_from_db()
    address = reverse("admin:imports_fileimport_step", args=[waiting.pk, "confirm"])
    browser.post(address, {"seen": waiting.version})
    jobs.run_import(pk=waiting.pk)
    return browser.get(url(waiting))


PATHS: list[Set] = [on_product_page, on_shelf_page, on_prices_page, by_file]


def buy(merchant: Merchant, product: Product, quantity: int = 99) -> Decimal:
    answer = merchant.buy(product_id=product.pk, quantity=quantity)
    assert answer.status_code == 201, answer.content
    return Decimal(str(answer.json()["data"]["total_price"]))


@pytest.mark.parametrize("change", PATHS)
def test_only_two_stock_keepers_set_a_low_price(change: Set, merchant: Merchant) -> None:
    product, first = make_product(price="2.50", codes=99), keeper()
    shelf = own_shelf(product)

    page = page_after(change(first, shelf, LOW)).content.decode()

    assert "needs a second person" in page
    assert "was changed successfully" not in page
    assert own_shelf(product).price == Decimal("2.50")
    assert buy(merchant, product) == Decimal("247.50")

    change(first, shelf, LOW)
    assert own_shelf(product).price == Decimal("2.50")

    change(keeper(), shelf, LOW)
    assert own_shelf(product).price == Decimal(LOW)
    assert TwoPersonChange.objects.get().asked_by == first


@pytest.mark.parametrize("change", PATHS)
def test_a_small_fall_and_a_rise_need_one_person(change: Set) -> None:
    shelf, person = own_shelf(make_product(price="10.00")), keeper()
    for price in ("7.00", "99.00"):
        change(person, own_shelf(shelf.product), price)
        assert own_shelf(shelf.product).price == Decimal(price)


def test_a_scheduled_price_waits_too() -> None:
    shelf, person = own_shelf(make_product(price="2.50")), keeper()
    begins = f"{timezone.now() + timedelta(days=1):%Y-%m-%dT%H:%M}"

    on_prices_page(person, shelf, LOW, starts_at=begins)
    assert Shelf.objects.get(pk=shelf.pk).next_price is None

    on_prices_page(keeper(), shelf, LOW, starts_at=begins)
    assert Shelf.objects.get(pk=shelf.pk).next_price == Decimal(LOW)


def test_the_price_of_a_top_up_waits() -> None:
    product = make_topup_product(price="4.99")
    permission = "topups.change_topupproduct"
    person = make_staff(permission, "topups.view_topupproduct", "catalogue.view_category")
    on_prices_page(person, product, LOW)
    on_shelf_page(person, product, LOW)
    assert TopUpProduct.objects.get(pk=product.pk).price == Decimal("4.99")


def test_small_steps_and_an_empty_price_do_not_help() -> None:
    shelf, person = own_shelf(make_product(price="2.50")), keeper()
    on_shelf_page(person, shelf, "1.80")
    on_shelf_page(person, shelf, "1.30")
    assert own_shelf(shelf.product).price == Decimal("1.80")

    on_shelf_page(person, shelf, "")
    assert own_shelf(shelf.product).price is None
    on_shelf_page(person, shelf, LOW)
    assert own_shelf(shelf.product).price is None


def test_more_codes_for_a_price_wait() -> None:
    shelf = own_shelf(make_product(price="2.50"))
    browser, address = signed_in(keeper()), url(shelf)
    browser.post(address, form_of(browser, address) | {"quantity_step": "2"})
    assert own_shelf(shelf.product).quantity_step == 1


@pytest.mark.parametrize("odd", ["+{}", "0000000000000000000000{}", "%20{}", "{}%20"])
def test_another_spelling_of_the_address_is_no_way_around(odd: str) -> None:
    shelf, browser = own_shelf(make_product(price="2.50")), signed_in(keeper())
    for row in (shelf, shelf.product):
        address = url(row)
        typed = form_of(browser, address) | {
            **{"price": LOW, "price-confirmed": LOW},
            **{"shelves-0-price": LOW, "shelves-0-price-confirmed": LOW},
        }
        browser.post(address.replace(f"/{row.pk}/", f"/{odd.format(row.pk)}/"), typed)
        assert own_shelf(shelf.product).price == Decimal("2.50")


def test_a_larger_step_at_the_same_price_of_a_code_waits() -> None:
    shelf = own_shelf(make_product(price="2.50"))
    browser, address = signed_in(keeper()), url(shelf)
    changes = {"quantity_step": "2", "price": "5.00", "price-confirmed": "5.00"}
    browser.post(address, form_of(browser, address) | changes)
    assert own_shelf(shelf.product).quantity_step == 1


def test_a_list_sells_nothing_at_a_cent_that_had_a_price(merchant: Merchant) -> None:
    shelf, row, person = own_shelf(make_product(price="2.50", codes=1)), _list(merchant), keeper()
    on_shelf_page(person, shelf, "")
    assert own_shelf(shelf.product).price is None

    _add(person, row, about="product", product=shelf.product_id, terms="fixed", price=LOW)

    assert not row.entries.exists()


def test_a_small_fall_by_a_larger_step_waits() -> None:
    shelf = own_shelf(make_product(price="2.50"))
    browser, address = signed_in(keeper()), url(shelf)
    changes = {"quantity_step": "2", "price": "4.00", "price-confirmed": "4.00"}
    typed = form_of(browser, address) | changes
    assert "needs a second person" in browser.post(address, typed, follow=True).content.decode()
    changed = own_shelf(shelf.product)
    assert (changed.quantity_step, changed.price) == (1, Decimal("2.50"))


@pytest.mark.parametrize(("currency", "waits"), [("USD", True), ("EUR", False)])
def test_a_price_below_the_cost_of_the_stock_waits(currency: str, waits: bool) -> None:
    """Without an exchange rate, nobody knows the cost in another currency."""
    product = make_product(price="10.00")
    shelf = own_shelf(product)
    batch = make_batch(shelf)
    type(batch).objects.filter(pk=batch.pk).update(unit_cost="9.00", cost_currency=currency)
    on_shelf_page(keeper(), Shelf.objects.get(pk=shelf.pk), "8.90")
    assert (own_shelf(product).price == 10) is waits


@pytest.mark.parametrize(
    "typed", [{"unit_cost": "8.00"}, {"unit_cost": ""}, {"cost_currency": "EUR"}]
)
def test_one_person_does_not_lower_the_cost_of_a_batch(typed: dict[str, str]) -> None:
    batch = make_batch(own_shelf(make_product(price="10.00")))
    type(batch).objects.filter(pk=batch.pk).update(unit_cost="9.00", cost_currency="USD")
    if not typed.get("unit_cost", "0"):
        typed = {**typed, "cost_currency": ""}

    def save(person: User, **typed: str) -> tuple[Decimal | None, str]:
        browser, address = signed_in(person), url(batch)
        browser.post(address, form_of(browser, address) | typed)
        batch.refresh_from_db()
        return batch.unit_cost, batch.cost_currency

    first = keeper()
    assert save(first, unit_cost="9.50") == (Decimal("9.50"), "USD")
    assert save(first, **typed) == (Decimal("9.50"), "USD")
    assert save(first, **typed) == (Decimal("9.50"), "USD")
    assert save(keeper(), **typed) != (Decimal("9.50"), "USD")


Rate = Callable[[User, ExchangeRate], Any]


def _save_rate(person: User, address: str, **typed: str) -> Any:
    browser = signed_in(person)
    return browser.post(address, form_of(browser, address) | typed, follow=True)


def _rate_by_file(person: User, rate: ExchangeRate) -> Any:
    row = FileImport.objects.filter(state=ImportState.READY).first()
    if row is None:
        line = (rate.currency, rate.into, rate.day.isoformat(), "0.1")
        file = b"".join(write_table("csv", RATES, [line], is_imported=True))
        row = uploaded(person, file, "exchange_rates")
    browser = signed_in(person)
    confirm(person, row)
    return browser.get(url(row))


LOWER_RATES: dict[str, Rate] = {
    "a lower rate": lambda person, rate: _save_rate(person, url(rate), rate="0.1"),
    "a later day": lambda person, rate: _save_rate(
        person, url(rate), day=f"{timezone.now() + timedelta(days=1):%Y-%m-%d}"
    ),
    "a deleted rate": lambda person, rate: signed_in(person).post(
        url(rate, "delete"), {"post": "yes"}, follow=True
    ),
    "another rate": lambda person, rate: _save_rate(
        person,
        reverse("admin:figures_exchangerate_add"),
        **{"currency": "EUR", "into": "USD", "day": f"{timezone.now():%Y-%m-%d}", "rate": "0.1"},
    ),
    "a file": _rate_by_file,
}


def _shelf_with_a_cost(rate: str) -> tuple[Shelf, ExchangeRate]:
    """Codes that cost 9 EUR each, and the rate of the week before."""
    shelf = own_shelf(make_product(price="10.00"))
    batch = make_batch(shelf)
    type(batch).objects.filter(pk=batch.pk).update(unit_cost="9.00", cost_currency="EUR")
    day = timezone.now().date() - timedelta(days=7)
    return shelf, ExchangeRate.objects.create(currency="EUR", into="USD", day=day, rate=rate)


@pytest.mark.parametrize("way", LOWER_RATES)
def test_one_person_does_not_lower_a_cost_by_its_rate(way: str) -> None:
    shelf, rate = _shelf_with_a_cost("1")
    lower, first = LOWER_RATES[way], staff_with(StaffRole.FINANCE)
    before = list(ExchangeRate.objects.values())

    for _time in (1, 2):
        page = lower(first, rate).content.decode()
        assert "needs a second person" in page
        assert "successfully" not in page
        assert list(ExchangeRate.objects.values()) == before
    on_shelf_page(keeper(), shelf, "8.00")
    assert own_shelf(shelf.product).price == 10

    page = lower(staff_with(StaffRole.FINANCE), rate).content.decode()
    assert "needs a second person" not in page
    assert list(ExchangeRate.objects.values()) != before
    on_shelf_page(keeper(), shelf, "8.00")
    assert own_shelf(shelf.product).price == 8


def test_the_shell_does_not_lower_a_cost_by_its_rate(tmp_path: Any) -> None:
    _shelf, rate = _shelf_with_a_cost("1")
    path = tmp_path / "rates.csv"
    line = (rate.currency, rate.into, rate.day.isoformat(), "0.1")
    path.write_bytes(b"".join(write_table("csv", RATES, [line], is_imported=True)))
    with pytest.raises(CommandError, match="two members of staff change it in the back office"):
        call_command("import_exchange_rates", path)
    rate.refresh_from_db()
    assert rate.rate == 1


def _rates_after(change: Callable[[User, ExchangeRate], Any]) -> list[Decimal]:
    """The rates of EUR to USD after one person changed a rate of 1 from 40 days ago. No codes have
    a cost in EUR yet."""
    ExchangeRate.objects.all().delete()
    day = timezone.now().date() - timedelta(days=40)
    rate = ExchangeRate.objects.create(currency="EUR", into="USD", day=day, rate="1")
    change(staff_with(StaffRole.FINANCE), rate)
    return [one.normalize() for one in ExchangeRate.objects.values_list("rate", flat=True)]


def _add_rate(days: int, rate: str) -> Rate:
    def change(person: User, old: ExchangeRate) -> None:
        typed = {"currency": "EUR", "into": "USD", "rate": rate}
        typed["day"] = f"{timezone.now() + timedelta(days=days):%Y-%m-%d}"
        _save_rate(person, reverse("admin:figures_exchangerate_add"), **typed)

    return change


def _both(*changes: Rate) -> Rate:
    return lambda person, rate: [change(person, rate) for change in changes]


def test_one_person_does_not_lower_a_rate_far_before_codes_arrive() -> None:
    """Codes that arrive later would seem to cost less than their price."""
    old, near = Decimal(1), Decimal("0.9")
    ways: dict[str, tuple[Rate, list[Decimal]]] = {
        "today": (_add_rate(0, "0.1"), [old]),
        "tomorrow": (_add_rate(1, "0.89"), [old]),
        "a small fall today": (_add_rate(0, "0.9"), [old, near]),
        "a small fall tomorrow": (_add_rate(1, "0.9"), [old, near]),
        "two small falls": (_both(_add_rate(-6, "0.9"), _add_rate(0, "0.81")), [old, near]),
        "a small fall long ago": (_add_rate(-8, "0.99"), [old]),
        "before the first rate": (_add_rate(-50, "0.1"), [old, Decimal("0.1")]),
        "a rise": (_add_rate(-30, "2"), [old, Decimal(2)]),
        "a fall after a rise": (
            _both(_add_rate(-9, "2"), _add_rate(0, "1.79")),
            [old, Decimal(2)],
        ),
        "no rate": (LOWER_RATES["a deleted rate"], [old]),
        "a later first day": (LOWER_RATES["a later day"], [old]),
        "a file": (_rate_by_file, [old]),
    }
    found = {way: _rates_after(change) for way, (change, _rates) in ways.items()}
    assert found == {way: rates for way, (_change, rates) in ways.items()}


def test_each_fall_waits_in_the_first_week_of_a_rate() -> None:
    day, person = timezone.now().date() - timedelta(days=2), staff_with(StaffRole.FINANCE)
    rate = ExchangeRate.objects.create(currency="EUR", into="USD", day=day, rate="1")
    _add_rate(0, "0.99")(person, rate)
    assert ExchangeRate.objects.count() == 1
    _add_rate(0, "1.01")(person, rate)
    assert ExchangeRate.objects.count() == 2


def test_each_fall_waits_on_a_day_on_which_codes_arrived() -> None:
    """Before such codes arrived, one person may let the rate of the day fall a little."""
    day = timezone.now().date() - timedelta(days=40)
    rate = ExchangeRate.objects.create(currency="EUR", into="USD", day=day, rate="1")
    batch = make_batch(own_shelf(make_product(price="10.00")))
    type(batch).objects.filter(pk=batch.pk).update(unit_cost="9.00", cost_currency="EUR")
    _add_rate(0, "0.99")(staff_with(StaffRole.FINANCE), rate)
    assert ExchangeRate.objects.count() == 1


# --- Codes that arrive ---------------------------------------------------------------------------


def _import_codes(shelf: Shelf, person: User, cost: str, currency: str) -> FileImport:
    row = _check_codes(shelf, person, cost, currency)
    confirm(person, row)
    return row


def _check_codes(shelf: Shelf, person: User, cost: str, currency: str) -> FileImport:
    row = jobs.upload_file(
        kind=ImportKind.CODES,
        content=f"code\nCOSTLY-{shelf.pk}-1\nCOSTLY-{shelf.pk}-2\n".encode(),
        file_name="codes.csv",
        shelf=shelf,
        actor=person,
        token=uuid4(),
        details=BatchDetails(unit_cost=Decimal(cost) if cost else None, cost_currency=currency),
    )
    jobs.run_import(pk=row.pk)
    row.refresh_from_db()
    return row


def test_one_person_does_not_import_codes_that_cost_more_than_their_price(
    merchant: Merchant,
) -> None:
    """A new product can have any price, and codes may arrive after a price fell."""
    ExchangeRate.objects.create(currency="EUR", into="USD", day="2026-01-01", rate="2")
    later = timezone.now() + timedelta(days=30)

    def shelf_at(price: str, **more: Any) -> Shelf:
        shelf = own_shelf(make_product(price=price))
        Shelf.objects.filter(pk=shelf.pk).update(**more)
        return Shelf.objects.get(pk=shelf.pk)

    listed = shelf_at("9.00")
    add_price_entry(
        price_list_id=_list(merchant).pk,
        target=Target(product_id=listed.product_id),
        terms=Terms(price=Decimal("8.00")),
        actor=make_staff(superuser=True),
    )
    falls = shelf_at("9.00", next_price="8.00", next_price_from=later)
    cases: dict[str, tuple[Shelf, str, str, bool]] = {
        "more": (shelf_at("8.00"), "8.01", "USD", True),
        "the same": (shelf_at("8.00"), "8.00", "USD", False),
        "unknown": (shelf_at("8.00"), "", "", False),
        "more in EUR": (shelf_at("8.00"), "4.01", "EUR", True),
        "the same in EUR": (shelf_at("8.00"), "4.00", "EUR", False),
        "without a rate": (shelf_at("8.00"), "99.00", "GBP", False),
        "more than in a list": (listed, "8.50", "USD", True),
        "more than later": (falls, "8.50", "USD", True),
        "more than for two": (shelf_at("16.00", quantity_step=2), "8.01", "USD", True),
        "the same for two": (shelf_at("16.00", quantity_step=2), "8.00", "USD", False),
    }
    waits = {}
    for case, (shelf, cost, currency, _waits) in cases.items():
        row = _import_codes(shelf, keeper(), cost, currency)
        waits[case] = row.state == ImportState.READY and bool(row.result["waits"])
    assert waits == {case: one for case, (*_case, one) in cases.items()}


def test_two_people_import_codes_that_cost_more_than_their_price() -> None:
    shelf, first, second = own_shelf(make_product(price="8.00")), keeper(), keeper()
    row = _check_codes(shelf, first, "9.00", "USD")
    checked = text_of(signed_in(first).get(url(row)))
    assert "cost more than their price, so their import needs a second person" in checked
    assert "No problems were found." not in checked
    assert f"These may agree: {second}" in checked
    assert "Ask for approval" in checked
    assert "Import 2 codes" not in checked
    page = confirm(first, row)
    assert "Waits for a second person" in page
    assert f"{first} asked for it. These may agree: {second}" in page
    assert "needs a second person" in page
    assert "8.00 USD, and a code costs 9.00" in page
    assert row.state == ImportState.READY
    first_page = signed_in(second).get("/admin/").content.decode()
    assert f"{first} asks: import of 2 codes for {shelf}" in first_page
    assert "waits for a decision" not in first_page

    confirm(second, row)

    assert row.state == ImportState.IMPORTED
    assert own_shelf(shelf.product).available_stock == 2
    done = words_of(signed_in(second), row)
    assert f"Asked by {first}" in done
    assert f"Confirmed by {second}" in done
    entry = AuditEntry.objects.get(action=AuditAction.CODES_IMPORTED)
    assert entry.note == f"Codes: 2. Asked by {first}, confirmed by {second}"


def test_a_stale_page_does_not_bring_a_discarded_import_back() -> None:
    person = keeper()
    row = _check_codes(own_shelf(make_product(price="8.00")), person, "9.00", "USD")
    FileImport.objects.filter(pk=row.pk).update(touched_at=timezone.now() - timedelta(days=2))
    row.refresh_from_db()
    assert jobs.sweep_imports()["discarded"] == 1

    assert not jobs.confirm_import(pk=row.pk, actor=person, seen=row.version)

    row.refresh_from_db()
    assert row.state == ImportState.DISCARDED
    assert not TwoPersonChange.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_people_who_ask_for_an_import_at_once_agree() -> None:
    shelf, people = own_shelf(make_product(price="8.00")), [keeper(), keeper()]
    row = _import_codes(shelf, people[0], "9.00", "USD")
    change = TwoPersonChange.objects.get()
    TwoPersonChange.objects.update(ended_at=timezone.now())

    def ask(person: User) -> Callable[[], bool]:
        return lambda: jobs.confirm_import(pk=row.pk, actor=person, seen=row.version)

    with (
        holding_locks(LOCK, f"two people: {change.what}") as lock,
        in_background(ask(people[0])) as one,
        in_background(ask(people[1])) as other,
    ):
        wait_for_waiting(2)
        lock.rollback()
        assert one.result()
        assert other.result()
    jobs.run_import(pk=row.pk)

    row.refresh_from_db()
    assert row.state == ImportState.IMPORTED


def test_a_price_that_falls_while_codes_are_imported_counts() -> None:
    shelf = own_shelf(make_product(price="10.00"))
    details = BatchDetails(unit_cost=Decimal("9.00"), cost_currency="USD")

    def import_them() -> None:
        with two_people_import_codes(shelf, details, actor=keeper(), about="codes") as check:
            check()
            Shelf.objects.filter(pk=shelf.pk).update(price="8.00")
            check()

    with pytest.raises(LowPrices, match=r"8\.00 USD, and a code costs 9\.00"):
        import_them()


def test_held_codes_count_when_a_price_falls_below_their_cost() -> None:
    """One person could hold all codes, lower the price and release them."""
    shelf, person = own_shelf(make_product(price="10.00")), keeper()
    batch = make_batch(shelf)
    type(batch).objects.filter(pk=batch.pk).update(unit_cost="9.00", cost_currency="USD")
    hold, _number = hold_codes(codes=Q(shelf=shelf), reason="look", held_by="test")
    assert hold is not None
    on_shelf_page(person, own_shelf(shelf.product), "8.90")
    assert own_shelf(shelf.product).price == 10

    void_hold(hold.pk)
    on_shelf_page(person, own_shelf(shelf.product), "8.90")
    assert own_shelf(shelf.product).price == Decimal("8.90")


def test_codes_that_were_held_when_stock_was_counted_count_when_they_are_released() -> None:
    shelf, person = own_shelf(make_product(price="10.00", codes=1)), keeper()
    batch = make_batch(shelf)
    type(batch).objects.filter(pk=batch.pk).update(unit_cost="9.00", cost_currency="USD")
    later = timezone.now().date() + timedelta(days=10)  # a count without them
    DailyStock.objects.create(day=later, shelf=shelf, batch=None, codes=1)

    on_shelf_page(person, own_shelf(shelf.product), "8.90")

    assert own_shelf(shelf.product).price == 10


def test_void_codes_do_not_count_when_a_price_falls_below_their_cost() -> None:
    """Other codes of the shelf are in stock, and others are held."""
    shelf, person = own_shelf(make_product(price="10.00")), keeper()
    batches = [make_batch(shelf) for _ in range(3)]
    for batch, cost in zip(batches, ("9.00", "8.00", "7.00"), strict=True):
        type(batch).objects.filter(pk=batch.pk).update(unit_cost=cost, cost_currency="USD")
    holds = [hold_codes(codes=one.its_codes, reason="x", held_by="test")[0] for one in batches[:2]]
    assert holds[0] is not None
    void_hold(holds[0].pk)

    on_shelf_page(person, own_shelf(shelf.product), "8.90")
    assert own_shelf(shelf.product).price == Decimal("8.90")

    on_shelf_page(person, own_shelf(shelf.product), "7.90")
    assert own_shelf(shelf.product).price == Decimal("8.90")


def test_a_request_ends_after_a_day() -> None:
    shelf = own_shelf(make_product(price="2.50"))
    on_shelf_page(keeper(), shelf, LOW)
    TwoPersonChange.objects.update(asked_at=timezone.now() - WAITS_FOR)
    on_shelf_page(keeper(), shelf, LOW)
    assert own_shelf(shelf.product).price == Decimal("2.50")


def test_a_request_is_for_one_price_and_one_change() -> None:
    shelf, first, second = own_shelf(make_product(price="2.50")), keeper(), keeper()
    on_shelf_page(first, shelf, "1.00")
    on_shelf_page(second, shelf, LOW)
    assert own_shelf(shelf.product).price == Decimal("2.50")
    on_shelf_page(second, shelf, "1.00")
    assert own_shelf(shelf.product).price == 1
    on_shelf_page(second, own_shelf(shelf.product), LOW)
    assert own_shelf(shelf.product).price == 1


def test_the_setting_says_how_far_one_person_goes(settings: Any) -> None:
    settings.PRICE_FALL_PERCENT = 80
    shelf = own_shelf(make_product(price="10.00"))
    on_shelf_page(keeper(), shelf, "2.00")
    assert own_shelf(shelf.product).price == 2


def test_a_command_refuses_a_low_price_and_says_what_to_do(tmp_path: Any) -> None:
    shelf = own_shelf(make_product(price="2.50"))
    product = {"id": shelf.product_id, "name": "Card", "currency": "USD", "price": LOW}
    file = tmp_path / "prices.json"
    file.write_bytes(orjson.dumps({"products": [product]}))
    with pytest.raises(CommandError, match="Have two members of staff set it in the back office"):
        call_command("import_catalogue", str(file))
    assert own_shelf(shelf.product).price == Decimal("2.50")
    assert Product.objects.get(pk=shelf.product_id).name != "Card"

    for _ in range(2):
        on_shelf_page(keeper(), shelf, LOW)
    call_command("import_catalogue", str(file))
    assert Product.objects.get(pk=shelf.product_id).name == "Card"


# --- Price lists ---------------------------------------------------------------------------------


def _list(merchant: Merchant | None = None) -> PriceList:
    row = PriceList.objects.create(name="Gold", currency="USD")
    if merchant is not None:
        Account.objects.filter(clients=merchant.client).update(price_list_id=row.pk)
    return row


def _add(person: User, row: PriceList, **typed: Any) -> Any:
    browser, address = signed_in(person), url(row, "add_price")
    asked = browser.post(address, typed)
    return browser.post(address, hidden(asked), follow=True)


@pytest.mark.parametrize(
    "terms", [{"terms": "percent", "percent_off": "50"}, {"terms": "fixed", "price": LOW}]
)
def test_one_stock_keeper_does_not_sell_by_a_list(terms: Any, merchant: Merchant) -> None:
    product, row, person = make_product(price="2.50", codes=99), _list(merchant), keeper()
    typed = {"about": "product", "product": product.pk, **terms}

    page = _add(person, row, **typed).content.decode()

    assert "needs a second person" in page
    assert buy(merchant, product, 98) == Decimal("245.00")
    waits = AuditEntry.objects.get(action="request_made")
    assert waits.note.startswith(f"Waits for another: price list {row.pk}, product {product.pk}: ")
    assert not re.search("True|None", waits.note)
    _add(person, row, **typed)
    assert not row.entries.exists()
    _add(keeper(), row, **typed)
    assert row.entries.exists()


def test_a_price_of_a_list_asks_what_it_is_about(merchant: Merchant) -> None:
    product, row = make_product(price="2.50"), _list(merchant)
    _add(keeper(), row, terms="percent", percent_off="20")
    assert not row.entries.exists()

    browser, address = signed_in(keeper()), url(row, "add_price")
    typed = {"about": "everything", "terms": "percent", "percent_off": "20"}
    page = browser.post(address, typed)
    assert not row.entries.exists()
    assert product.name in page.content.decode()
    assert "2.50 USD" in page.content.decode()
    assert "2.00 USD" in page.content.decode()
    browser.post(address, hidden(page))
    assert row.entries.get().percent_off == 20


def test_prices_that_changed_after_the_preview_are_shown_again(merchant: Merchant) -> None:
    shelf, row = own_shelf(make_product(price="2.50")), _list(merchant)
    browser, address = signed_in(keeper()), url(row, "add_price")
    typed = {"about": "everything", "terms": "percent", "percent_off": "20"}
    page = browser.post(address, typed)
    Shelf.objects.filter(pk=shelf.pk).update(price=Decimal("2.25"))

    again = browser.post(address, hidden(page))

    assert not row.entries.exists()
    assert "1.80 USD" in again.content.decode()
    browser.post(address, hidden(again))
    assert row.entries.exists()


def test_the_choice_of_a_list_shows_prices_and_waits(merchant: Merchant) -> None:
    product, row = make_product(price="2.50", codes=99), _list()
    two = make_staff(superuser=True)
    add_price_entry(
        price_list_id=row.pk,
        target=Target(product_id=product.pk),
        terms=Terms(price=Decimal(LOW)),
        actor=two,
    )
    rights = ("accounts.view_account", "catalogue.assign_pricelist", "catalogue.view_pricelist")
    account = Account.objects.get(clients=merchant.client)
    labels: list[bool] = []

    def choose() -> Any:
        browser, address = signed_in(make_staff(*rights)), url(account, "choose_list")
        asked = browser.post(address, {"price_list": row.pk})
        assert product.name in asked.content.decode()
        labels.append("Ask for approval" in asked.content.decode())
        return browser.post(address, hidden(asked), follow=True)

    assert "needs a second person" in choose().content.decode()
    assert buy(merchant, product, 98) == Decimal("245.00")
    choose()
    account.refresh_from_db()
    assert account.price_list_id == row.pk
    assert labels == [True, False]
    entry = AuditEntry.objects.get(object_type="accounts.account", action="changed")
    assert re.fullmatch(r"Asked by \S+, confirmed by \S+", entry.note)


def test_the_end_of_a_price_shows_prices_and_waits(merchant: Merchant) -> None:
    product, row, boss = make_product(price="2.50"), _list(merchant), make_staff(superuser=True)
    for target, price in (
        (Target(product_id=product.pk), LOW),
        (Target(shelf_id=own_shelf(product).pk), "2.40"),
    ):
        entry = add_price_entry(
            price_list_id=row.pk, target=target, terms=Terms(price=Decimal(price)), actor=boss
        )
    browser, address = signed_in(keeper()), url(entry, "end")
    shown = browser.get(address).content.decode()
    assert "2.40 USD" in shown
    assert "Ask for approval" in shown
    page = browser.post(address, hidden(browser.get(address)), follow=True).content.decode()
    assert "needs a second person" in page
    entry.refresh_from_db()
    assert entry.valid_until is None
    other = signed_in(keeper())
    other.post(address, hidden(other.get(address)))
    entry.refresh_from_db()
    assert entry.valid_until is not None


def test_a_preview_tells_who_must_agree(merchant: Merchant) -> None:
    product, row, first, second = make_product(price="2.50"), _list(merchant), keeper(), keeper()
    shelf = own_shelf(product)
    prices = f"/admin/catalogue/shelf/prices/?row={shelf.pk}"

    def preview(person: User, address: str, **typed: str) -> str:
        browser = signed_in(person)
        return text_of(browser.post(address, hidden(browser.get(address)) | typed))

    def new_price(person: User, price: str) -> str:
        return preview(person, prices, **{"change": "prices", f"price-{shelf.pk}": price})

    low = new_price(first, LOW)
    assert "Another person must agree:" in low
    assert f"These may: {second.username}" in low
    assert ("Ask for approval" in low, "Change these prices" in low) == (True, False)
    assert "Change these prices" in new_price(first, "2.40")
    assert "Change these prices" in new_price(make_staff(superuser=True), LOW)
    on_prices_page(first, shelf, LOW)
    assert "Ask for approval" in new_price(first, LOW)
    assert "Another person must agree" not in new_price(second, LOW)

    add, entry = url(row, "add_price"), {"about": "everything", "terms": "percent"}
    assert "Ask for approval" in preview(first, add, **entry, percent_off="90")
    assert "Change these prices" in preview(first, add, **entry, percent_off="5")
    form = signed_in(first)
    typed = form_of(form, url(product)) | {"shelves-0-price": LOW}
    assert f"These may: {second.username}" in text_of(form.post(url(product), typed))


def test_a_price_that_a_superuser_confirms_names_who_asked() -> None:
    shelf, first, boss = own_shelf(make_product(price="2.50")), keeper(), make_staff(superuser=True)

    on_prices_page(first, shelf, LOW)
    on_prices_page(boss, shelf, LOW)

    entry = AuditEntry.objects.filter(action="price_changed").latest("pk")
    assert entry.note == f"Asked by {first}, confirmed by {boss}"


def test_a_preview_names_lists_with_a_higher_fixed_price() -> None:
    product, boss, browser = make_product(price="10.00"), make_staff(superuser=True), signed_in()
    shelf, topup = own_shelf(product), make_topup_product()
    targets = {
        "Partners": (Target(product_id=product.pk), "9.49"),
        "Cheap": (Target(shelf_id=shelf.pk), "8.00"),
        "Gamers": (Target(topup_product_id=topup.pk), "90.00"),
    }
    for name, (target, price) in targets.items():
        add_price_entry(
            price_list_id=PriceList.objects.create(name=name, currency="USD").pk,
            target=target,
            terms=Terms(price=Decimal(price)),
            actor=boss,
        )

    def preview(row: Any, price: str) -> set[str]:
        address = f"/admin/{row._meta.app_label}/{row._meta.model_name}/prices/?row={row.pk}"
        typed = {"change": "prices", f"price-{row.pk}": price}
        page = text_of(browser.post(address, hidden(browser.get(address)) | typed))
        above = page.partition("a fixed price above the new one:")[2]
        return {name for name in targets if name in above}

    assert preview(shelf, "9.00") == {"Partners"}
    assert preview(shelf, "7.00") == {"Partners", "Cheap"}
    assert preview(shelf, "9.50") == set()
    assert preview(shelf, "10.50") == set()
    assert preview(topup, "0.50") == {"Gamers"}


def test_unchanged_terms_show_that_nothing_changes(merchant: Merchant) -> None:
    make_product(price="2.50")
    row, browser = _list(merchant), signed_in(keeper())
    page = browser.post(url(row, "add_price"), {"about": "everything", "terms": "regular"})
    assert "No price changes" in page.content.decode()


# --- What a form about prices shows ---------------------------------------------------------------


def _discounted(merchant: Merchant, **target: Any) -> PriceList:
    """A list with 20 % off."""
    row = _list(merchant)
    terms = Terms(percent_off=Decimal(20))
    add_price_entry(price_list_id=row.pk, target=Target(**target), terms=terms, actor=make_staff())
    return row


def test_another_category_shows_the_prices_in_lists_and_asks(merchant: Merchant) -> None:
    category, product = make_category(), make_product(price="2.50")
    _discounted(merchant, category_id=category.pk)
    topup = make_topup_product(price="5.00")
    right = ("topups.change_topupproduct", "topups.view_topupproduct", "catalogue.view_category")
    person = make_staff(*right)
    for browser, row, old, new in (
        (signed_in(keeper()), product, "2.50 USD", "2.00 USD"),
        (signed_in(person), topup, "5.00 USD", "4.00 USD"),
    ):
        address = url(row)
        page = browser.post(address, form_of(browser, address) | {"category": category.pk})
        text = page.content.decode()
        assert "Gold" in text
        assert old in text
        assert new in text
        row.refresh_from_db()
        assert row.category_id is None
        assert b"was changed successfully" not in browser.get(address).content

        answer = browser.post(address, hidden(page), follow=True)
        assert "was changed successfully" in answer.content.decode()
        row.refresh_from_db()
        assert row.category_id == category.pk


def test_a_regular_price_shows_the_prices_in_lists_and_asks(merchant: Merchant) -> None:
    shelf = own_shelf(make_product(price="2.50"))
    _discounted(merchant, product_id=shelf.product_id)

    batch = make_batch(shelf)
    Batch.objects.filter(pk=batch.pk).update(unit_cost=Decimal("1.00"), cost_currency="USD")

    page = on_shelf_page(keeper(), shelf, "2.40")
    first, second = page.context["changes"].rows
    assert (first["list"], first["old"], first["new"]) == (
        "Regular prices",
        *("2.50 USD", "2.40 USD"),
    )
    assert first["margin"] == "60.0 % → 58.3 %"
    assert (second["list"], second["new"]) == ("Gold", "1.92 USD")
    assert "1.92 USD" in page.content.decode()
    assert "successfully" not in page.content.decode(), "nothing is saved yet"
    assert own_shelf(shelf.product).price == Decimal("2.50")

    browser = signed_in(keeper())
    address = f"/admin/catalogue/shelf/prices/?row={shelf.pk}"
    typed = hidden(browser.get(address)) | {"change": "prices", f"price-{shelf.pk}": "2.40"}
    preview = browser.post(address, typed)
    assert "1.92 USD" in preview.content.decode()
    assert "Gold" in preview.content.decode()
    confirmed = hidden(preview) | {"confirmed": "1"}
    stale = browser.post(address, confirmed | {"seen": "older"})
    assert "changed meanwhile" in stale.content.decode()
    assert own_shelf(shelf.product).price == Decimal("2.50")
    browser.post(address, confirmed)
    assert own_shelf(shelf.product).price == Decimal("2.40")


def test_an_entry_shows_each_moment_at_which_a_price_changes(merchant: Merchant) -> None:
    shelf, row = own_shelf(make_product(price="2.50")), _list(merchant)
    browser, address = signed_in(keeper()), url(row, "add_price")
    day = timezone.now() + timedelta(days=1)
    Shelf.objects.filter(pk=shelf.pk).update(next_price="2.60", next_price_from=day)
    typed = {"about": "shelf", "shelf": shelf.pk, "terms": "percent", "percent_off": "10"}
    text = browser.post(address, typed).content.decode()
    for old, new in (("2.50", "2.25"), ("2.60", "2.34")):
        assert f"{old} USD" in text
        assert f"{new} USD" in text
    assert not row.entries.exists()


def test_the_end_of_an_entry_is_asked_again_if_prices_changed(merchant: Merchant) -> None:
    shelf = own_shelf(make_product(price="2.50"))
    row = _discounted(merchant, product_id=shelf.product_id)
    entry = row.entries.get()
    browser, address = signed_in(keeper()), url(entry, "end")
    browser.post(address)
    page = browser.get(address)
    Shelf.objects.filter(pk=shelf.pk).update(price=Decimal("2.60"))
    again = browser.post(address, hidden(page))
    assert "changed meanwhile" in again.content.decode()
    assert "2.60 USD" in again.content.decode()
    entry.refresh_from_db()
    assert entry.valid_until is None
    browser.post(address, hidden(again))
    entry.refresh_from_db()
    assert entry.valid_until is not None


def test_a_file_shows_the_prices_in_lists(merchant: Merchant, tmp_path: Any) -> None:
    """A file that moves a product into another category."""
    shelf, category = own_shelf(make_product(price="2.50")), make_category()
    _discounted(merchant, category_id=category.pk)
    product = {"id": shelf.product_id, "name": "Card", "currency": "USD", "price": "2.50"}
    content = orjson.dumps({"products": [product | {"category": category.pk}]})
    file = tmp_path / "catalogue.json"
    file.write_bytes(content)

    assert check_catalogue(path=file)["prices"] == ["Card (Gold): 2.00 USD instead of 2.50"]

    waiting = jobs.upload_file(
        kind=ImportKind.CATALOGUE,
        content=content,
        file_name="catalogue.json",
        shelf=None,
        actor=keeper(),
        token=uuid4(),
    )
    jobs.run_import(pk=waiting.pk)
    waiting.refresh_from_db()
    assert [one["name"] for one in waiting.result["prices"]] == ["Card (Gold)"]
    browser = signed_in(keeper())
    assert "Card (Gold)" in browser.get(url(waiting)).content.decode()
    waiting.refresh_from_db()
    address = reverse("admin:imports_fileimport_step", args=[waiting.pk, "confirm"])
    browser.post(address, {"seen": waiting.version})
    jobs.run_import(pk=waiting.pk)
    shelf.product.refresh_from_db()
    assert shelf.product.category_id == category.pk


def test_two_people_agree_on_a_cost_that_each_writes_in_their_way() -> None:
    batch = make_batch(own_shelf(make_product()))
    Batch.objects.filter(pk=batch.pk).update(unit_cost="9.5000", cost_currency="USD")
    for typed in ("8.5", "8.5000"):
        browser = signed_in(keeper())
        form = form_of(browser, url(batch)) | {"unit_cost": typed}
        browser.post(url(batch), form)

    waited = AuditEntry.objects.get(note__startswith="Waits for another: ")
    assert waited.note == (f"Waits for another: cost of batch {batch.pk}: 8.50 USD, not 9.50 USD")
    assert Batch.objects.get(pk=batch.pk).unit_cost == Decimal("8.5")
