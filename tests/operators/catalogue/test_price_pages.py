"""Staff make price lists, assign them, and change the prices of many shelves on one page."""

import html
import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Account
from catalogue.models import Batch, PriceList, PriceListEntry, Product, Shelf
from catalogue.price_lists import Target, Terms, add_price_entry
from core.backoffice.staff_roles import StaffRole
from operators.catalogue import price_changes
from operators.catalogue.price_list_prices import cost_text
from operators.history.entries import value_text
from tests.factories import (
    make_account,
    make_batch,
    make_category,
    make_product,
    make_topup_product,
    own_shelf,
)
from tests.operators.back_office import list_url, make_staff, signed_in, staff_with, text_of, url
from tests.operators.pages.test_pages_are_audited import hidden
from topups.models import TopUpProduct

pytestmark = pytest.mark.django_db

ENTRIES = ("catalogue.view_pricelist", "catalogue.view_pricelistentry")
CHANGES = (*ENTRIES, "catalogue.change_pricelistentry")


def _list() -> PriceList:
    return PriceList.objects.create(name="Gold", currency="USD")


def _add(browser: Client, row: PriceList, **typed: Any) -> Any:
    targets = ("shelf", "product", "category", "topup_product")
    about = next((name for name in targets if name in typed), "everything")
    address = url(row, "add_price")
    asked = browser.post(address, {"about": about, "terms": "regular", **typed})
    if "confirmed" not in hidden(asked):
        return asked
    assert not row.entries.exists()
    return browser.post(address, hidden(asked))


TERMS: list[tuple[dict[str, str], tuple[Any, ...]]] = [
    ({"terms": "fixed", "price": "9.5"}, (True, Decimal("9.5"), None)),
    ({"terms": "percent", "percent_off": "12.5"}, (True, None, Decimal("12.5"))),
    ({"terms": "regular"}, (True, None, None)),
    ({"terms": "none"}, (False, None, None)),
]


@pytest.mark.parametrize("kind", ["shelf", "product", "category", "topup_product"])
def test_a_price_is_added(kind: str) -> None:
    browser, product = signed_in(), make_product(category=make_category())
    targets = {
        "shelf": own_shelf(product).pk,
        "product": product.pk,
        "category": product.category_id,
        "topup_product": make_topup_product().pk,
    }

    for number, (typed, terms) in enumerate(TERMS):
        row = PriceList.objects.create(name=f"List {number}", currency="USD")
        assert _add(browser, row, **typed, **{kind: targets[kind]}).status_code == 302, typed

        entry = row.entries.get()
        assert (entry.for_sale, entry.price, entry.percent_off) == terms
        assert getattr(entry, f"{kind}_id") == targets[kind]
        for page in (url(entry), url(row)):
            assert browser.get(page).status_code == 200, typed
    for page in (list_url(PriceListEntry), list_url(PriceList)):
        assert browser.get(page).status_code == 200


def test_the_timeline_shows_times_and_prices_for_people() -> None:
    assert value_text("valid_from", "2026-11-28T17:00:00.123+00:00") == "2026-11-28 17:00:00"
    assert value_text("next_price", "12.0000") == "12.00"
    assert value_text("name", "2026-11-28") == "2026-11-28"


@pytest.mark.parametrize(
    "typed",
    [
        {"terms": "fixed", "price": "5"},  # everything at one price
        {"terms": "fixed"},
        {"terms": "percent", "percent_off": "100"},
        {"terms": "percent", "percent_off": "0"},
        {"terms": "regular", "price": "5"},
        {"terms": "regular", "valid_from": "2001-01-01T00:00"},
    ],
)
def test_a_mistake_is_named(typed: dict[str, str]) -> None:
    browser, row = signed_in(), _list()
    answer = _add(browser, row, **typed)
    assert answer.status_code == 200
    (problems, *_) = answer.context["form"].errors.values()
    assert problems[0] in html.unescape(answer.content.decode())
    assert not row.entries.exists()


