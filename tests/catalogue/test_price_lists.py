"""Each merchant's price: lists, details and purchases agree, and the most specific entry counts."""

import time
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.models import Account
from audit.models import AuditEntry
from catalogue.models import PriceList, PriceListEntry, Shelf
from catalogue.price_lists import (
    Target,
    Terms,
    add_price_entry,
    assign_price_list,
    end_price_entry,
    move_end_of_price,
)
from core.inputs import InputProblem
from tests.contract.situations import data, refusal
from tests.factories import (
    Merchant,
    make_category,
    make_merchant,
    make_product,
    make_topup_product,
    make_variation,
    own_shelf,
)
from tests.operators.back_office import make_staff
from topups.models import TopUpProduct

pytestmark = pytest.mark.django_db(transaction=True)

UNAVAILABLE = (409, "order_refused", "price_unavailable")


class Listed:
    """A merchant with a price list, and a product with a variation in a category."""

    def __init__(self) -> None:
        self.actor: User = make_staff(superuser=True)
        self.merchant = make_merchant(balance="500.00")
        self.other = make_merchant(balance="500.00")
        self.category = make_category()
        self.product = make_product(price="10.00", codes=20, category=self.category)
        self.variation = make_variation(self.product, price="20.00", codes=20)
        self.topup = make_topup_product(price="5.00", category=self.category)
        self.list = PriceList.objects.create(name="Gold", currency="USD")
        assign_price_list(
            account_id=self.merchant.account.pk, price_list_id=self.list.pk, actor=self.actor
        )

    def say(self, target: Target, **terms: Any) -> PriceListEntry:
        times = {name: terms.pop(name) for name in ("valid_from", "valid_until") if name in terms}
        return add_price_entry(
            price_list_id=self.list.pk,
            target=target,
            terms=Terms(**terms),
            actor=self.actor,
            **times,
        )

    def prices(self, merchant: Merchant | None = None) -> tuple[Any, Any, Any]:
        """The prices of product, variation and top-up, after list, detail and purchase agree."""
        who = merchant or self.merchant
        product = _one(who, "/products", self.product.pk)
        topup = _one(who, "/topup-products", self.topup.pk)
        (variation,) = product["variations"]
        _same(who, product, product_id=product["id"], quantity=1)
        _same(who, variation, product_id=product["id"], variation_id=variation["id"], quantity=1)
        body = {"delivery_type": "top_up", "system_product_id": topup["id"], "player_id": "1"}
        answer = who.buy(**body)
        if topup["sellable"]:
            assert data(answer)["total_price"] == topup["price"]
        else:
            assert refusal(answer) == UNAVAILABLE
        return product["price"], variation["price"], (topup["price"], topup["sellable"])


def _one(who: Merchant, path: str, pk: int) -> Any:
    detail = data(who.get(f"{path}/{pk}"))
    (listed,) = [one for one in data(who.get(path, per_page=100))["items"] if one["id"] == pk]
    assert detail == listed
    return detail


def _same(who: Merchant, shelf: Any, **body: Any) -> None:
    """A purchase costs what the list shows, or is refused if nothing is shown."""
    assert shelf["sellable"] is (shelf["price"] is not None)
    answer = who.buy(**body)
    if shelf["sellable"]:
        assert data(answer)["unit_price"] == shelf["price"]
    else:
        assert refusal(answer) == UNAVAILABLE


def test_a_list_without_entries_changes_nothing() -> None:
    assert Listed().prices() == (10, 20, (5, True))


def test_the_most_specific_entry_counts() -> None:
    shop = Listed()
    shop.say(Target(), percent_off=Decimal(50))
    assert shop.prices() == (5, 10, (Decimal("2.5"), True))

    shop.say(Target(category_id=shop.category.pk), percent_off=Decimal(10))
    assert shop.prices() == (9, 18, (Decimal("4.5"), True))

    shop.say(Target(product_id=shop.product.pk), price=Decimal(8))
    shop.say(Target(topup_product_id=shop.topup.pk), price=Decimal(4))
    assert shop.prices() == (8, 8, (4, True))

    shop.say(Target(shelf_id=own_shelf(shop.product).pk), percent_off=Decimal(1))
    assert shop.prices() == (Decimal("9.9"), 8, (4, True))
    assert shop.prices(shop.other) == (10, 20, (5, True))


