"""A form never writes back an old price that it shows, also when the next price begins."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from functools import partial
from itertools import count
from time import monotonic, sleep
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from audit.models import AuditAction, AuditEntry
from catalogue.models import Shelf
from operators.catalogue.products import ShelfForm
from operators.frame import form_fields
from tests.concurrency.racing import race
from tests.factories import make_product, make_topup_product, own_shelf
from tests.operators.back_office import form_of, signed_in, url
from tests.operators.pages.test_pages_are_audited import hidden
from topups.models import TopUpProduct

OLD, NEW = Decimal("10.00"), Decimal("12.00")
PAGES = ["shelf", "product", "top-up product", "prices"]


def _begin(row: Any) -> None:
    """The next price begins."""
    type(row).objects.filter(pk=row.pk).update(next_price=NEW, next_price_from=timezone.now())


def _open(browser: Client, page: str) -> tuple[Any, str, str, dict[str, Any]]:
    """The row with the price, the address of the page, the name of the field, and the form."""
    if page == "top-up product":
        row: Any = make_topup_product(price="10.00")
        address, field = url(row), "price"
    else:
        product = make_product(price="10.00")
        row = own_shelf(product)
        address, field = url(product if page == "product" else row), "price"
        if page == "product":
            field = "shelves-0-price"
        if page == "prices":
            address, field = f"/admin/catalogue/shelf/prices/?row={row.pk}", f"price-{row.pk}"
            return (
                row,
                address,
                field,
                hidden(browser.get(address))
                | {
                    "change": "prices",
                    field: "10.00",
                },
            )
    return row, address, field, form_of(browser, address)


@pytest.mark.django_db
@pytest.mark.parametrize("page", PAGES)
def test_a_price_that_nobody_typed_is_not_saved(page: str) -> None:
    browser = signed_in()
    row, address, _, form = _open(browser, page)
    _begin(row)
    other = {"quantity_step": "2", "name": "Another", "shelves-0-quantity_step": "2"}
    answer = browser.post(address, {**form, **other})
    assert answer.status_code == (200 if page == "prices" else 302)
    if page == "prices":
        assert "No price would change" in answer.content.decode()
    assert type(row).objects.get(pk=row.pk).price == NEW


@pytest.mark.django_db
@pytest.mark.parametrize("page", PAGES)
def test_a_price_typed_in_place_of_an_old_one_comes_back(page: str) -> None:
    browser = signed_in()
    row, address, field, form = _open(browser, page)
    _begin(row)
    answer = browser.post(address, {**form, field: "11.50"})
    text = answer.content.decode()
    assert "The price has changed meanwhile: it is 12.00 now" in text
    assert 'value="11.50"' in text
    assert type(row).objects.get(pk=row.pk).price == NEW

    again = browser.post(address, {**form, **hidden(answer), field: "11.50"})
    if page == "prices":
        again = browser.post(address, hidden(again) | {"confirmed": "1"})
    assert again.status_code == 302
    assert type(row).objects.get(pk=row.pk).price == Decimal("11.50")


@pytest.mark.django_db
def test_a_row_that_nobody_typed_leaves_the_preview() -> None:
    browser, rows = signed_in(), [own_shelf(make_product(price="10.00")) for _ in range(2)]
    typed, other = rows
    address = f"/admin/catalogue/shelf/prices/?row={typed.pk}&row={other.pk}"
    form = hidden(browser.get(address)) | {f"price-{one.pk}": "10.00" for one in rows}
    preview = browser.post(address, form | {"change": "prices", f"price-{typed.pk}": "11.00"})
    _begin(other)
    assert browser.post(address, hidden(preview) | {"confirmed": "1"}).status_code == 302
    assert [Shelf.objects.get(pk=one.pk).price for one in rows] == [11, NEW]


@pytest.mark.django_db
@pytest.mark.parametrize("page", PAGES)
def test_a_new_price_withdraws_the_next(page: str) -> None:
    browser = signed_in()
    row, address, field, form = _open(browser, page)
    later = timezone.now() + timedelta(days=1)
    type(row).objects.filter(pk=row.pk).update(next_price=NEW, next_price_from=later)
    answer = browser.post(address, {**form, field: "11.00"})
    if page == "prices":
        answer = browser.post(address, hidden(answer) | {"confirmed": "1"})
    assert answer.status_code == 302
    found = type(row).objects.get(pk=row.pk)
    assert (found.price, found.next_price_from) == (11, None)
    entry = AuditEntry.objects.filter(action=AuditAction.PRICE_CHANGED).latest("pk")
    assert Decimal(entry.changes["next_price"][0]) == NEW
    assert entry.changes["next_price"][1] is None


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "control"])
def test_saves_across_a_begin_keep_the_new_price(
    guarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forms that show the old price are saved again and again, before and after the new begins."""
    if not guarded:
        monkeypatch.setattr(ShelfForm.declared_fields["price"], "show_hidden_initial", False)
        monkeypatch.setattr(form_fields, "check_price_shown", lambda *_: None)
    browsers = [signed_in() for _ in range(3)]
    shelf, page, _, form = _open(browsers[0], "shelf")
    Shelf.objects.filter(pk=shelf.pk).update(
        next_price=NEW, next_price_from=timezone.now() + timedelta(seconds=1)
    )
    begins = monotonic() + 1

    def save(browser: Client) -> list[bool]:
        """Whether each save was sent after the begin."""
        sides = []
        for number in count():
            late = monotonic() > begins + 0.1
            step = {"quantity_step": str(1 + number % 2)}
            assert browser.post(page, {**form, **step}).status_code == 302
            sides.append(late)
            if sum(sides) == 2:
                return sides
            sleep(0.1)
        raise AssertionError

    for sides in race([partial(save, browser) for browser in browsers]):
        assert False in sides
    assert Shelf.objects.get(pk=shelf.pk).price == (NEW if guarded else OLD)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "control"])
@pytest.mark.parametrize("page", ["shelf", "product", "top-up product"])
def test_one_of_many_forms_with_one_price_is_saved(
    page: str, guarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forms that show one price are saved at once with prices of their own."""
    if not guarded:
        monkeypatch.setattr(form_fields, "check_price_shown", lambda *_: None)
    browsers = [signed_in() for _ in range(4)]
    row, address, field, form = _open(browsers[0], page)
    prices = [Decimal(11) + number for number in range(len(browsers))]

    def save(browser: Client, price: Decimal) -> bool:
        confirmed = {field: str(price), f"{field}-confirmed": str(price)}
        return bool(browser.post(address, {**form, **confirmed}).status_code == 302)

    calls: list[Callable[[], bool]] = [
        partial(save, browser, price) for browser, price in zip(browsers, prices, strict=True)
    ]
    saved = race(calls)
    if guarded:
        assert sum(saved) == 1
        model = TopUpProduct if page == "top-up product" else Shelf
        assert model.objects.get(pk=row.pk).price == prices[saved.index(True)]
    else:
        assert sum(saved) > 1
