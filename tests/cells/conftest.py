"""Two cells with a merchant; and two with web processes and HAProxy, once for a test file."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from catalogue.models import Shelf
from tests.cells.haproxy import Haproxy, haproxy
from tests.cells.two_cells import PRODUCT, TOPUP, VARIATION, Cell, two_cells
from tests.commands import run
from tests.factories import (
    Merchant,
    buy_topup,
    link,
    make_client,
    make_merchant,
    make_operator,
    move_now,
)
from tests.live import API, LiveServer
from topups.fulfilments import RejectReason
from topups.models import TopUpProduct
from topups.refunds import sweep_refunds
from topups.transitions import Move


@dataclass(frozen=True)
class Service:
    """The cells by name, their web servers, and the proxy."""

    a: Cell
    b: Cell
    servers: dict[str, LiveServer]
    proxy: Haproxy


@pytest.fixture(scope="module")
def service(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("cells")
    with ExitStack() as stack:
        with django_db_blocker.unblock():
            a, b = stack.enter_context(two_cells(folder))
        servers = {}
        for cell in (a, b):
            place = folder / cell.name
            place.mkdir()
            environment = {**cell.environment, **API, "TRUSTED_PROXIES": "127.0.0.1/32"}
            server = LiveServer(environment, workers=1, folder=place)
            server.start()
            stack.callback(server.stop)
            servers[cell.name] = server
        ports = {name: server.port for name, server in servers.items()}
        yield Service(a, b, servers, stack.enter_context(haproxy(Path(folder / "proxy"), **ports)))


@pytest.fixture
def cells(alone: None, tmp_path: Path) -> Iterator[tuple[Cell, Cell]]:
    """Both cells have the same products and codes of their own. Cell `b` has a merchant already, so
    its ids are others."""
    with two_cells(tmp_path) as (a, b):
        a.fill([f"a-{number}" for number in range(20)], ["a-large"])
        b.fill([f"b-{number}" for number in range(20)])
        with b.entered():
            make_merchant().buy(product_id=PRODUCT, quantity=1)
        yield a, b


@pytest.fixture
def merchant(cells: tuple[Cell, Cell]) -> Merchant:
    """In cell `a`, with every kind of order, and a second client."""
    with cells[0].entered():
        merchant = make_merchant(balance="100.0000", allowed_networks=["127.0.0.0/8"])
        account = merchant.client.account
        assert account is not None
        link(account, "my-card", Shelf.objects.get(product=PRODUCT, variation=None))
        bought = merchant.buy("plain", product_id=PRODUCT, quantity=3).json()["data"]["reference"]
        merchant.buy("mapped", merchant_reference="my-card", quantity=1)
        merchant.buy("large", product_id=PRODUCT, variation_id=VARIATION, quantity=1)
        run("credit_order", bought, "1.00", "--reference", "c", "--note", "broken")
        operator, gems = make_operator(), TopUpProduct.objects.get(pk=TOPUP)
        for ends in ([Move.CLAIM, Move.COMPLETE], [Move.CLAIM, Move.REJECT]):
            reference = buy_topup(merchant, gems)
            for move in ends:
                move_now(
                    reference=reference, move=move, operator=operator, reason=RejectReason.WRONG_ID
                )
        sweep_refunds()
        Merchant(make_client(account)).buy("plain", product_id=PRODUCT, quantity=1)
    return merchant
