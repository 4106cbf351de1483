"""Pages of prices read few rows, however many changes and ended entries there were."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from catalogue.models import Batch, CodeHold, PriceList, PriceListEntry
from figures.price_lines import stock_costs
from operators.warnings.raising import sweep_warnings
from tests.concurrency.racing import execute
from tests.factories import (
    make_account,
    make_batch,
    make_product,
    make_topup_product,
    own_shelf,
)
from tests.merchants.people import browser_of, make_member
from tests.operators.back_office import list_url, signed_in, url
from tests.performance.plans import nodes, recorded_plans, rows_read

pytestmark = pytest.mark.django_db

CHANGES, ENDED, LISTS, SHELVES, HELD = 6_000, 8_000, 20, 20, 6_000
FEW = 4_500  # a list looks at 3,000 rows and counts up to 4,001


def _history() -> tuple[Any, PriceList]:
    """Two shelves and two top-up products with all changes, others without one, and lists whose
    entries have ended. Codes of two shelves are held."""
    account = make_account()
    products = [make_product(price="2") for _ in range(SHELVES)]
    busy, games = own_shelf(products[0]), [make_topup_product() for _ in range(3)]
    lists = [PriceList.objects.create(name=f"List {n}", currency="USD") for n in range(LISTS)]
    account.price_list_id = lists[0].pk
    account.save(update_fields=["price_list_id"])
    execute("SET LOCAL session_replication_role = replica")
    for table, column, row in (
        ("catalogue_shelfpricechange", "shelf_id", busy.pk),
        ("topups_topuppricechange", "product_id", games[0].pk),
    ):
        execute(
            f"INSERT INTO {table} ({column}, before, after, changed_at, changed_by)"
            " SELECT %s + n %% 2, 1, 2, now() - interval '1 hour' * n, ''"
            f" FROM generate_series({CHANGES}, 1, -1) AS n",
            row,
        )
    execute(
        "INSERT INTO catalogue_pricelistentry (price_list_id, shelf_id, for_sale, price,"
        f" valid_from, valid_until, added_by, ended_by) SELECT {lists[0].pk} + n % {LISTS},"
        f" {busy.pk} + (n / {LISTS}) % {SHELVES}, true, 1, now() - interval '1 day' * (n + 2),"
        f" now() - interval '1 day' * (n + 1), '', '' FROM generate_series(1, {ENDED}) AS n"
    )
    holds = [CodeHold.objects.create(reason="recalled", held_by="test") for _ in range(2)]
    execute(
        "INSERT INTO catalogue_vouchercode (shelf_id, position, sealed, digest, hold_id)"
        " SELECT %s + n %% 2, -n, decode(repeat('01', 75), 'hex'), sha256(n::text::bytea),"
        f" {holds[0].pk} + n %% 3 / 2 FROM generate_series(1, {HELD}) AS n",
        busy.pk,
    )
    execute("SET LOCAL session_replication_role = DEFAULT")
    for table in ("catalogue_shelfpricechange", "topups_topuppricechange"):
        execute(f"ANALYZE {table}")
    execute("ANALYZE catalogue_pricelistentry")
    execute("ANALYZE catalogue_vouchercode")
    return account, lists[0]


def test_pages_of_prices_read_few_rows() -> None:
    account, price_list = _history()
    staff, member = signed_in(), browser_of(make_member(account))
    entries = list_url(PriceListEntry)
    shelf = own_shelf(make_product(price="2"))
    make_batch(shelf)
    Batch.objects.update(unit_cost=1, cost_currency="USD")
    form = reverse("admin:catalogue_pricelist_set_prices", args=[price_list.pk])
    addresses: list[tuple[Client, str]] = [
        (member, "/merchant/prices/"),
        (member, "/merchant/prices/?kind=top_up"),
        (staff, list_url(PriceList)),
        (staff, url(price_list)),
        (staff, url(shelf)),
        (staff, reverse("admin:catalogue_pricelist_compare", query={"right": price_list.pk})),
        (staff, f"{form}?row=shelf-{shelf.pk}"),
        (staff, url(shelf.product, "delete")),
    ]
    addresses += [
        (staff, f"{entries}?{query}")
        for query in (
            "",
            "state=holds-now",
            "state=ended",
            f"price_list__id__exact={price_list.pk}",
            f"shelf__id__exact={shelf.pk}",
            "q=nothing",
        )
    ]
    most = {}
    for browser, address in addresses:
        with recorded_plans() as plans:
            assert browser.get(address).status_code == 200, address
        most[address] = max(rows_read(plan["Plan"]) for plan in plans)
    assert {address: rows for address, rows in most.items() if rows > FEW} == {}


def test_warnings_read_few_old_prices() -> None:
    _history()
    with recorded_plans() as plans:
        sweep_warnings()
    assert max(rows_read(plan["Plan"]) for plan in plans) < FEW / 4


def test_released_holds_are_read_once_for_all_shelves() -> None:
    shelves = [own_shelf(make_product(price="2")) for _ in range(SHELVES)]
    make_batch(shelves[0])
    Batch.objects.update(unit_cost=1, cost_currency="USD")
    holds = [CodeHold(reason="recalled", held_by="test") for _ in range(500)]
    CodeHold.objects.bulk_create(holds)

    with recorded_plans() as plans:
        costs = stock_costs([("shelf", shelf.pk) for shelf in shelves])

    assert costs == {("shelf", shelves[0].pk): 1}
    scans = [
        node["Actual Loops"]
        for plan in plans
        for node in nodes(plan["Plan"])
        if (node["Node Type"], node.get("CTE Name")) == ("CTE Scan", "held")
    ]
    assert scans == [1]
