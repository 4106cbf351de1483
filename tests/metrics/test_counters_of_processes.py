"""Web processes and workers count into files, and the exporter of their host adds them up."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from core.telemetry import metrics
from core.telemetry.metrics import Count, Times, _Files
from tests.factories import Merchant, make_account, make_client, make_product, make_topup_product
from tests.live import LiveServer, live_server
from tests.metrics.scraping import Samples, read, scrape_host, total, value
from tests.tasks.running import wait_until

ORDERS = "api/v1/orders"


@pytest.fixture(scope="module")
def server(django_db_setup: None) -> Iterator[LiveServer]:
    with live_server(workers=2) as server:
        yield server


@pytest.fixture
def merchant(server: LiveServer, transactional_db: None, settings: Any) -> Merchant:
    settings.METRICS_DIR = server.metrics
    return Merchant(make_client(make_account(balance="100.00")), http=server.http)


def purchases(samples: Samples) -> float:
    return total(samples, "voucher_purchases_total")


def scraped(server: LiveServer, number: float) -> Samples:
    """The counters once the processes have written so many purchases."""

    def enough() -> bool:
        return purchases(scrape_host(server.metrics)) >= number

    wait_until(enough, f"purchases: {number}", timeout=20)
    return scrape_host(server.metrics)


def soon(server: LiveServer, check: Callable[[Samples], None]) -> None:
    """Checks the counters until the check passes: processes write one metric after the other."""

    def passes() -> bool:
        try:
            check(scrape_host(server.metrics))
        except AssertionError:
            return False
        return True

    with suppress(AssertionError):  # the check says more
        wait_until(passes, "the counters", timeout=20)
    check(scrape_host(server.metrics))


def workers_of(server: LiveServer) -> list[int]:
    assert server._process is not None
    children = Path(f"/proc/{server._process.pid}/task/{server._process.pid}/children")
    return [int(pid) for pid in children.read_text().split()]


def check_purchases(samples: Samples) -> None:
    """What the test below sent, by kind, outcome and reason."""

    def counted(kind: str, outcome: str, reason: str = "") -> float | None:
        labels = {"kind": kind, "outcome": outcome, "reason": reason}
        return value(samples, "voucher_purchases_total", **labels)

    assert counted("voucher", "created") == 1
    assert counted("voucher", "replayed") == 1
    assert counted("voucher", "order_refused", "insufficient_stock") == 1
    assert counted("voucher", "validation_failed") == 1
    assert counted("top_up", "created") == 1
    assert counted("unknown", "validation_failed") == 1
    assert total(samples, "voucher_requests_total", route=ORDERS, method="POST", status="201") == 3
    one = "api/v1/orders/<str:reference>"
    assert value(samples, "voucher_requests_total", route=one, method="GET", status="404") == 1
    assert total(samples, "voucher_requests_total", route="other", status="404") == 1
    assert total(samples, "voucher_requests_total", method="other") == 1
    assert total(samples, "voucher_request_seconds_count", route=ORDERS, method="POST") == 6
    assert total(samples, "voucher_database_seconds_count", function="orders_purchase_topup") == 1
    assert total(samples, "voucher_database_seconds_sum", function="orders_purchase_vouchers") > 0
    assert total(samples, "voucher_cache_seconds_count", outcome="ok") >= 7


def test_purchases_are_counted_by_kind_outcome_and_reason(
    server: LiveServer, merchant: Merchant
) -> None:
    product, topup = make_product(codes=2, price="9.99"), make_topup_product()
    merchant.buy(product_id=product.pk, quantity=1, key="canary-key")
    merchant.buy(product_id=product.pk, quantity=1, key="canary-key")
    merchant.buy(product_id=product.pk, quantity=50)
    merchant.buy(product_id=987_654_321, quantity=1)
    merchant.buy(delivery_type="top_up", system_product_id=topup.pk, player_id="canaryplayer")
    merchant.post("{", key="canary-key-2")
    merchant.get("/orders/canary-reference")
    server.http.request("CANARY", "/api/v1/orders", None, {})
    server.http.get("/canary-path")

    soon(server, check_purchases)
    assert "canary" not in read("/metrics").lower()
    assert merchant.key not in read("/metrics")


def test_a_killed_process_leaves_its_counters_to_the_next(
    server: LiveServer, merchant: Merchant
) -> None:
    """The sum never falls, and no files are left over."""
    product = make_product(codes=5, price="1.00")
    earlier = total(scrape_host(server.metrics), "voucher_purchases_total")
    merchant.buy(product_id=product.pk, quantity=1)
    assert total(scraped(server, earlier + 1), "voucher_purchases_total") == earlier + 1
    files = sorted(path.name for path in server.metrics.iterdir())
    before = workers_of(server)

    for pid in before:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not set(before) & set(workers_of(server)), "both are replaced")
    assert total(scrape_host(server.metrics), "voucher_purchases_total") == earlier + 1

    server.http.close_all()
    wait_until(lambda: _answers(server), "they answer")
    merchant.buy(product_id=product.pk, quantity=1)

    assert total(scraped(server, earlier + 2), "voucher_purchases_total") == earlier + 2
    assert sorted(path.name for path in server.metrics.iterdir()) == files


def _answers(server: LiveServer) -> bool:
    try:
        return server.http.get("/healthz").status_code == 200
    except OSError:
        return False


@pytest.mark.parametrize("settings_of", ["settings", "settings_api", "settings_pages"])
def test_every_kind_of_web_process_counts_requests(settings_of: str) -> None:
    first = import_module(f"config.{settings_of}").MIDDLEWARE[0]

    assert first == "core.http.request_metrics.RequestMetricsMiddleware"


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> tuple[Count, Times]:
    """Two metrics of this test alone."""
    monkeypatch.setattr(metrics, "METRICS", [])
    return Count("voucher_tests", "Tests.", "name"), Times("voucher_test_seconds", "Time.", "name")


def test_a_duration_is_counted_in_its_bucket(
    tmp_path: Path, settings: Any, declared: tuple[Count, Times]
) -> None:
    times = declared[1]
    for seconds in (0.001, 0.0011, 3.0, 60.0):
        times.add(seconds, "a")

    _Files(tmp_path).write()

    samples = scrape_host(tmp_path)
    name = "voucher_test_seconds_bucket"
    counts = {le: value(samples, name, name="a", le=le) for le in ("0.001", "0.0025", "10.0")}
    assert counts == {"0.001": 1, "0.0025": 2, "10.0": 3}
    assert value(samples, name, name="a", le="+Inf") == 4
    assert value(samples, "voucher_test_seconds_sum", name="a") == pytest.approx(63.0021)


def test_only_what_is_new_is_added(
    tmp_path: Path, settings: Any, declared: tuple[Count, Times]
) -> None:
    files = _Files(tmp_path)
    for _ in range(3):
        declared[0].add("a")
        files.write()
    files.write()

    assert value(scrape_host(tmp_path), "voucher_tests_total", name="a") == 3


def test_a_torn_file_is_replaced(
    tmp_path: Path, settings: Any, declared: tuple[Count, Times]
) -> None:
    (tmp_path / "counter_1.db").write_bytes(b"\xff" * 100)
    declared[0].add("a")

    _Files(tmp_path).write()

    assert value(scrape_host(tmp_path), "voucher_tests_total", name="a") == 1


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with capture_logs() as logs:
        metrics.keep_in_files(tmp_path / "file" / "metrics")

    assert [line["event"] for line in logs] == ["metrics_not_kept"]
