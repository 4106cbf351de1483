"""Staff create and price products, and no mistake of theirs can break the API."""

import html
import re
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.conf import settings
from django.db.models import Q
from django.db.models.signals import pre_save
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.html import strip_tags

from accounts.models import Account
from audit.models import AuditEntry
from catalogue.models import CodeHold, Product, Shelf, Variation, VoucherCode
from catalogue.stock.holds import end_codes, hold_codes, void_hold
from core.backoffice.staff_roles import StaffRole
from figures.models import DailyTotal
from tests.factories import (
    add_codes,
    link,
    make_account,
    make_batch,
    make_category,
    make_merchant,
    make_product,
    make_variation,
    own_shelf,
)
from tests.neighbour import ours
from tests.operators.back_office import (
    form_of,
    list_url,
    make_staff,
    signed_in,
    staff_with,
    url,
    without_frame,
)

NEW_PRODUCT = reverse("admin:catalogue_product_add")
GOOD_PRICES = ["", "0.0001", "9.99", "99999999999999.9999"]
BAD_PRICES = ["0", "-1", "0.00001", "100000000000000", "1e20", "NaN", "Infinity", "x", "9,99"]
BAD_STEPS = ["", "0", "-1", "101", "1.5", "x", "99999999999"]


def save(browser: Client, obj: Any, **changes: Any) -> Any:
    data = {**form_of(browser, url(obj)), **changes}
    return browser.post(
        url(obj), {name: value for name, value in data.items() if value is not None}
    )


def confirmed(name: str, price: str) -> dict[str, str]:
    """The form data of a price with its confirmation."""
    return {name: price, f"{name}-confirmed": price}


def price_of(product: Product) -> Any:
    answer = make_merchant().get(f"/products/{product.pk}")
    assert answer.status_code == 200
    return answer.json()["data"]["price"]


def test_a_product_is_created_and_priced(browser: Client) -> None:
    category = make_category()
    data = {"name": "Card 10", "currency": "USD", "active": "on", "category": category.pk}
    empty = {"variations-TOTAL_FORMS": "1", "variations-INITIAL_FORMS": "0"}
    variation = {"variations-0-name": "EU", "variations-0-active": "on"}

    answer = browser.post(NEW_PRODUCT, {**data, **empty, **variation}, follow=True)

    product = ours(Product).get()
    assert answer.redirect_chain[-1][0] == url(product)
    assert "What has no price is not for sale" in answer.content.decode()
    priced = {"shelves-0-price": "9.99", "shelves-1-price": "8.5", "shelves-1-quantity_step": "3"}
    assert save(browser, product, **priced).status_code == 302
    shelf = Shelf.objects.get(variation__name="EU")
    assert (shelf.price, shelf.quantity_step) == (Decimal("8.5"), 3)
    assert price_of(product) == 9.99


def test_a_new_product_takes_its_price_in_the_same_form(browser: Client) -> None:
    data = {"name": "Card 10", "currency": "USD", "active": "on", "category": make_category().pk}
    empty = {"variations-TOTAL_FORMS": "0", "variations-INITIAL_FORMS": "0"}

    bad = browser.post(NEW_PRODUCT, {**data, **empty, "price": "-1"})
    assert bad.status_code == 200
    assert not ours(Product).exists()
    answer = browser.post(NEW_PRODUCT, {**data, **empty, "price": "9.99"}, follow=True)

    product = ours(Product).get()
    assert price_of(product) == 9.99
    assert "What has no price is not for sale" not in answer.content.decode()
    change = own_shelf(product).price_changes.get()
    assert change.changed_by.startswith("admin:")


def test_a_currency_may_be_typed_in_small_letters(browser: Client) -> None:
    for address, name in ((NEW_PRODUCT, "Card"), (list_url(Account) + "add/", "Shop")):
        form = form_of(browser, address) | {"name": name, "currency": " usd"}
        browser.post(address, form)

    assert ours(Product).get(name="Card").currency == "USD"
    assert Account.objects.get(name="Shop").currency == "USD"