def test_two_targets_are_refused() -> None:
    browser, row, product = signed_in(), _list(), make_product()
    answer = _add(browser, row, product=product.pk, shelf=own_shelf(product).pk)
    assert "product" in answer.context["form"].errors


def test_only_people_with_the_right_end_a_price() -> None:
    row = _list()
    _add(signed_in(), row)
    entry = row.entries.get()
    reader = signed_in(make_staff(*ENTRIES))
    assert reader.post(url(entry, "end")).status_code == 403
    assert reader.get(url(entry)).status_code == 200
    browser, address = signed_in(make_staff(*CHANGES)), url(entry, "end")
    assert browser.post(address, hidden(browser.get(address))).status_code == 302
    entry.refresh_from_db()
    assert entry.valid_until is not None


def test_an_account_gets_a_list_of_its_currency() -> None:
    browser, account, row = signed_in(), make_account(), _list()
    euros = PriceList.objects.create(name="Euros", currency="EUR")
    page = url(account, "choose_list")
    assert "Euros" not in browser.get(page).content.decode()
    browser.post(page, {"price_list": euros.pk})
    assert Account.objects.get(pk=account.pk).price_list_id is None
    asked = browser.post(page, {"price_list": row.pk})
    assert Account.objects.get(pk=account.pk).price_list_id is None
    assert browser.post(page, hidden(asked)).status_code == 302
    assert Account.objects.get(pk=account.pk).price_list_id == row.pk
    assert "Gold" in browser.get(url(account)).content.decode()
    assert account.name in browser.get(url(row)).content.decode()
    browser.post(page, hidden(browser.post(page, {"price_list": ""})))
    assert Account.objects.get(pk=account.pk).price_list_id is None
    reader = signed_in(make_staff("accounts.view_account"))
    assert reader.get(page).status_code == 403


def _address(browser: Client, rows: list[Any]) -> str:
    chosen = {"action": "change_prices", "_selected_action": [row.pk for row in rows]}
    address: str = browser.post(list_url(type(rows[0])), chosen).headers["Location"]
    return address


def _preview(browser: Client, address: str, typed: dict[str, str]) -> Any:
    change = "percent" if "percent" in typed else "prices"
    return browser.post(address, hidden(browser.get(address)) | {"change": change, **typed})


@pytest.mark.parametrize(
    ("typed", "mistakes"),
    [
        ({"percent": "5"}, {"change"}),
        ({"change": "percent"}, {"percent"}),
        ({"change": "percent", "percent": "5", "price": "11"}, {"change"}),
        ({"change": "prices", "percent": "5", "price": "11"}, {"percent"}),
    ],
)
def test_a_number_is_a_percentage_or_a_price_by_choice(
    typed: dict[str, str], mistakes: set[str]
) -> None:
    browser, shelf = signed_in(), own_shelf(make_product(price="10.00"))
    address = _address(browser, [shelf])
    form = hidden(browser.get(address)) | {f"price-{shelf.pk}": typed.pop("price", "10.00")}

    answer = browser.post(address, form | typed)

    assert set(answer.context["form"].errors) == mistakes
    assert answer.context["changes"] == []


def test_a_page_of_prices_has_the_first_chosen_rows_and_names_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(price_changes, "MOST", 2)
    browser = signed_in()
    names = [make_product(name=name, price="10.00") for name in ("Moon", "Star", "Sun")]
    moon, star, sun = map(own_shelf, names)
    address = reverse("admin:catalogue_shelf_new_prices")

    answers = [
        browser.get(f"{address}?{'&'.join(f'row={shelf.pk}' for shelf in chosen)}")
        for chosen in ([sun, sun, moon, star], [sun, sun, moon])
    ]

    for answer in answers:
        assert [row["field"].name for row in answer.context["rows"]] == [
            f"price-{sun.pk}",
            f"price-{moon.pk}",
        ]
    texts = ["2 of the chosen rows, up to Moon" in answer.text for answer in answers]
    assert texts == [True, False]
    assert "of the chosen rows" not in answers[1].text


