"""The cost of a purchase and of a poll does not grow with the number of past orders."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from catalogue.models import Product
from catalogue.stock.codes import Code, seal_code
from orders.codes import codes_mac
from tests.concurrency.racing import execute, rows, scalar
from tests.database import another_database
from tests.factories import (
    Merchant,
    buy_topup,
    make_merchant,
    make_product,
    make_topup_product,
    own_shelf,
)
from tests.performance.plans import (
    REPETITIONS,
    custom_plans,
    nodes,
    pages,
    recorded_plans,
    sequential_scans,
)
from wallets.models import EntryKind, LedgerEntry

SOLD, IN_STOCK = 100_000, 5_000
LARGE = {
    "accounts_apikey",
    "catalogue_vouchercode",
    "idempotency_idempotencyrecord",
    "orders_order",
    "wallets_ledgerentry",
}
# Enough for index look-ups, not for a scan: a purchase of two codes reads 110 pages, and the table
# of codes has thousands.
FEW_PAGES = 160
FOR_EACH_ORDER = 16


@pytest.fixture(scope="module")
def history(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[tuple[Merchant, Product]]:
    """A merchant with many past orders of one product, in a database of their own: writing them
    takes most of the time. The purchases of one test are there in the next."""
    with django_db_blocker.unblock(), another_database("history"):
        yield make_history()


def make_history() -> tuple[Merchant, Product]:
    """Inserts the past orders without triggers."""
    merchant, product = make_merchant(balance="10000"), make_product(price="0.10", codes=1)
    client, shelf = merchant.client, own_shelf(product)
    execute("BEGIN")
    execute("SET LOCAL session_replication_role = replica")
    digests = [sha256(b"%d" % n).digest() for n in range(SOLD + IN_STOCK)]
    references = [f"OLD{n:023d}" for n in range(SOLD)]
    execute(
        "INSERT INTO orders_order (reference, client_id, number, shelf_id, quantity,"
        " units_per_sale, unit_price, total_price, currency, codes_mac)"
        " SELECT reference, %s, n, %s, 1, 1, 0.1, 0.1, 'USD', mac"
        "   FROM unnest(%s::text[], %s::bytea[]) WITH ORDINALITY AS old (reference, mac, n)",
        client.pk, shelf.pk, references,
        [codes_mac(client.pk, *of_order) for of_order in zip(references, digests, strict=False)],
    )  # fmt: skip
    execute("INSERT INTO orders_clientcounter (client_id, orders) VALUES (%s, %s)", client.pk, SOLD)
    execute(
        "INSERT INTO catalogue_vouchercode (shelf_id, sealed, digest, order_id)"
        " SELECT %s, sealed, digest, sale.id"
        "   FROM unnest(%s::bytea[], %s::bytea[]) WITH ORDINALITY AS code (sealed, digest, n)"
        "   LEFT JOIN orders_order sale ON sale.number = n ORDER BY n",
        shelf.pk, [seal_code(Code("OLD"), digest) for digest in digests], digests,
    )  # fmt: skip
    execute(
        "INSERT INTO catalogue_codedigest (digest, code_id)"
        " SELECT catalogue_half_digest(digest), id FROM catalogue_vouchercode"
        " ON CONFLICT DO NOTHING"
    )
    execute("UPDATE catalogue_shelf SET available_stock = available_stock + %s", IN_STOCK)
    execute(
        "INSERT INTO wallets_ledgerentry"
        " (wallet_id, kind, counterpart, amount, balance_after, order_reference, actor, chain)"
        " SELECT %s, 'purchase', 'sales', -0.1, 1, reference, 'client', '' FROM orders_order",
        client.account_id,
    )
    execute(
        "INSERT INTO idempotency_idempotencyrecord"
        " (client_id, key, fingerprint, attempt, order_reference, bought_at, response)"
        " SELECT %s, reference, '', 1, reference, now(), '' FROM orders_order",
        client.pk,
    )
    execute(
        "INSERT INTO accounts_apikey (client_id, prefix, digest)"
        " SELECT %s, 'x' || n, '' FROM generate_series(1, %s) n",
        client.pk, SOLD,
    )  # fmt: skip
    execute("COMMIT")
    execute("ANALYZE")
    return merchant, product


def test_a_purchase_reads_few_pages(
    history: tuple[Merchant, Product],
) -> None:
    merchant, product = history
    merchant.buy(product_id=product.pk, quantity=2)  # planning reads the system catalogue
    with recorded_plans() as plans:
        for _ in range(REPETITIONS):
            assert merchant.buy(product_id=product.pk, quantity=2).status_code == 201

    assert any("catalogue_vouchercode" in plan["Query Text"] for plan in plans)
    assert sequential_scans(plans, LARGE) == []
    assert expensive(plans) == []


def test_reading_orders_reads_few_pages(
    history: tuple[Merchant, Product],
) -> None:
    merchant, _ = history
    reference = scalar("SELECT reference FROM orders_order WHERE number = %s", SOLD // 2)
    paths = [f"/orders/{reference}", f"/orders?page={SOLD // 25}&per_page=25", "/products"]
    for path in paths:
        merchant.get(path)  # planning reads the system catalogue
    with recorded_plans() as plans:
        for path in paths * REPETITIONS:
            assert merchant.get(path).status_code == 200

    assert sequential_scans(plans, LARGE) == []
    assert expensive(plans, orders=25) == []


def test_entries_of_a_rare_kind_are_found_among_many_purchases(
    history: tuple[Merchant, Product],
) -> None:
    """A list of staff shows the newest of a kind, of all wallets."""
    with recorded_plans() as plans:
        found = list(LedgerEntry.objects.filter(kind=EntryKind.DEPOSIT).order_by("-pk")[:50])

    assert 0 < len(found) < 50
    assert sequential_scans(plans, LARGE) == []
    (plan,) = plans
    assert all(node.get("Rows Removed by Filter", 0) == 0 for node in nodes(plan["Plan"]))


def test_repeated_statements_have_generic_plans(history: tuple[Merchant, Product]) -> None:
    merchant, product = history
    game = make_topup_product(price="0.10")
    with_list = make_merchant(balance="1000")
    _give_price_list(with_list)
    reference = scalar("SELECT reference FROM orders_order WHERE number = %s", SOLD // 2)
    merchant.buy("once", product_id=product.pk, quantity=1)

    def send_every_request() -> None:
        merchant.buy(product_id=product.pk, quantity=2)
        merchant.buy("once", product_id=product.pk, quantity=1)
        buy_topup(merchant, game)
        with_list.buy(product_id=product.pk, quantity=2)
        buy_topup(with_list, game)
        for path in [f"/orders/{reference}", "/orders", f"/orders?page={SOLD // 25}"]:
            assert merchant.get(path).status_code == 200

    for _ in range(REPETITIONS):
        send_every_request()
    with recorded_plans() as plans:
        send_every_request()

    for table in ("orders_order sold", "catalogue_pricelistentry"):
        assert any(table in plan["Query Text"] for plan in plans)
    assert custom_plans(plans) == []


def _give_price_list(merchant: Merchant) -> None:
    """Gives the merchant one of twenty lists. In a single one, a generic plan looks no worse."""
    execute(
        "INSERT INTO catalogue_category (name, active)"
        " SELECT n, true FROM generate_series(1, 200) n"
    )
    execute(
        "INSERT INTO catalogue_pricelist (name, currency)"
        " SELECT n, 'USD' FROM generate_series(1, 20) n"
    )
    execute(
        "INSERT INTO catalogue_pricelistentry"
        " (price_list_id, category_id, for_sale, percent_off, added_by, ended_by)"
        " SELECT list.id, category.id, true, 5, '', ''"
        "   FROM catalogue_pricelist list, catalogue_category category"
    )
    execute(
        "UPDATE accounts_account SET price_list_id = (SELECT min(id) FROM catalogue_pricelist)"
        " WHERE id = %s",
        merchant.account.pk,
    )
    execute("ANALYZE catalogue_pricelistentry")


def test_control_a_first_request_has_custom_plans(
    history: tuple[Merchant, Product],
) -> None:
    merchant, _ = history
    connection.close()
    with recorded_plans() as plans:
        merchant.get("/orders")  # the first request of this connection
    assert custom_plans(plans) != []


def test_control_ordering_by_id_scans_sold_codes(
    history: tuple[Merchant, Product],
) -> None:
    """Control: ordered by id, PostgreSQL scans the primary key from its start, past sold codes."""
    _, product = history
    with recorded_plans() as plans:
        rows(
            "SELECT id FROM catalogue_vouchercode"
            " WHERE shelf_id = %s AND coalesce(order_id, 0) = 0 ORDER BY id LIMIT 2",
            own_shelf(product).pk,
        )
    assert expensive(plans) != []


def expensive(plans: list[dict[str, Any]], orders: int = 0) -> list[str]:
    """The statements that read more pages than allowed for this number of returned orders."""
    return [
        f"{pages(plan)} pages: {plan['Query Text']}"
        for plan in plans
        if pages(plan) > FEW_PAGES + FOR_EACH_ORDER * orders
    ]