def test_the_price_of_a_new_product_needs_the_permission_for_prices(db: None) -> None:
    rights = ("add_product", "view_product", "view_category", "view_variation", "add_variation")
    staff = make_staff(*(f"catalogue.{right}" for right in rights))

    browser = signed_in(staff)
    form = browser.get(NEW_PRODUCT).content.decode()
    sent = {"name": "Card", "currency": "USD", "active": "on", "price": "1.00"}
    rows = {"variations-TOTAL_FORMS": "1", "variations-INITIAL_FORMS": "0"}
    rows |= {"variations-0-name": "10", "variations-0-active": "on", "variations-0-price": "1.00"}
    browser.post(NEW_PRODUCT, {**sent, **rows})

    assert 'name="name"' in form
    assert 'price"' not in form
    prices = ours(Product).get().shelves.values_list("variation__name", "price")
    assert sorted(prices, key=str) == [("10", None), (None, None)]


def test_a_product_and_its_variations_with_prices_are_made_in_one_form(db: None) -> None:
    browser = signed_in(staff_with(StaffRole.STOCK_KEEPER))
    typed = {"name": "Card", "currency": "USD", "active": "on", "price": "9"}
    typed |= {"variations-TOTAL_FORMS": "2", "variations-INITIAL_FORMS": "0"}
    for number, (name, price, step) in enumerate((("10 USD", "9.50", "3"), ("20 USD", "", "1"))):
        row = {"name": name, "price": price, "quantity_step": step, "active": "on"}
        typed |= {f"variations-{number}-{key}": value for key, value in row.items()}

    assert browser.post(NEW_PRODUCT, typed).status_code == 302

    product = ours(Product).get()
    of_variation = dict(product.shelves.values_list("variation__name", "price"))
    assert of_variation == {None: Decimal(9), "10 USD": Decimal("9.5"), "20 USD": None}
    priced = Shelf.objects.get(variation__name="10 USD")
    assert priced.price_changes.get().changed_by.startswith("admin:")
    assert dict(product.shelves.values_list("variation__name", "quantity_step"))["10 USD"] == 3
    assert AuditEntry.objects.filter(changes={"quantity_step": [1, 3]}).count() == 1


def test_a_new_product_leads_to_what_is_missing(db: None) -> None:
    browser = signed_in(staff_with(StaffRole.STOCK_KEEPER))
    typed = {"name": "Card", "currency": "USD", "active": "on", "price": ""}
    typed |= {"variations-TOTAL_FORMS": "1", "variations-INITIAL_FORMS": "0"}
    typed |= {"variations-0-name": "10 USD", "variations-0-quantity_step": "1"}
    typed |= {"variations-0-active": "on"}

    for price, words in (("", "Set the prices that are missing"), ("9", "Next: ")):
        row = {"name": f"Card {price}", "variations-0-price": price}
        answer = browser.post(NEW_PRODUCT, {**typed, **row}, follow=True)
        *_, message = map(str, answer.context["messages"])
        assert message.startswith(words)
    assert "import the codes</a>" in message


def test_a_planned_price_is_shown_where_the_price_is_edited(browser: Client) -> None:
    shelf = make_variation(make_product(price="10"), price="20").shelf
    later = timezone.now() + timedelta(days=3)
    Shelf.objects.filter(pk=shelf.pk).update(next_price=Decimal(21), next_price_from=later)

    page = browser.get(url(shelf.product)).content.decode()

    assert f"21.00 USD from {later:%Y-%m-%d}" in page


@pytest.mark.parametrize("page", ["product", "shelf"])
def test_a_large_change_of_a_price_must_be_confirmed(browser: Client, page: str) -> None:
    product = make_product(price="10.00")
    shelf = own_shelf(product)
    target, name = (shelf, "price") if page == "shelf" else (product, "shelves-0-price")

    def price_after(**changes: str) -> Any:
        answer = save(browser, target, **changes)
        shelf.refresh_from_db()
        return shelf.price, answer

    kept, asked = price_after(**{name: "13.01"})
    assert kept == 10
    assert "from 10.00 to 13.01" in asked.content.decode()
    assert "Please correct the error" not in asked.content.decode()
    _kept, wrong = price_after(**{name: "13.01", name.replace("price", "quantity_step"): "x"})
    assert "Please correct the error" in wrong.content.decode()
    assert f'name="{name}-confirmed" value="13.01"' in asked.content.decode()
    other, _ = price_after(**{name: "1301", f"{name}-confirmed": "13.01"})
    assert other == 10
    changed, _ = price_after(**confirmed(name, "13.01"))
    assert changed == Decimal("13.01")
    small, _ = price_after(**{name: "16.91"})
    assert small == Decimal("16.91")


