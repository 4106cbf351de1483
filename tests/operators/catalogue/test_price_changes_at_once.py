"""Changes of prices wait for each other, and purchases do not wait for them to be computed."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from decimal import Decimal
from pathlib import Path
from threading import Event
from typing import Any

import orjson
import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from accounts.models import Account
from catalogue.models import PriceList, PriceListEntry, Shelf
from catalogue.price_lists import Target, Terms, add_price_entry
from core.backoffice.staff_roles import StaffRole
from core.inputs import InputProblem
from figures import low_prices, price_lines
from figures.models import ExchangeRate
from operators.imports import jobs
from operators.imports import low_prices as limit_of_prices
from operators.imports.low_prices import two_people_set_low_prices
from operators.imports.models import ImportState
from operators.sign_in.models import TwoPersonChange
from operators.sign_in.second_person import ask_or_agree
from tests.concurrency.racing import TIMEOUT, in_background
from tests.factories import make_merchant, make_product, own_shelf
from tests.operators.back_office import make_staff, signed_in, staff_with, url
from tests.operators.catalogue.test_low_prices import (
    LOWER_RATES,
    by_file,
    on_prices_page,
    on_product_page,
    on_shelf_page,
    page_after,
)
from tests.operators.catalogue.test_price_list_files import confirm, uploaded
from tests.operators.pages.test_pages_are_audited import hidden

BUSY = "Prices are being changed now. Try again in a minute."
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('changes of prices', 0))"


@contextmanager
def other_change() -> Iterator[Any]:
    """Another change of prices runs for longer than this one waits. Yields its cursor."""
    with closing(connection.copy()) as other, other.cursor() as elsewhere:
        other.set_autocommit(False)
        elsewhere.execute(LOCK)
        cursor = connection.cursor()
        cursor.execute("SET lock_timeout = '50ms'")
        try:
            yield elsewhere
        finally:
            cursor.execute("RESET lock_timeout")


def listed(price: str) -> tuple[PriceList, PriceListEntry]:
    """A list that sells everything else at the regular price, and one product at this one."""
    row = PriceList.objects.create(name="Gold", currency="USD")
    entry = add_price_entry(
        price_list_id=row.pk,
        target=Target(product_id=make_product(price="2.50").pk),
        terms=Terms(price=Decimal(price)),
        actor=make_staff(),
    )
    return row, entry


@contextmanager
def slow_prices() -> Iterator[None]:
    """The prices in lists take longer to compute than a statement may take."""
    slow = price_lines.LINES.replace("ORDER BY", "AND pg_sleep(9) IS NULL ORDER BY")
    with pytest.MonkeyPatch.context() as patch, connection.cursor() as cursor:
        patch.setattr(price_lines, "LINES", slow)
        cursor.execute("SET statement_timeout = '300ms'")
        try:
            yield
        finally:
            cursor.execute("RESET statement_timeout")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("trouble", "words"), [(other_change, BUSY), (slow_prices, "Change fewer prices at a time.")]
)
def test_each_form_says_why_prices_cannot_be_changed(
    trouble: Callable[[], AbstractContextManager[object]], words: str
) -> None:
    shelf, account = (
        own_shelf(make_product(price="2.50")),
        Account.objects.get(clients=make_merchant().client),
    )
    row, entry = listed("2.40")
    rate = ExchangeRate.objects.create(
        currency="EUR", into="USD", day=timezone.now().date(), rate="1"
    )
    keeper, boss = staff_with(StaffRole.STOCK_KEEPER), make_staff(superuser=True)

    def confirmed(address: str, typed: dict[str, Any]) -> Any:
        browser = signed_in(boss)
        preview = browser.post(address, typed, follow=True)
        if words in preview.content.decode():
            return preview
        return browser.post(address, hidden(preview), follow=True)

    forms: dict[str, Callable[[], Any]] = {
        "product": lambda: on_product_page(keeper, shelf, "2.40"),
        "shelf": lambda: on_shelf_page(keeper, shelf, "2.40"),
        "change prices": lambda: on_prices_page(keeper, shelf, "2.40"),
        "add a price": lambda: confirmed(
            url(row, "add_price"),
            {"about": "product", "product": shelf.product_id, "terms": "fixed", "price": "2.45"},
        ),
        "end a price": lambda: confirmed(url(entry, "end"), {}),
        "choice of a list": lambda: confirmed(url(account, "choose_list"), {"price_list": row.pk}),
    }
    if words == BUSY:  # a rate changes no price
        forms |= {
            "exchange rate": lambda: LOWER_RATES["a lower rate"](boss, rate),
            "deleted rate": lambda: LOWER_RATES["a deleted rate"](boss, rate),
        }
    with trouble():
        pages = {name: page_after(send()).content.decode() for name, send in forms.items()}
    silent = [name for name, page in pages.items() if words not in page]
    assert silent == []
    shelf.refresh_from_db()
    entry.refresh_from_db()
    account.refresh_from_db()
    assert ExchangeRate.objects.get(pk=rate.pk).rate == 1
    assert (shelf.price, row.entries.count()) == (Decimal("2.50"), 1)
    assert (entry.valid_until, account.price_list_id) == (None, None)


@pytest.mark.django_db
def test_a_command_says_that_prices_are_being_changed(tmp_path: Path) -> None:
    product = {"name": "Card", "currency": "USD", "price": "10.00"}
    file = tmp_path / "prices.json"
    file.write_bytes(orjson.dumps({"products": [product | {"id": make_product(price="10.00").pk}]}))
    with other_change(), pytest.raises(CommandError, match=BUSY):
        call_command("import_catalogue", str(file))
    call_command("import_catalogue", str(file))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["catalogue", "price_lists", "exchange_rates"])
def test_a_check_and_an_import_wait_until_prices_may_change(kind: str) -> None:
    shelf, (gold, _entry) = own_shelf(make_product(price="2.50")), listed("2.40")
    texts = {
        "catalogue": f"kind,id,name,currency,price\nproduct,{shelf.product_id},Card,USD,2.40",
        "price_lists": "price_list,about,id,terms,price,percent_off,currency,since,until\n"
        f"{gold.pk},product,{shelf.product_id},fixed,2.45,,USD,,",
        "exchange_rates": f"currency,into,day,rate\nEUR,USD,{timezone.now().date()},1",
    }
    boss = make_staff(superuser=True)

    def state() -> tuple[str, int, list[str]]:
        row.refresh_from_db()
        return row.state, row.attempts, row.problems

    with other_change() as other:
        row = uploaded(boss, texts[kind].encode(), kind)
        assert state() == (ImportState.CHECKING, 0, [])
        other.connection.rollback()
        other.execute("SELECT FROM catalogue_shelf FOR UPDATE")
        other.execute("LOCK TABLE catalogue_pricelistentry, figures_exchangerate IN SHARE MODE")
        jobs.run_import(pk=row.pk)
        assert state() == (ImportState.CHECKING, 0, [])
    jobs.run_import(pk=row.pk)
    assert state() == (ImportState.READY, 1, [])
    with other_change():
        confirm(boss, row)
        assert state() == (ImportState.IMPORTING, 0, [])
    jobs.run_import(pk=row.pk)
    assert state() == (ImportState.IMPORTED, 1, [])


@pytest.mark.django_db(transaction=True)
def test_each_preview_of_locked_rows_says_that_prices_are_being_changed() -> None:
    """An import locks the shelves and lists that it changes, and a preview waits for it."""
    shelf, (row, entry) = own_shelf(make_product(price="2.50")), listed("2.40")
    browser = signed_in(staff_with(StaffRole.STOCK_KEEPER))
    address = f"/admin/catalogue/shelf/prices/?row={shelf.pk}"
    forms = {
        address: hidden(browser.get(address)) | {"change": "prices", f"price-{shelf.pk}": "2.40"},
        url(row, "add_price"): {"about": "everything", "terms": "regular"},
        url(entry, "end"): {},
    }
    with other_change() as other:
        for locked in (shelf, row, entry):
            other.execute(f"SELECT FROM {locked._meta.db_table} WHERE id = {locked.pk} FOR UPDATE")
        answers = {place: browser.post(place, typed, follow=True) for place, typed in forms.items()}
    assert [place for place, one in answers.items() if BUSY not in one.content.decode()] == []


@pytest.mark.django_db(transaction=True)
def test_purchases_do_not_wait_while_the_prices_in_lists_are_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shelf, (row, _entry) = own_shelf(make_product(price="2.50")), listed("2.40")
    Account.objects.filter(clients=make_merchant().client).update(price_list_id=row.pk)
    add_price_entry(
        price_list_id=row.pk,
        target=Target(shelf_id=shelf.pk),
        terms=Terms(percent_off=Decimal(20)),
        actor=make_staff(),
    )
    looked: Counter[str] = Counter()

    def while_it_computes(name: str, module: Any) -> None:
        function = getattr(module, name)

        def checked(*arguments: Any, **options: Any) -> Any:
            with closing(connection.copy()) as other, other.cursor() as cursor:
                cursor.execute(
                    "SELECT FROM catalogue_shelf WHERE id = %s FOR NO KEY UPDATE NOWAIT", [shelf.pk]
                )
            looked[name] += 1
            return function(*arguments, **options)

        monkeypatch.setattr(module, name, checked)

    keeper = staff_with(StaffRole.STOCK_KEEPER)
    while_it_computes("read_lines", price_lines)
    while_it_computes("past_prices", low_prices)
    asked = on_shelf_page(keeper, shelf, "2.40")
    assert "1.92 USD" in asked.content.decode()
    signed_in(keeper).post(url(shelf), hidden(asked))
    assert own_shelf(shelf.product).price == Decimal("2.40")
    on_prices_page(keeper, own_shelf(shelf.product), "2.30")
    assert own_shelf(shelf.product).price == Decimal("2.30")
    assert looked["read_lines"] >= 10, "two for each preview, and two for each change"
    assert looked["past_prices"] == 4, "one for each preview, and one for each change"
    by_file(keeper, own_shelf(shelf.product), "2.20")
    assert own_shelf(shelf.product).price == Decimal("2.20")
    assert looked["past_prices"] == 5


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("at_once", [False, True], ids=["one after the other", "at once"])
def test_no_request_is_approved_without_a_change(
    at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ben asks after Anna's change was undone: once her request is stored, or just before."""
    shelf = own_shelf(make_product(price="2.50"))
    anna, ben = make_staff(), make_staff()
    calls, undone, go_on = Counter[User](), Event(), Event()

    def change(actor: User) -> str:
        rows = Shelf.objects.filter(pk=shelf.pk)
        try:
            with two_people_set_low_prices(rows, actor=actor):
                rows.update(price="0.01")
        except InputProblem as problem:
            return type(problem).__name__
        return "changed"

    def ask(*, actor: User, **options: Any) -> bool:
        calls[actor] += 1
        if at_once and (actor, calls[actor]) == (anna, 2):
            undone.set()
            assert go_on.wait(TIMEOUT)
        return ask_or_agree(actor=actor, **options)

    monkeypatch.setattr(limit_of_prices, "ask_or_agree", ask)
    with in_background(lambda: change(anna)) as annas:
        if at_once:
            assert undone.wait(TIMEOUT)
            bens = change(ben)
            go_on.set()
        else:
            annas.result(TIMEOUT)
            bens = change(ben)
    price = own_shelf(shelf.product).price
    approved = TwoPersonChange.objects.exclude(approved_by=None).count()
    answers = annas.result(), bens
    if at_once:
        assert (*answers, approved, price) == ("PricesBusy", "LowPrices", 0, Decimal("2.50"))
        assert change(anna) == "changed", "she agrees to Ben's request"
    else:
        assert (*answers, approved, price) == ("LowPrices", "changed", 1, Decimal("0.01"))