def test_an_assortment_names_what_may_be_bought() -> None:
    shop = Listed()
    shop.say(Target(), for_sale=False)
    assert shop.prices() == (None, None, (5, False))
    shop.say(Target(shelf_id=shop.variation.shelf.pk))
    assert shop.prices() == (None, 20, (5, False))
    shop.say(Target(category_id=shop.category.pk))
    assert shop.prices() == (10, 20, (5, True))
    shop.say(Target(product_id=shop.product.pk), for_sale=False)
    shop.say(Target(topup_product_id=shop.topup.pk), for_sale=False)
    assert shop.prices() == (None, 20, (5, False))
    assert shop.prices(shop.other) == (10, 20, (5, True))


def test_a_fixed_price_also_sells_what_has_no_regular_price() -> None:
    shop = Listed()
    Shelf.objects.filter(product=shop.product).update(price=None)
    shop.say(Target(product_id=shop.product.pk), percent_off=Decimal(10))
    assert shop.prices()[:2] == (None, None)
    shop.say(Target(product_id=shop.product.pk), price=Decimal(7))
    assert shop.prices()[:2] == (7, 7)
    assert shop.prices(shop.other)[:2] == (None, None)


@pytest.mark.parametrize("off", [None, "not yet", "no longer"])
def test_an_entry_holds_from_its_start_to_its_end(off: str | None) -> None:
    shop, now = Listed(), timezone.now()
    times: dict[str, Any] = {"valid_until": now + timedelta(hours=1)}
    if off == "not yet":
        times = {"valid_from": now + timedelta(minutes=1)}
    if off == "no longer":
        times = {"valid_until": timezone.now() + timedelta(seconds=2)}
    shop.say(Target(product_id=shop.product.pk), price=Decimal(8), **times)
    if off == "no longer":
        time.sleep(2.1)
    assert shop.prices()[0] == (10 if off else 8)


def test_a_new_entry_ends_the_one_before() -> None:
    shop = Listed()
    first = shop.say(Target(), percent_off=Decimal(10))
    second = shop.say(Target(), percent_off=Decimal(20))
    first.refresh_from_db()
    assert first.valid_until == second.valid_from
    assert shop.prices()[0] == 8


def test_an_entry_that_would_overlap_a_later_one_is_refused() -> None:
    shop, later = Listed(), timezone.now() + timedelta(days=1)
    shop.say(Target(), percent_off=Decimal(10), valid_from=later)
    with pytest.raises(InputProblem, match="overlaps"):
        shop.say(Target(), percent_off=Decimal(20))
    shop.say(Target(), percent_off=Decimal(20), valid_until=later)
    assert shop.prices()[0] == 8


def test_an_entry_that_has_begun_is_ended_and_one_that_has_not_is_deleted() -> None:
    shop = Listed()
    begun = shop.say(Target(), percent_off=Decimal(10))
    planned = shop.say(
        Target(shelf_id=own_shelf(shop.product).pk),
        price=Decimal(1),
        valid_from=timezone.now() + timedelta(days=1),
    )
    for entry in (begun, planned):
        end_price_entry(entry_id=entry.pk, actor=shop.actor)
    assert list(PriceListEntry.objects.values_list("pk", flat=True)) == [begun.pk]
    assert shop.prices()[0] == 10
    with pytest.raises(InputProblem, match="ended already"):
        end_price_entry(entry_id=begun.pk, actor=shop.actor)


def test_each_change_of_a_list_is_audited() -> None:
    shop = Listed()
    entry = shop.say(Target(), percent_off=Decimal(10))
    end_price_entry(entry_id=entry.pk, actor=shop.actor)
    assign_price_list(account_id=shop.merchant.account.pk, price_list_id=None, actor=shop.actor)
    written = AuditEntry.objects.filter(actor=shop.actor).order_by("pk")
    assert [(one.action, one.object_type) for one in written] == [
        ("changed", "accounts.account"),
        ("added", "catalogue.pricelistentry"),
        ("changed", "catalogue.pricelistentry"),
        ("changed", "accounts.account"),
    ]
    assert written[3].changes == {"price_list": ["Gold", None]}
    assert written[1].changes["percent_off"] == [None, "10"]


def test_a_list_has_the_currency_of_its_accounts() -> None:
    shop = Listed()
    euros = PriceList.objects.create(name="Euros", currency="EUR")
    with pytest.raises(InputProblem, match="EUR"):
        assign_price_list(
            account_id=shop.merchant.account.pk, price_list_id=euros.pk, actor=shop.actor
        )
    with pytest.raises(IntegrityError, match="catalogue_list_of_account"), transaction.atomic():
        Account.objects.filter(pk=shop.merchant.account.pk).update(price_list_id=euros.pk)


