"""A real Prometheus asks a real exporter about a real run, with the shipped rules and queries."""

import json
import os
import re
import shutil
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from embedded.environment import PROJECT
from embedded.processes import Process, free_port
from figures.sales_counting import count_sales
from operators.upkeep.models import Copy, Heartbeat, HeartbeatKind, ReconcileRun, RunState
from operators.upkeep.monitoring.readiness import ALIVE_FOR
from tests.factories import (
    Merchant,
    buy_topup,
    make_account,
    make_client,
    make_operator,
    make_product,
    move_now,
)
from tests.live import LiveServer, database_url
from tests.metrics.shipped import PROMETHEUS, queries, rules
from tests.tasks.running import Broker, running_broker, running_crew, wait_until
from topups.fulfilment.transitions import Move
from topups.models import TopUpProduct

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.prometheus]

# Nothing may fire. There is no replica, and the suite's server archives nothing.
MAY_BE_EMPTY = {"ALERTS", "voucher_archiving_fails_seconds", "voucher_replica_behind_bytes"}

Start = Callable[[str, list[str], dict[str, str]], Process]


class Prometheus:
    """Prometheus with the shipped configuration; only intervals, addresses and `for` differ."""

    def __init__(self, folder: Path, exporter: int) -> None:
        self._port = free_port()
        config = (PROMETHEUS / "prometheus.yml").read_text()
        config = config.replace("15s", "1s").replace("127.0.0.1:9464", f"127.0.0.1:{exporter}")
        config = re.sub(r"alerting:.*?(?=scrape_configs)", "", config, flags=re.DOTALL)
        (folder / "prometheus.yml").write_text(config)
        alerts = (PROMETHEUS / "alerts.yml").read_text()
        (folder / "alerts.yml").write_text(re.sub(r"for: \w+", "for: 1s", alerts))
        self.command = [
            shutil.which("prometheus") or "prometheus",
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self._port}",
        ]

    def ask(self, path: str, **query: str) -> Any:
        url = f"http://127.0.0.1:{self._port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.BAD_REQUEST:
                raise
            raise AssertionError(f"{query}: {error.read().decode()}") from None

    def find(self, query: str) -> list[Any]:
        """The result of a query; empty while Prometheus is not ready."""
        try:
            found: list[Any] = self.ask("query", query=query)["result"]
        except OSError:
            return []
        return found

    def firing(self) -> set[str]:
        """The names of the alerts that fire."""
        alerts = self.ask("alerts")["alerts"]
        return {one["labels"]["alertname"] for one in alerts if one["state"] == "firing"}

    def unanswered(self) -> list[str]:
        """The queries of the dashboard without an answer. Raises AssertionError for a wrong one."""
        return [
            query
            for query in queries()
            if not any(name in query for name in MAY_BE_EMPTY)
            and not self.find(query.replace("$__rate_interval", "1m"))
        ]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts processes that are stopped at the end of the test."""
    with ExitStack() as stack:

        def start(name: str, command: list[str], environment: dict[str, str]) -> Process:
            output = stack.enter_context((tmp_path / f"{name}.log").open("wb"))
            process = Process(name, command, environment=environment, folder=PROJECT, output=output)
            stack.callback(process.stop)
            return process

        yield start


@pytest.fixture
def broker() -> Iterator[Broker]:
    with running_broker() as broker:
        yield broker


def test_a_missing_worker_fires_and_every_query_answers(
    live: LiveServer, broker: Broker, tmp_path: Path, start: Start
) -> None:
    port = free_port()
    exporter = {
        "DATABASE_URL": database_url(),
        "METRICS_DIR": str(live.metrics),
        "METRICS_PORT": str(port),
    }
    merchant = Merchant(make_client(make_account(balance="100.00")), http=live.http)
    product = make_product(codes=3, price="1.00")
    for quantity in (1, 1, 50):
        merchant.buy(product_id=product.pk, quantity=quantity)
    count_sales()
    buy_topup(merchant)
    reference, operator = buy_topup(merchant), make_operator()
    TopUpProduct.objects.update(promised_minutes=5)
    for move in (Move.CLAIM, Move.COMPLETE):
        move_now(reference=reference, move=move, operator=operator)
    now = timezone.now()
    ReconcileRun.objects.create(state=RunState.CLEAN, started_at=now, finished_at=now)
    Copy.objects.create(kind="backup", host="db1")
    with running_crew(broker.url, METRICS_DIR=str(live.metrics)) as crew:
        worker, _, _ = crew.worker(), crew.imports_worker(), crew.beat("sweep-emails")
        start("exporter", [sys.executable, "manage.py", "run_metrics"], {**os.environ, **exporter})
        prometheus = Prometheus(tmp_path, port)
        start("prometheus", prometheus.command, dict(os.environ))

        up = 'up{job=~"voucher-.*"} == 1'
        wait_until(lambda: len(prometheus.find(up)) == 2, "both jobs are asked")
        alive = "voucher_heartbeat_age_seconds < 60"
        wait_until(lambda: len(prometheus.find(alive)) == 3, "all are alive")
        with suppress(AssertionError):
            wait_until(lambda: not prometheus.unanswered(), "every query answers")
        assert prometheus.unanswered() == []
        shipped = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
        assert {rule["name"] for rule in shipped} == set(rules())
        assert [rule for rule in shipped if rule["health"] != "ok"] == []
        wait_until(lambda: "VoucherWorkerMissing" not in prometheus.firing(), "it is silent")

        worker.kill()
        # As if a minute had passed.
        Heartbeat.objects.filter(kind=HeartbeatKind.WORKER).update(beat_at=F("beat_at") - ALIVE_FOR)
        wait_until(lambda: "VoucherWorkerMissing" in prometheus.firing(), "it fires")
        assert "VoucherSchedulerMissing" not in prometheus.firing()

        crew.worker()
        wait_until(lambda: "VoucherWorkerMissing" not in prometheus.firing(), "it ends")
