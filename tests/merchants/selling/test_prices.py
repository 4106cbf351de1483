"""Members see and download the prices of their own account."""

import csv
import io
from decimal import Decimal

import pytest

from accounts.models import Account
from catalogue.models import PriceList, PriceListEntry, Shelf
from core.files.table_files import exact_time
from tests.factories import link, make_product, make_topup_product, make_variation, own_shelf
from tests.merchants.people import browser_of, make_member

pytestmark = pytest.mark.django_db

PAGE, FILE = "/merchant/prices/", "/merchant/prices/prices.csv"


def test_a_member_reads_the_prices_of_the_account() -> None:
    member = make_member()
    product = make_product(price="10.00", name="Card")
    variation = make_variation(product, price="20.00", name="Large")
    topup = make_topup_product(price="5.00", name="Gems")
    link(member.account, "mine", own_shelf(product))
    prices = PriceList.objects.create(name="Gold", currency="USD")
    own = PriceListEntry.objects.create(
        price_list=prices, shelf=own_shelf(product), price=Decimal("9.25"), added_by="test"
    )
    PriceListEntry.objects.create(
        price_list=prices, shelf=variation.shelf, for_sale=False, added_by="test"
    )
    Account.objects.filter(pk=member.account.pk).update(price_list_id=prices.pk)
    browser = browser_of(member)

    page = browser.get(PAGE).content.decode()
    assert "9.25 USD" in page
    assert "not for sale" in page
    assert "mine" in page
    assert f"{own.valid_from:%Y-%m-%d %H:%M}" in page
    assert "5.00 USD" in browser.get(PAGE, {"kind": "top_up", "search": "gem"}).content.decode()

    text = browser.get(FILE).content.decode("utf-8-sig")
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(text))}
    assert rows["Card"]["price"] == "9.25"
    assert rows["Card"]["merchant_reference"] == "mine"
    assert rows["Card"]["since"] == exact_time(own.valid_from)
    assert (rows["Card / Large"]["price"], rows["Card / Large"]["since"]) == ("", "")
    assert (rows["Gems"]["kind"], rows["Gems"]["price"]) == ("top_up", "5.00")
    assert rows["Gems"]["product_id"] == str(topup.pk)

    other = browser_of(make_member())
    text = other.get(FILE).content.decode("utf-8-sig")
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(text))}
    assert (rows["Card"]["price"], rows["Card / Large"]["price"]) == ("10.00", "20.00")


@pytest.mark.parametrize("path", [PAGE, "/merchant/references/"])
def test_a_product_without_codes_of_its_own_is_bought_by_its_variations(path: str) -> None:
    browser, hint = browser_of(make_member()), "buy one of its variations"
    make_variation(make_product(price="10.00", codes=1), codes=1)
    make_product(price="10.00")
    assert hint not in browser.get(path).content.decode()
    make_variation(make_product(price="10.00"), codes=1)
    assert browser.get(path).content.decode().count(hint) == 1


def test_a_regular_price_holds_since_its_last_change() -> None:
    member, shelf = make_member(), own_shelf(make_product(price="10.00", name="Card"))
    Shelf.objects.filter(pk=shelf.pk).update(price=Decimal("12.00"))
    text = browser_of(member).get(FILE).content.decode("utf-8-sig")
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(text))}
    assert rows["Card"]["since"] == exact_time(shelf.price_changes.latest("pk").changed_at)