def _change(entries: QuerySet[PriceListEntry]) -> None:
    entries.update(percent_off=Decimal(90))


def _delete(entries: QuerySet[PriceListEntry]) -> None:
    entries.delete()


def _backdate(entries: QuerySet[PriceListEntry]) -> None:
    entries.update(valid_until=timezone.now() - timedelta(days=1))


def _truncate(entries: QuerySet[PriceListEntry]) -> None:
    connection.cursor().execute("TRUNCATE catalogue_pricelistentry")


@pytest.mark.parametrize("damage", [_change, _delete, _backdate, _truncate])
def test_an_entry_that_has_begun_is_a_record(
    damage: Callable[[QuerySet[PriceListEntry]], None],
) -> None:
    shop = Listed()
    entry = shop.say(Target(), percent_off=Decimal(10))
    with pytest.raises(DatabaseError, match="price list entr"), transaction.atomic():
        damage(PriceListEntry.objects.filter(pk=entry.pk))


def test_no_entry_begins_in_the_past() -> None:
    shop, past = Listed(), timezone.now() - timedelta(days=1)
    with pytest.raises(InputProblem, match="past"):
        shop.say(Target(), percent_off=Decimal(10), valid_from=past)
    with pytest.raises(DatabaseError, match="cannot begin in the past"), transaction.atomic():
        PriceListEntry.objects.create(price_list=shop.list, valid_from=past, added_by="test")


@pytest.mark.parametrize(
    ("price", "percent", "currency", "result"),
    [
        ("9.99", "10", "USD", "8.99"),
        ("9.95", "50", "USD", "4.98"),  # half up
        ("0.0725", "10", "USD", "0.0653"),  # as many decimals as the price has
        ("0.01", "99.99", "USD", "0.01"),  # never zero
        ("1050", "10", "JPY", "945"),
        ("1055", "10", "JPY", "950"),
        ("10", "0.01", "KWD", "9.999"),
    ],
)
def test_percent_off_is_rounded(price: str, percent: str, currency: str, result: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT catalogue_discounted(%s::numeric, %s::numeric, %s)", [price, percent, currency]
        )
        (discounted,) = cursor.fetchone()
    assert discounted == Decimal(result)


def test_products_in_a_list_are_kept() -> None:
    shop = Listed()
    shop.say(Target(topup_product_id=shop.topup.pk), price=Decimal(4))
    with pytest.raises(IntegrityError, match="topups_product_of_price_entry"):
        TopUpProduct.objects.filter(pk=shop.topup.pk).delete()


def _names_variations(shop: Listed) -> bool:
    answer = shop.merchant.buy(product_id=shop.product.pk, quantity=1)
    assert refusal(answer) == UNAVAILABLE
    return "send the variation_id" in answer.json()["error"]["message"]


def test_a_refusal_names_only_variations_that_the_merchant_can_buy() -> None:
    shop = Listed()
    shop.say(Target(shelf_id=own_shelf(shop.product).pk), for_sale=False)
    assert _names_variations(shop)

    shop.say(Target(shelf_id=shop.variation.shelf.pk), for_sale=False)
    assert not _names_variations(shop)


def test_a_refusal_names_no_variation_that_the_list_leaves_out() -> None:
    shop = Listed()
    Shelf.objects.filter(pk=own_shelf(shop.product).pk).update(price=None)
    assert _names_variations(shop)

    shop.say(Target(), for_sale=False)
    assert not _names_variations(shop)


def test_the_end_of_a_price_moves_but_not_to_the_past() -> None:
    shop = Listed()
    now = timezone.now()
    hour, day, week = (now + timedelta(**{name: 1}) for name in ("hours", "days", "weeks"))
    entry = shop.say(Target(), percent_off=Decimal(10), valid_until=day)
    shop.say(Target(), percent_off=Decimal(20), valid_from=week)
    for until in (hour, week):
        move_end_of_price(entry_id=entry.pk, until=until, actor="shell:anna")
        entry.refresh_from_db()
        assert (entry.valid_until, entry.ended_by) == (until, "shell:anna")
    for wrong in (now, entry.valid_from, week + timedelta(days=1), None):
        with pytest.raises(InputProblem):
            move_end_of_price(entry_id=entry.pk, until=wrong, actor=shop.actor)
    end_price_entry(entry_id=entry.pk, actor=shop.actor)
    with pytest.raises(InputProblem, match="has ended already"):
        move_end_of_price(entry_id=entry.pk, until=week, actor=shop.actor)
    changes = AuditEntry.objects.filter(object_id=str(entry.pk), action="changed")
    assert len(changes) == 3
