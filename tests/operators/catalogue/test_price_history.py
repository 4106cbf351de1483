"""Every price change is recorded, from every source: in the price history and the audit trail."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from audit.models import AuditAction, AuditEntry
from catalogue.models import Product, Shelf, ShelfPriceChange
from core.command_line import shell_actor
from tests.concurrency.racing import execute
from tests.factories import make_product, make_topup_product, own_shelf
from tests.operators.back_office import form_of, make_staff, signed_in, url
from topups.models import TopUpPriceChange, TopUpProduct

pytestmark = pytest.mark.django_db


def test_a_shelf_shows_its_earlier_prices() -> None:
    shelf = own_shelf(make_product(price="9.99"))
    before = shelf.price_changes.count()
    Shelf.objects.filter(pk=shelf.pk).update(price=Decimal("8.50"))
    Shelf.objects.filter(pk=shelf.pk).update(price=None)
    Shelf.objects.filter(pk=shelf.pk).update(price=None, quantity_step=2)

    changes = list(shelf.price_changes.order_by("pk").values_list("before", "after"))[before:]
    assert changes == [(Decimal("9.99"), Decimal("8.50")), (Decimal("8.50"), None)]
    assert "8.50" in signed_in().get(url(shelf)).content.decode()


def test_a_top_up_product_shows_its_earlier_prices() -> None:
    product = make_topup_product(price="4.99")
    TopUpProduct.objects.update(price=Decimal("3.21"))

    (change,) = product.price_changes.all()
    assert (change.before, change.after) == (Decimal("4.99"), Decimal("3.21"))
    assert "3.21" in signed_in().get(url(product)).content.decode()


def test_the_history_names_who_changed_a_price(db: None) -> None:
    staff = make_staff(superuser=True)
    browser, product, topup = signed_in(staff), make_product(), make_topup_product()

    shelf = own_shelf(make_product())
    pages: list[tuple[Product | Shelf | TopUpProduct, dict[str, str]]] = [
        (product, {"shelves-0-price": "8.23"}),
        (shelf, {"price": "8.89"}),
        (topup, {"price": "4.56"}),
    ]
    for page, change in pages:
        assert browser.post(url(page), {**form_of(browser, url(page)), **change}).status_code == 302

    who = f"admin:{staff.username}"
    for changed in (shelf, own_shelf(product)):
        assert changed.price_changes.latest("pk").changed_by == who
    assert TopUpPriceChange.objects.latest("pk").changed_by == who
    for page, _ in pages:
        shown = browser.get(url(page)).context["timeline"].rows
        assert staff.username in {row.who for row in shown if row.changes}


def test_the_history_names_an_import_and_a_change_by_sql(db: None, tmp_path: Path) -> None:
    shelf = own_shelf(make_product(price="9.99"))
    row = {"id": shelf.product.pk, "name": "A", "type": "voucher", "currency": "USD", "price": "8"}
    file = tmp_path / "catalogue.json"
    file.write_text(json.dumps({"products": [row]}))

    call_command("import_catalogue", str(file))
    assert shelf.price_changes.latest("pk").changed_by == shell_actor()

    with connection.cursor() as cursor:  # the test's transaction still has the import's name
        cursor.execute("SELECT set_config('voucher.actor', '', true)")
    Shelf.objects.filter(pk=shelf.pk).update(price=3)
    assert shelf.price_changes.latest("pk").changed_by.startswith("sql:")


def prices_recorded() -> list[tuple[str, Any]]:
    """The objects and the prices of the audit entries about prices, the oldest first."""
    entries = AuditEntry.objects.filter(action=AuditAction.PRICE_CHANGED).order_by("pk")
    return [(f"{one.object_type} {one.object_id}", one.changes["price"]) for one in entries]


def test_an_import_records_each_price_in_few_statements(tmp_path: Path) -> None:
    shelves = [own_shelf(make_product(price="9.99")) for _ in range(4)]
    topup, before = make_topup_product(price="4.99"), len(prices_recorded())
    content: dict[str, Any] = {
        "products": [
            {"id": one.product_id, "name": one.product.name, "currency": "USD", "price": "8"}
            for one in shelves
        ],
        "topup_products": [
            {"id": topup.pk, "name": topup.name, "currency": "USD", "price": "3.5"},
        ],
    }
    file = tmp_path / "catalogue.json"
    file.write_text(json.dumps(content))

    with CaptureQueriesContext(connection) as queries:
        call_command("import_catalogue", str(file))

    assert prices_recorded()[before:] == [
        *((f"catalogue.shelf {one.pk}", ["9.9900", "8.0000"]) for one in shelves),
        (f"topups.topupproduct {topup.pk}", ["4.9900", "3.5000"]),
    ]
    entry = AuditEntry.objects.filter(action=AuditAction.PRICE_CHANGED).latest("pk")
    assert (entry.actor_name, entry.reference) == (shell_actor(), topup.name)
    # The prices of shelves, those of top-up products, and the import.
    assert len([one for one in queries if 'INTO "audit_auditentry"' in one["sql"]]) == 3


@pytest.mark.parametrize("kind", ["shelf", "topup"])
def test_a_price_without_its_audit_entry_is_not_set(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = own_shelf(make_product(price="9")) if kind == "shelf" else make_topup_product(price="9")
    browser, page = signed_in(), url(row)
    form = {**form_of(browser, page), "price": "8"}
    monkeypatch.setattr("operators.frame.auditing.record_action", refuse)

    with pytest.raises(DatabaseError, match="cannot be written"):
        browser.post(page, form)

    row.refresh_from_db()
    assert row.price == 9


def test_an_import_without_its_audit_entries_sets_no_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = own_shelf(make_product(price="9"))
    row = {"id": shelf.product_id, "name": "A", "currency": "USD", "price": "2"}
    file = tmp_path / "catalogue.json"
    file.write_text(json.dumps({"products": [row]}))
    monkeypatch.setattr("operators.imports.catalogue_file.record_action", refuse)

    before = prices_recorded()
    with pytest.raises(DatabaseError, match="cannot be written"):
        call_command("import_catalogue", str(file))

    shelf.refresh_from_db()
    assert shelf.price == 9
    assert prices_recorded() == before


def test_a_price_of_sql_and_its_audit_entry_are_rolled_back_together() -> None:
    shelf = own_shelf(make_product(price="9"))
    before = prices_recorded()

    with transaction.atomic():
        execute("UPDATE catalogue_shelf SET price = 8 WHERE id = %s", shelf.pk)
        assert prices_recorded()[len(before) :] == [
            (f"catalogue.shelf {shelf.pk}", ["9.0000", "8.0000"])
        ]
        transaction.set_rollback(True)
    assert prices_recorded() == before


def refuse(**entry: Any) -> None:
    raise DatabaseError("the audit trail cannot be written")


@pytest.mark.django_db(transaction=True)
def test_the_history_is_kept_while_its_shelf_exists() -> None:
    shelf, topup = own_shelf(make_product()), make_topup_product()
    TopUpProduct.objects.filter(pk=topup.pk).update(price=Decimal("3.21"))

    for history in (ShelfPriceChange, TopUpPriceChange):
        rows: Any = history.objects.all()
        assert rows.exists()
        table = history._meta.db_table
        for refused in (
            f"DELETE FROM {table}",
            f"UPDATE {table} SET after = 1",
            f"TRUNCATE {table}",
        ):
            with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
                execute(refused)
        assert rows.exists()

    with transaction.atomic():
        Shelf.objects.filter(pk=shelf.pk).delete()
        topup.delete()
    assert not ShelfPriceChange.objects.filter(shelf=shelf).exists()
    assert not TopUpPriceChange.objects.exists()
