"""Two cells with their web processes, and HAProxy in front; started once for each test file."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cells.haproxy import Haproxy, haproxy
from tests.cells.two_cells import Cell, two_cells
from tests.live import API, LiveServer


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
