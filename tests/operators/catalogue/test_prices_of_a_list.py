"""The page of a price list shows what each row costs, sets many prices, and compares lists."""

import html
import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.models import Preferences
from catalogue.models import Batch, PriceList, Shelf
from catalogue.price_lists import Target, Terms, add_price_entry
from core.backoffice.staff_roles import StaffRole
from operators.catalogue.price_list_prices import VoucherDataset
from operators.sign_in.models import TwoPersonChange
from tests.factories import (
    make_account,
    make_batch,
    make_product,
    make_topup_product,
    own_shelf,
)
from tests.operators.back_office import signed_in, staff_with, url
from tests.operators.pages.test_pages_are_audited import hidden

pytestmark = pytest.mark.django_db


@pytest.fixture
def gold() -> PriceList:
    return PriceList.objects.create(name="Gold", currency="USD")


def add_entry(price_list: PriceList, terms: Terms, **target: Any) -> None:
    until = target.pop("until", None)
    add_price_entry(
        price_list_id=price_list.pk,
        target=Target(**target),
        terms=terms,
        actor="shell:anna",
        valid_until=until,
    )


def cells(answer: Any) -> dict[str, list[str]]:
    """The texts of the cells of each row, by the first that is no box to tick."""
    found = {}
    for row in re.findall(r"<tr[ >].*?</tr>", answer.content.decode(), re.DOTALL):
        texts = [
            html.unescape(" ".join(re.sub(r"<[^>]*>", " ", cell).split()))
            for cell in re.findall(r"<t[dh][ >].*?</t[dh]>", row, re.DOTALL)
        ]
        texts = [text for text in texts if text]
        if texts:
            found[texts[0]] = texts[1:]
    return found


def test_the_page_of_a_list_shows_each_price_with_cost_margin_and_times(gold: PriceList) -> None:
    account = make_account()
    account.price_list_id = gold.pk
    account.save()
    fixed, _percent, unsold = (make_product(name=name, price="10") for name in "ABC")
    later = timezone.now() + timedelta(days=3)
    batch = make_batch(own_shelf(fixed))
    Batch.objects.filter(pk=batch.pk).update(unit_cost=Decimal(9), cost_currency="USD")
    Shelf.objects.filter(product=fixed).update(available_stock=2)
    make_product(name="Other currency", currency="EUR")
    add_entry(gold, Terms(percent_off=Decimal(10)))
    add_entry(gold, Terms(price=Decimal(8)), shelf_id=own_shelf(fixed).pk, until=later)
    add_entry(gold, Terms(for_sale=False), product_id=unsold.pk)
    game = make_topup_product(name="Game", price="4")

    answer = signed_in().get(url(gold))

    rows = cells(answer)
    assert "delete_selected" not in answer.content.decode()
    assert account.name in answer.content.decode()
    regular, listed, change, cost, margin, _since, until = rows["A"]
    assert (regular, listed, change) == ("10.00", "8.00", "-20.0 % fixed")
    assert (cost, margin) == ("9.00", "-12.5 %")
    assert f"{later:%Y-%m-%d}" in until
    assert until.endswith("then 9.00 USD")
    assert rows["B"][:3] == ["10.00", "9.00", "-10.0 %"]
    assert rows["C"][:2] == ["10.00", "not for sale"]
    assert rows[game.name][:3] == ["4.00", "3.60", "-10.0 %"]
    assert "Other currency" not in rows


def test_costs_are_for_those_who_may_see_them(gold: PriceList) -> None:
    make_product(name="A")
    for role, sees in ((StaffRole.STOCK_KEEPER, True), (StaffRole.MERCHANT_MANAGER, False)):
        page = signed_in(staff_with(role)).get(url(gold)).content.decode()
        assert (">Margin<" in re.sub(r"\s+", "", page)) is sees, role


def test_many_prices_are_set_after_a_preview(gold: PriceList) -> None:
    browser, products = signed_in(), [make_product(name=name, price="10") for name in "ABC"]
    game = make_topup_product(price="4")
    shelves = [own_shelf(product).pk for product in products]
    names = [*(f"shelf-{pk}" for pk in shelves), f"topupproduct-{game.pk}"]
    address = f"{url(gold, 'set_prices')}?{'&'.join(f'row={name}' for name in names)}"
    typed = {
        "terms": "percent",
        "value": "5",
        f"terms-{names[1]}": "fixed",
        f"value-{names[1]}": "9.99",
        f"terms-{names[2]}": "none",
    }

    asked = browser.post(address, typed)

    assert not gold.entries.exists()
    assert [row[2:] for row in cells(asked).values()][1:] == [
        ["10.00 USD", "9.50 USD -5.0 %"],
        ["10.00 USD", "9.99 USD -0.1 %"],
        ["10.00 USD", "not for sale"],
        ["4.00 USD", "3.80 USD -5.0 %"],
    ]
    assert browser.post(address, hidden(asked)).status_code == 302
    assert [
        (one.shelf_id, one.topup_product_id, one.for_sale, one.price, one.percent_off)
        for one in gold.entries.order_by("pk")
    ] == [
        (shelves[0], None, True, None, Decimal(5)),
        (shelves[1], None, True, Decimal("9.99"), None),
        (shelves[2], None, False, None, None),
        (None, game.pk, True, None, Decimal(5)),
    ]