@pytest.mark.parametrize("page", ["product", "shelf"])
def test_a_large_change_is_confirmed_in_german(browser: Client, page: str) -> None:
    browser.defaults["HTTP_ACCEPT_LANGUAGE"] = "de"
    product = make_product(price="1000.00")
    obj, name = (product, "shelves-0-price") if page == "product" else (own_shelf(product), "price")

    asked = save(browser, obj, **{name: "13456.5"}).content.decode()
    box = re.search(rf'name="{name}-confirmed" value="([^"]*)"', asked)
    assert box is not None
    save(browser, obj, **{name: "13456.5", f"{name}-confirmed": box[1]})

    assert price_of(product) == Decimal("13456.5")


@pytest.mark.parametrize("role", [StaffRole.STOCK_KEEPER, None])
def test_the_question_about_a_price_comes_first_with_the_margins(
    db: None, role: StaffRole | None
) -> None:
    product = make_product(name="Gems", price="10.00")
    batch = make_batch(own_shelf(product))
    type(batch).objects.update(unit_cost=Decimal(8), cost_currency="USD")
    browser = signed_in(staff_with(role) if role else None)

    page = save(browser, product, **{"shelves-0-price": "16.00"}).content.decode()

    question = " ".join(re.sub(r"<[^>]*>", " ", page[page.index("Is this price right?") :]).split())
    asked = "Is this price right? Gems: 10.00 USD → 16.00 USD (+60.0 %), margin 20.0 % → 50.0 %"
    assert question.startswith(asked)
    assert page.index("shelves-0-price-confirmed") < page.index('name="name"')


def test_the_question_about_a_price_has_the_old_step_and_currency(browser: Client) -> None:
    product, other = make_product(name="Gems", price="10.00"), make_product(price="10.00")
    batch = make_batch(own_shelf(product))
    type(batch).objects.filter(pk=batch.pk).update(unit_cost=Decimal(8), cost_currency="USD")

    steps = {"shelves-0-price": "200.00", "shelves-0-quantity_step": "10"}
    page = save(browser, product, **steps).content.decode()
    moved = save(browser, other, **{"shelves-0-price": "20.00", "currency": "EUR"})

    text = " ".join(re.sub(r"<[^>]*>", " ", page[page.index("Is this price right?") :]).split())
    assert "10.00 USD → 200.00 USD (+1,900.0 %), margin 20.0 % → 60.0 %" in text
    assert "10.00 USD → 20.00 EUR" in moved.content.decode()


@pytest.mark.parametrize("page", ["product", "shelf"])
@pytest.mark.parametrize("price", GOOD_PRICES)
def test_a_price_is_saved_exactly(browser: Client, page: str, price: str) -> None:
    product = make_product(price="1.00")
    shelf = own_shelf(product)

    if page == "shelf":
        answer = save(browser, shelf, **confirmed("price", price))
    else:
        answer = save(browser, product, **confirmed("shelves-0-price", price))

    assert answer.status_code == 302
    shelf.refresh_from_db()
    assert shelf.price == (Decimal(price) if price else None)
    assert price_of(product) == (None if not price else float(price))


@pytest.mark.parametrize("page", ["product", "shelf"])
@pytest.mark.parametrize("name", ["price", "quantity_step"])
def test_an_impossible_price_or_step_is_refused(browser: Client, page: str, name: str) -> None:
    product = make_product(price="1.00")
    shelf = own_shelf(product)
    row: Any = shelf if page == "shelf" else product
    field = name if page == "shelf" else f"shelves-0-{name}"
    form = form_of(browser, url(row))
    with without_frame(""):  # only the errors are read
        for value in BAD_PRICES if name == "price" else BAD_STEPS:
            answer = browser.post(url(row), form | {field: value})
            if page == "shelf":
                errors = answer.context["adminform"].form.errors
            else:
                errors = answer.context["inline_admin_formsets"][0].formset.errors[0]

            assert name in errors, value
    shelf.refresh_from_db()
    assert (shelf.price, shelf.quantity_step) == (Decimal("1.00"), 1)


@pytest.mark.parametrize("page", ["product", "shelf"])
def test_saving_keeps_concurrent_changes(browser: Client, page: str) -> None:
    product = make_product(codes=5)
    target: Any = own_shelf(product) if page == "shelf" else product
    form = form_of(browser, url(target))

    def others(instance: Shelf, **kwargs: Any) -> None:
        Shelf.objects.filter(pk=instance.pk).update(available_stock=2, quantity_step=3)

    # A sale and a colleague's change, after the page read the shelf and before it saves.
    pre_save.connect(others, sender=Shelf)
    try:
        changed = confirmed("price" if page == "shelf" else "shelves-0-price", "3")
        assert browser.post(url(target), {**form, **changed}).status_code == 302
    finally:
        pre_save.disconnect(others, sender=Shelf)

    shelf = own_shelf(product)
    assert (shelf.price, shelf.available_stock, shelf.quantity_step) == (Decimal(3), 2, 3)