def test_prices_of_many_shelves_change_after_a_preview() -> None:
    browser, shelves = signed_in(), [own_shelf(make_product(price="10.00")) for _ in range(3)]
    address = _address(browser, shelves)
    typed = {f"price-{one.pk}": "10.00" for one in shelves} | {f"price-{shelves[0].pk}": "11.50"}

    preview = _preview(browser, address, typed)

    page = preview.content.decode()
    assert "11.50" in page
    assert "+15.0 %" in page
    assert Shelf.objects.get(pk=shelves[0].pk).price == 10
    assert browser.post(address, hidden(preview) | {"confirmed": "1"}).status_code == 302
    prices = [Shelf.objects.get(pk=one.pk).price for one in shelves]
    assert prices == [Decimal("11.50"), 10, 10]
    assert "11.50" in browser.get(url(shelves[0])).content.decode()


def test_a_preview_says_of_which_prices_it_is_with_the_margins() -> None:
    browser, shelf = signed_in(), own_shelf(make_product(name="Gems", price="10.00"))
    Batch.objects.filter(pk=make_batch(shelf).pk).update(unit_cost=8, cost_currency="USD")
    partners = PriceList.objects.create(name="Partners", currency="USD")
    Account.objects.filter(pk=make_account().pk).update(price_list_id=partners.pk)
    add_price_entry(
        price_list_id=partners.pk,
        target=Target(shelf_id=shelf.pk),
        terms=Terms(percent_off=Decimal(50)),
        actor="shell:anna",
    )

    preview = _preview(browser, _address(browser, [shelf]), {f"price-{shelf.pk}": "16.00"})

    text = " ".join(re.sub(r"<[^>]*>", " ", preview.content.decode()).split())
    assert "These regular prices change at once." in text
    assert "20.0 % → 50.0 %" in text
    assert "Gems Partners now 5.00 USD 8.00 USD +60.0 % -60.0 % → 0.0 % cost 8.00" in text


@pytest.mark.parametrize("make", [lambda **own: own_shelf(make_product(**own)), make_topup_product])
def test_all_prices_change_by_percent_from_a_time(make: Any) -> None:
    browser, rows = signed_in(), [make(price="9.99"), make(price="20.00")]
    address, begins = _address(browser, rows), timezone.now() + timedelta(days=2)
    when = {"starts_at": f"{begins:%Y-%m-%dT%H:%M}"}
    same = {f"price-{one.pk}": str(one.price) for one in rows}
    preview = _preview(browser, address, {**same, **when, "percent": "-5"})
    assert "9.49" in preview.content.decode()
    assert browser.post(address, hidden(preview) | {"confirmed": "1"}).status_code == 302
    found = [type(one).objects.get(pk=one.pk) for one in rows]
    assert [one.price for one in found] == [Decimal("9.99"), 20]
    assert [one.next_price for one in found] == [Decimal("9.49"), 19]
    assert "9.49" in browser.get(url(rows[0])).content.decode()
    assert "<small>9.49 USD from " in browser.get(list_url(type(rows[0]))).content.decode()


def test_a_price_from_a_later_time_is_announced_with_its_row() -> None:
    browser, shelf = signed_in(), own_shelf(make_product(price="9.99"))
    begins = timezone.now() + timedelta(days=2)
    typed = {f"price-{shelf.pk}": "10.49", "starts_at": f"{begins:%Y-%m-%dT%H:%M}"}
    address = _address(browser, [shelf])
    preview = _preview(browser, address, typed)
    done = browser.post(address, hidden(preview) | {"confirmed": "1"}, follow=True)
    assert f"{shelf} will cost 10.49 USD from " in str(next(iter(done.context["messages"])))


def test_the_list_of_products_shows_a_price_that_has_begun() -> None:
    shelf = own_shelf(make_product(price="10.00"))
    Shelf.objects.filter(pk=shelf.pk).update(next_price="12.34", next_price_from=timezone.now())

    assert "12.34 USD" in signed_in().get(list_url(Product)).content.decode()