@pytest.mark.parametrize(
    "typed",
    [
        {},  # nothing is chosen
        {"value": "5"},
        {"terms": "percent"},
        {"terms": "percent", "value": "100"},
        {"terms": "percent", "value": "1.005"},
        {"terms": "fixed", "value": "0"},
        {"terms-row": "regular", "value-row": "5"},
        {"value-row": "5"},
    ],
)
def test_a_mistake_about_many_prices_is_named(gold: PriceList, typed: dict[str, str]) -> None:
    row = f"shelf-{own_shelf(make_product()).pk}"
    sent = {name.replace("row", row): value for name, value in typed.items()}

    answer = signed_in().post(f"{url(gold, 'set_prices')}?row={row}", sent)

    (problems, *_) = answer.context["form"].errors.values()
    assert problems[0] in html.unescape(answer.content.decode())
    assert not gold.entries.exists()


def test_the_preview_has_the_order_of_the_form_and_a_way_back(gold: PriceList) -> None:
    browser = signed_in()
    products = [make_product(name=name, price="10") for name in ("Zeta", "alpha", "Moon")]
    names = [f"shelf-{own_shelf(product).pk}" for product in products]
    address = f"{url(gold, 'set_prices')}?{'&'.join(f'row={name}' for name in names)}"

    asked = browser.post(address, {"terms": "percent", "value": "5", f"value-{names[0]}": ""})
    assert 'name="edit"' in asked.text

    form = browser.post(address, hidden(asked) | {"edit": "1"})
    assert set(cells(form)) >= {"Zeta", "alpha", "Moon"}
    assert list(cells(form)) == list(cells(asked))
    assert form.context["form"]["value"].value() == "5"
    assert not gold.entries.exists()
    again = browser.post(address, {"terms": "percent", "value": "4"})
    assert ["10.00 USD", "9.60 USD -4.0 %"] in [row[2:] for row in cells(again).values()]


def test_many_low_prices_wait_for_a_second_person(gold: PriceList) -> None:
    account = make_account()
    account.price_list_id = gold.pk
    account.save()
    rows = "&".join(f"row=shelf-{own_shelf(make_product(price='10')).pk}" for _ in range(2))
    address = f"{url(gold, 'set_prices')}?{rows}"

    for number in (0, 2):
        browser = signed_in(staff_with(StaffRole.STOCK_KEEPER))
        browser.post(address, hidden(browser.post(address, {"terms": "fixed", "value": "0.01"})))
        assert gold.entries.count() == number
    assert not TwoPersonChange.objects.filter(approved_at=None).exists()


def test_people_in_two_time_zones_agree_on_a_later_low_price(gold: PriceList) -> None:
    account = make_account()
    account.price_list_id = gold.pk
    account.save()
    shelf = own_shelf(make_product(price="10"))
    form = f"{url(gold, 'set_prices')}?row=shelf-{shelf.pk}"
    starts = (("Europe/Berlin", "2099-12-01T10:00"), ("Asia/Kolkata", "2099-12-01T14:30"))
    for time_zone, start in starts:
        staff = staff_with(StaffRole.STOCK_KEEPER)
        Preferences.objects.create(user=staff, time_zone=time_zone)
        browser = signed_in(staff)
        question = browser.post(form, {"terms": "fixed", "value": "0.01", "valid_from": start})
        browser.post(form, hidden(question))

    assert [entry.price for entry in gold.entries.all()] == [Decimal("0.01")]


def test_rows_and_pages_that_do_not_exist_are_not_found(
    gold: PriceList, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VoucherDataset.model_admin, "list_per_page", 1)
    make_product(name="A")
    make_product(name="B")
    form, page = url(gold, "set_prices"), url(gold)
    queries = ("", "?row=shelf-0", "?row=code-1", "?row=shelf-x&row=shelf")
    addresses = [*(f"{form}{query}" for query in queries), f"{page}?shelf-p=99"]
    browser = signed_in()
    assert {browser.get(address).status_code for address in addresses} == {404}
    assert "B" in cells(browser.get(f"{page}?shelf-p=2"))