def test_stock_cannot_be_edited(browser: Client) -> None:
    product = make_product(codes=5)

    save(browser, own_shelf(product), available_stock="99", price="3")
    save(browser, product, **{"shelves-0-available_stock": "99", "shelves-0-price": "4"})

    assert own_shelf(product).available_stock == 5


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    ("choice", "names"),
    [("none", ["none"]), ("low", ["low"]), ("some", ["low", "some"])],
)
def test_stock_levels_are_filtered(browser: Client, choice: str, names: list[str]) -> None:
    for name, codes in {"none": 0, "low": 9, "some": 10}.items():
        make_product(name=name, codes=codes)

    rows = browser.get(list_url(Shelf, stock=choice)).context["cl"].result_list

    assert sorted(row.product.name for row in rows) == sorted(names)


@pytest.mark.usefixtures("alone")
def test_a_product_that_is_sold_by_its_variations_shows_what_they_have(browser: Client) -> None:
    product = make_product(name="Gems", price=None)
    for name, price, codes in (("EU", "19.20", 46), ("US", "24.75", 107)):
        make_variation(product, name=name, price=price, codes=codes)

    levels = browser.get(list_url(Shelf)).content.decode()
    products = browser.get(list_url(Product)).content.decode()

    assert "153 in variations" in levels
    assert "19.20 to 24.75 USD" in products
    assert "153 in variations" not in browser.get(list_url(Shelf, stock="none")).content.decode()


def test_the_currency_of_a_sold_product_is_fixed(browser: Client) -> None:
    product = make_product(codes=1)
    save(browser, product, currency="EUR")
    assert ours(Product).get().currency == "EUR"
    save(browser, product, currency="USD")
    assert make_merchant().buy(product_id=product.pk, quantity=1).status_code == 201

    save(browser, product, currency="EUR", name="Renamed")

    product.refresh_from_db()
    assert (product.name, product.currency) == ("Renamed", "USD")


def test_an_unused_product_can_be_deleted(browser: Client) -> None:
    product = make_product()
    make_variation(product)
    kept = make_product()
    make_variation(kept)

    assert url(product, "delete") in browser.get(url(product)).content.decode()
    assert "Variation" in browser.get(url(product, "delete")).content.decode()
    assert browser.post(url(product, "delete"), {"post": "yes"}).status_code == 302

    assert list(ours(Product).all()) == [kept]
    assert ours(Variation).get().product == kept


@pytest.mark.parametrize(
    "held", ["codes", "held codes", "new orders", "reference links", "codes of a variation"]
)
def test_a_used_product_cannot_be_deleted(browser: Client, held: str) -> None:
    product = make_product()
    shelf = own_shelf(product)
    match held:
        case "codes":
            add_codes(shelf, 3)
        case "held codes":
            add_codes(shelf, 3)
            hold_codes(codes=Q(shelf=shelf), reason="recalled", held_by="test")
        case "new orders":
            add_codes(shelf, 1)
            make_merchant().buy(product_id=product.pk, quantity=1)
        case "reference links":
            link(make_account(), "theirs", shelf)
        case _:
            make_variation(product, codes=3)

    assert url(product, "delete") not in browser.get(url(product)).content.decode()
    asked = browser.get(url(product, "delete"))
    browser.post(url(product, "delete"), {"post": "yes"})

    assert "protected" in asked.content.decode()
    assert held.split(maxsplit=1)[0] in asked.content.decode()
    assert Product.objects.filter(pk=product.pk).exists()


def test_a_category_with_products_cannot_be_deleted(browser: Client) -> None:
    category = make_category()
    make_product(category=category)

    assert url(category, "delete") not in browser.get(url(category)).content.decode()
    empty = make_category()
    assert url(empty, "delete") in browser.get(url(empty)).content.decode()
    answer = browser.post(url(category, "delete"), {"post": "yes"})

    assert "protected" in answer.content.decode()
    category.refresh_from_db()


