"""A real Alertmanager with the shipped example: who hears of what, and what is reported once."""

import json
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from embedded.environment import PROJECT
from embedded.processes import Process, free_port
from tests.metrics.shipped import PROMETHEUS, rules
from tests.tasks.running import wait_until

pytestmark = pytest.mark.prometheus
CONFIG = PROMETHEUS / "alertmanager.yml"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of its API."""
    program = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
    assert program is not None
    folder, port = tmp_path_factory.mktemp("alertmanager"), free_port()
    command = [
        program,
        f"--config.file={CONFIG}",
        f"--storage.path={folder}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    ]
    with (folder / "log").open("wb") as output:
        process = Process("alertmanager", command, environment={}, folder=PROJECT, output=output)
        try:
            yield f"http://127.0.0.1:{port}/api/v2/alerts"
        finally:
            process.stop()


def suppressed(url: str, firing: list[str]) -> set[str]:
    """Which of these alerts nobody hears of."""
    body = [{"labels": {"alertname": name, "severity": rules()[name].severity}} for name in firing]
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    found: list[Any] = []

    def is_known() -> bool:
        try:
            urllib.request.urlopen(request, timeout=5).close()
            with urllib.request.urlopen(url, timeout=5) as answer:
                found[:] = json.load(answer)
        except OSError:
            return False
        return {each["labels"]["alertname"] for each in found} >= set(firing)

    wait_until(is_known, "Alertmanager knows the alerts")
    return {
        each["labels"]["alertname"]
        for each in found
        if each["labels"]["alertname"] in firing and each["status"]["state"] == "suppressed"
    }


def test_a_lost_cache_does_not_also_report_worker_and_scheduler(url: str) -> None:
    missing = ["VoucherWorkerMissing", "VoucherSchedulerMissing"]
    assert suppressed(url, [*missing, "VoucherPurchasesFail"]) == set()
    firing = ["VoucherCacheDown", *missing, "VoucherPurchasesFail"]
    wait_until(lambda: suppressed(url, firing) == set(missing), "both are suppressed")


@pytest.mark.parametrize(
    ("alert", "receiver"),
    [
        ("VoucherPurchasesFail", "on-call"),
        ("VoucherShelfRunsOut", "operations"),
        ("VoucherRefundOverdue", "on-call,operations"),
        ("VoucherWorkerMissing", "on-call"),
        ("VoucherKeyWornOut", "administrators"),
    ],
)
def test_each_alert_reaches_those_who_can_end_it(alert: str, receiver: str) -> None:
    labels = (f"alertname={alert}", f"severity={rules()[alert].severity}")
    assert amtool("config", "routes", "test", f"--config.file={CONFIG}", *labels) == receiver


def test_the_example_is_valid_and_names_alerts_that_exist() -> None:
    assert "SUCCESS" in amtool("check-config", str(CONFIG))
    text = CONFIG.read_text()
    for name in ("ShelfRunsOut", "DeskLate", "RefundOverdue", "EmailsLate", "AnnouncementsLate"):
        assert name in text
        assert f"Voucher{name}" in rules()
    for name in ("DatabaseUnreachable", "ExporterDown", "GaugesFailed", "CacheDown"):
        assert f"Voucher{name}" in rules()


def amtool(*arguments: str) -> str:
    program = shutil.which("amtool")
    assert program is not None
    ran = subprocess.run([program, *arguments], capture_output=True, text=True, check=True)
    return ran.stdout.strip()