def test_a_preview_that_is_out_of_date_changes_nothing() -> None:
    browser, shelf = signed_in(), own_shelf(make_product(price="10.00"))
    address = _address(browser, [shelf])
    preview = _preview(browser, address, {f"price-{shelf.pk}": "11"})
    Shelf.objects.filter(pk=shelf.pk).update(price=12)
    answer = browser.post(address, hidden(preview) | {"confirmed": "1"})
    assert "has changed meanwhile" in answer.content.decode()
    assert Shelf.objects.get(pk=shelf.pk).price == 12


def test_a_preview_says_which_next_price_each_change_withdraws() -> None:
    browser = signed_in()
    first, second = (own_shelf(make_product(name=name, price="10")) for name in ("Gems", "Gold"))
    start = timezone.now() + timedelta(days=5)
    Shelf.objects.filter(pk=first.pk).update(next_price="10.70", next_price_from=start)
    address = _address(browser, [first, second])
    shown = {f"price-{row.pk}": "10.00" for row in (first, second)}
    preview = _preview(browser, address, {"percent": "-5", **shown})

    page = " ".join(re.sub(r"<[^>]*>", " ", preview.content.decode()).split())
    assert f"9.50 USD withdraws 10.70 USD from {start:%Y-%m-%d %H:%M:%S}" in page
    assert page.count("withdraws") == 1

    # A price that was planned after the preview is not withdrawn unseen.
    Shelf.objects.filter(pk=second.pk).update(next_price="11", next_price_from=start)
    answer = browser.post(address, hidden(preview) | {"confirmed": "1"})
    assert "A price has changed meanwhile." in answer.content.decode()
    assert Shelf.objects.get(pk=second.pk).next_price == 11


def test_a_top_up_product_needs_a_price() -> None:
    browser, product = signed_in(), make_topup_product(price="5.00")
    address = _address(browser, [product])
    preview = _preview(browser, address, {f"price-{product.pk}": ""})
    answer = browser.post(address, hidden(preview) | {"change": "prices", "confirmed": "1"})
    assert "needs a price" in answer.content.decode()
    assert TopUpProduct.objects.get(pk=product.pk).price == 5


def test_one_price_is_typed_at_once_and_several_need_a_choice() -> None:
    first, second = own_shelf(make_product()), own_shelf(make_product())
    address, browser = f"/admin/catalogue/shelf/prices/?row={first.pk}", signed_in()
    for rows, choice in ((address, "prices"), (f"{address}&row={second.pk}", None)):
        assert browser.get(rows).context["form"]["change"].value() == choice


def test_the_page_of_prices_needs_the_permission() -> None:
    shelf = own_shelf(make_product())
    reader = signed_in(make_staff("catalogue.view_shelf"))
    address = f"/admin/catalogue/shelf/prices/?row={shelf.pk}"
    assert reader.get(address).status_code == 403
    assert signed_in().get(address).status_code == 200
    assert signed_in().get("/admin/catalogue/shelf/prices/?row=x").status_code == 404


def test_amounts_that_a_reader_cannot_change_have_two_decimals() -> None:
    product, topup = make_product(price="7"), make_topup_product(price="4.125")
    batch = make_batch(own_shelf(product))
    Batch.objects.filter(pk=batch.pk).update(unit_cost="8.6", cost_currency="USD")
    browser = signed_in(staff_with(StaffRole.AUDITOR))

    for row, price in (
        *((product, "7.00"), (own_shelf(product), "7.00")),
        *((topup, "4.125"), (batch, "8.60")),
    ):
        page = text_of(browser.get(url(row)))
        assert price in page, row
        assert not re.search(r"\d\.\d\d\d*0\b", page.replace(price, "")), row


def test_a_mean_cost_has_two_decimals() -> None:
    assert cost_text(Decimal("21.6632")) == "21.66"
    assert cost_text(Decimal("0.0042")) == "0.0042"