def test_a_variation_is_switched_off_instead_of_deleted(browser: Client) -> None:
    variation = make_variation(make_product())

    row = {"shelves-1-DELETE": "on", "shelves-1-variation_active": None}
    save(browser, variation.product, **row)

    variation.refresh_from_db()
    assert not variation.active


def test_one_table_has_the_names_and_prices_of_variations(db: None) -> None:
    """The row of the product itself keeps its name."""
    variation = make_variation(make_product(price="7.00"), name="EU", price="8.00")
    browser = signed_in(staff_with(StaffRole.STOCK_KEEPER))
    form = form_of(browser, url(variation.product))
    assert form["shelves-1-variation_name"] == "EU"
    assert not any(name.startswith("variations-0-") for name in form)

    row = {"shelves-0-variation_name": "Other", "shelves-1-variation_name": "Europe"}
    save(browser, variation.product, **row, **{"shelves-1-price": "8.50"})

    variation.refresh_from_db()
    assert (variation.name, variation.active, variation.shelf.price) == (
        "Europe",
        True,
        Decimal("8.50"),
    )
    entry = AuditEntry.objects.filter(object_type="catalogue.shelf").latest("pk")
    assert entry.changes["variation_name"] == ["EU", "Europe"]
    prices_only = make_staff("catalogue.change_product", "catalogue.change_shelf")
    assert "shelves-1-variation_name" not in form_of(signed_in(prices_only), url(variation.product))


def test_a_bad_reference_is_refused(browser: Client) -> None:
    account, product = make_account(), make_product()
    address = reverse("admin:catalogue_referencelink_add")
    data = {"account": account.pk, "shelf": own_shelf(product).pk}

    for odd in ("", " ", "-x", "x" * 65, "a\nb", "emoji 🙂"):
        answer = browser.post(address, {**data, "reference": odd})
        assert "reference" in answer.context["adminform"].form.errors, odd
    assert browser.post(address, {**data, "reference": "Steam / EU #1"}).status_code == 302
    again = browser.post(address, {**data, "reference": "another"})
    assert again.status_code == 200


def test_stock_levels_name_the_ids(browser: Client) -> None:
    shelf = make_variation(make_product()).shelf

    page = browser.get(list_url(Shelf)).content.decode()

    for label, number in (("product ID", shelf.product_id), ("variation ID", shelf.variation_id)):
        assert re.search(rf'data-label="{label}">\s*{number}\s*<', page), label


def test_a_new_product_begins_with_the_currency_of_the_newest_one(browser: Client) -> None:
    make_product(currency="EUR")
    assert form_of(browser, NEW_PRODUCT)["currency"] == "EUR"


@pytest.mark.django_db
def test_a_product_leads_finance_to_no_page_of_others() -> None:
    kind = make_category()
    product, category = make_product(category=kind), url(kind)
    assert (
        f'href="{category}"'
        in signed_in(staff_with(StaffRole.AUDITOR)).get(url(product)).content.decode()
    )

    page = signed_in(staff_with(StaffRole.FINANCE)).get(url(product)).content.decode()

    assert str(kind) in page
    assert category not in page


@pytest.mark.parametrize("currency", ["u\xdf", "\u0131nr"])  # capitals: USS, INR
def test_a_currency_has_ascii_letters(browser: Client, currency: str) -> None:
    form = form_of(browser, NEW_PRODUCT) | {"name": "Card", "currency": currency}

    answer = browser.post(NEW_PRODUCT, form)

    assert "Use three capital letters" in answer.content.decode()
    assert not ours(Product).exists()


def test_the_page_of_a_product_has_each_price_once(browser: Client) -> None:
    """A new variation without a price gets it in the table of shelves, to which saving leads."""
    product = make_variation(make_product(price="7.77"), price="8.88").product
    form = form_of(browser, url(product))
    assert "8.88" in form.values()
    assert "variations-0-price" not in form
    page = browser.get(url(product)).content.decode()
    assert page.count('value="8.88"') == 2  # shown, and hidden
    assert page.count("8.88") == 3  # and in the timeline
    new = {"variations-TOTAL_FORMS": "1", "variations-0-name": "US", "variations-0-active": "on"}

    answer = save(browser, product, **new)

    assert answer["Location"] == url(product)
    shelf = Shelf.objects.get(variation__name="US")
    assert (shelf.price, shelf.quantity_step) == (None, 1)
    assert "Set the prices that are missing below" in browser.get(url(product)).content.decode()
    assert save(browser, product)["Location"] == list_url(Product)