def compare(browser: Client, **query: Any) -> Any:
    return browser.get(reverse("admin:catalogue_pricelist_compare", query=query))


def test_two_lists_are_compared_and_a_merchants_list_with_another(gold: PriceList) -> None:
    silver = PriceList.objects.create(name="Silver", currency="USD")
    same, other = make_product(name="Same", price="10"), make_product(name="Other", price="10")
    game = make_topup_product(name="Game", price="4")
    add_entry(gold, Terms(price=Decimal(9)), shelf_id=own_shelf(other).pk)
    add_entry(silver, Terms(for_sale=False), topup_product_id=game.pk)
    account = make_account()
    account.price_list_id = gold.pk
    account.save()
    browser = signed_in()

    lists = {"left": gold.pk, "right": silver.pk, "kind": "shelf"}
    both = cells(compare(browser, **lists))
    assert both["Other"] == ["10.00 USD", "9.00 USD", "10.00 USD", "+11.1 %"]
    assert both[same.name] == ["10.00 USD", "10.00 USD", "10.00 USD", "-"]
    assert same.name not in cells(compare(browser, **lists, different="on"))
    assert other.name not in cells(compare(browser, **lists, q="Same"))
    theirs = cells(compare(browser, account=account.pk, kind="shelf", different="on"))
    assert theirs["Other"] == ["9.00 USD", "10.00 USD", "+11.1 %"]
    games = cells(compare(browser, right=silver.pk, kind="topupproduct", different="on"))
    assert games["Game"] == ["4.00 USD", "not for sale", "-"]


def test_regular_prices_are_a_column_once(gold: PriceList) -> None:
    account, browser = make_account(), signed_in()
    make_product(name="Gems", price="10")

    beside = compare(browser, left="", right=gold.pk, kind="shelf")
    alone = compare(browser, account=account.pk, right="", kind="shelf")

    assert cells(beside)["Gems"] == ["10.00 USD", "10.00 USD", "-"]
    assert cells(beside)["Name"] == ["Regular prices", "Gold", "Difference"]
    assert cells(alone)["Name"] == ["Regular prices"]
    assert alone.context["heading"] == f"What {account} pays now (Regular prices)"


@pytest.mark.parametrize("different", [{}, {"different": "on"}])
def test_prices_are_computed_for_the_rows_of_one_page(
    gold: PriceList, different: dict[str, str]
) -> None:
    add_entry(gold, Terms(price=Decimal(9)), shelf_id=own_shelf(make_product()).pk)
    browser = signed_in()
    with CaptureQueriesContext(connection) as queries:
        compare(browser, left=gold.pk, kind="shelf", **different)

    computing = [one["sql"] for one in queries if "catalogue_price(" in one["sql"]]
    assert len(computing) == (2 if different else 1)
    assert all(one.count("catalogue_price(") <= 4 for one in computing)


def test_a_merchant_takes_the_place_of_the_left_list(gold: PriceList) -> None:
    account = make_account()
    browser = signed_in()

    assert 'name="left"' in compare(browser, left=gold.pk, kind="shelf").text
    assert 'name="left"' in compare(browser, account="", kind="shelf").text
    of_merchant = compare(browser, account=account.pk, left=gold.pk, kind="shelf")

    assert 'name="left"' not in of_merchant.text
    assert of_merchant.context["form"]["right"].label == "Compared with"
    assert f"What {account} pays now (Regular prices)" in of_merchant.context["heading"]


def test_lists_of_two_currencies_are_not_compared(gold: PriceList) -> None:
    euro = PriceList.objects.create(name="Euro", currency="EUR")
    for query in ({"left": gold.pk, "right": euro.pk}, {"left": "", "right": ""}):
        answer = compare(signed_in(), kind="shelf", **query)
        assert answer.context["form"].non_field_errors()
        assert answer.context["rows"] is None


def test_a_reader_who_finds_no_merchant_is_not_asked_for_one(gold: PriceList) -> None:
    keeper = signed_in(staff_with(StaffRole.STOCK_KEEPER))
    assert 'name="account"' in compare(signed_in()).text
    assert 'name="account"' not in compare(keeper).text
    account = make_account()
    assert compare(keeper, account=account.pk, kind="shelf").context["rows"] is None
    assert compare(keeper, left=gold.pk, kind="shelf").context["rows"] is not None