def test_a_new_variation_of_a_product_gets_its_price_and_step_at_once(browser: Client) -> None:
    product = make_variation(make_product(price="7.77"), price="8.88").product
    new = {"variations-TOTAL_FORMS": "1", "variations-0-name": "US", "variations-0-active": "on"}
    new |= {"variations-0-price": "9.50", "variations-0-quantity_step": "3"}

    assert 'name="variations-__prefix__-price"' in browser.get(url(product)).content.decode()
    assert save(browser, product, **new)["Location"] == url(product)

    shelf = Shelf.objects.get(variation__name="US")
    assert (shelf.price, shelf.quantity_step) == (Decimal("9.50"), 3)
    assert shelf.price_changes.get().changed_by.startswith("admin:")


@pytest.mark.django_db
def test_the_page_of_a_product_shows_price_cost_margin_and_since_when() -> None:
    product = make_product(price="10.00")
    batch = make_batch(own_shelf(product))
    type(batch).objects.update(unit_cost=Decimal(8), cost_currency=product.currency)
    for role, sees in ((StaffRole.STOCK_KEEPER, True), (StaffRole.SUPPORT, False)):
        page = signed_in(staff_with(role)).get(url(product)).content.decode()
        assert ("20.0 %" in page) == sees, role
        of_shelf = signed_in(staff_with(role)).get(url(own_shelf(product))).content.decode()
        assert ("20.0 %, at a cost of 8.00 USD" in of_shelf) == sees, role
        assert "Since" in page
        assert "Next price" not in page
    assert 'value="8.00"' in signed_in().get(url(batch)).content.decode()
    type(batch).objects.update(unit_cost=None, cost_currency="")
    of_shelf = signed_in().get(url(own_shelf(product))).content.decode()
    assert "Not known. Check the cost of its batches." in of_shelf
    assert list_url(VoucherCode, shelf__id__exact=own_shelf(product).pk, state="held") in (
        html.unescape(of_shelf)
    )
    assert "no recent sales" in of_shelf
    assert "the first codes expire on" not in of_shelf
    make_batch(own_shelf(product), expires_on=date(2100, 12, 31))
    DailyTotal.objects.create(
        day=timezone.now().date(),
        currency="USD",
        shelf=own_shelf(product),
        orders=70,
        quantity=70,
        amount=700,
    )
    of_shelf = signed_in().get(url(own_shelf(product))).content.decode()
    assert "the first codes expire on 2100-12-31" in of_shelf
    hold_codes(codes=Q(expires_on__isnull=False), reason="t", held_by="t")
    assert "the first codes expire on" not in signed_in().get(url(own_shelf(product))).text
    assert "less than a day" in of_shelf
    at = timezone.now() + timedelta(days=1)
    product.shelves.update(next_price=Decimal(12), next_price_from=at)
    assert "Next price" in signed_in().get(url(product)).content.decode()


@pytest.mark.django_db
def test_the_page_of_a_hold_says_who_voided_it() -> None:
    """It was held and voided by different people. Codes that left it do not make it void."""
    shelf, voider = own_shelf(make_product(codes=3)), staff_with(StaffRole.STOCK_KEEPER)
    hold, _number = hold_codes(codes=Q(shelf=shelf), reason="look", held_by="admin:anna")
    assert hold is not None
    code = Q(pk=hold.codes.order_by("pk").values("pk")[:1])
    end_codes(void_hold, codes=code, seen={hold.pk: 1}, reason="bad", actor=voider)

    def fields(pk: int) -> str:
        page = signed_in(voider).get(reverse("admin:catalogue_codehold_change", args=[pk]))
        return " ".join(strip_tags(page.content.decode()).split())

    part = CodeHold.objects.latest("pk")
    assert "Voided by" not in fields(hold.pk)
    assert "Held by anna Held at" in fields(part.pk)
    assert f"Voided by {voider} Voided at" in fields(part.pk)


@pytest.mark.django_db
def test_a_field_with_a_search_has_german_texts() -> None:
    browser = signed_in()
    browser.cookies[settings.LANGUAGE_COOKIE_NAME] = "de"
    for address in (url(make_product()), list_url(Product)):
        scripts = re.findall(
            r'src="/static/(admin/js/vendor/select2/[^"]*)"', browser.get(address).text
        )
        assert len(scripts) == 2  # a second copy of select2 would hide the texts from the first
        assert scripts[1].endswith("i18n/de.js")
