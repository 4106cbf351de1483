"""Each shipped alert fires beyond its limit and ends at it, as `promtool` computes it."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from operators.upkeep.monitoring.gauges import GAUGES
from operators.upkeep.monitoring.system_lines import COMPONENTS
from tests.metrics.shipped import (
    PROMETHEUS,
    RUNBOOKS_AT,
    check_rules,
    rule_test,
    rules,
    run_promtool,
    series,
)

pytestmark = pytest.mark.prometheus

FAILOVER = PROMETHEUS / "failover.yml"
SITE = "https://api.example.com/merchant/"
DISK = {"job": "node", "instance": "db1", "mountpoint": "/var", "fstype": "ext4"}
BAD_THEN_GOOD, GOOD_THEN_BAD = "0+2x119 240+0x120", "0+98x119 11760+100x120"
BUYING = {"route": "api/v1/orders", "method": "POST"}
EXPORTER_DOWN = "The exporter at {} does not respond, or Prometheus does not scrape the gauges."
# For each alert about a gauge: a value beyond the limit, and what the alert then says.
SAYS = {
    "VoucherAnnouncementsGivenUp": ("1", "1 pending orders will not be announced in Telegram."),
    "VoucherAnnouncementsLate": (
        "301",
        "An order has waited to be announced in Telegram for 5m 1s.",
    ),
    "VoucherBotMissing": ("61", "The Telegram bot has given no sign of life for a minute."),
    "VoucherArchivingFails": ("601", "PostgreSQL has archived no WAL for 10m 1s."),
    "VoucherBackupOld": ("180001", "The last backup is 2d 2h 0m 1s old."),
    "VoucherCopyOfFilesOld": (
        "8640001",
        "The copy of the host's files was last opened 100d 0h 0m 1s ago.",
    ),
    "VoucherCopyOfLogOld": ("601", "The purchase log of a host was last copied 10m 1s ago."),
    "VoucherCopyOfRootsOld": ("180001", "The signed roots last left the host 2d 2h 0m 1s ago."),
    "VoucherReplicaBehind": ("268435457", "The replica db2 lacks 256MiB of WAL."),
    "VoucherCacheDown": ("0", "The cache does not respond: no client is limited."),
    "VoucherDeskLate": ("1801", "Nobody has claimed a top-up for 30m 1s."),
    "VoucherEmailsLate": ("901", "An email has waited for 15m 1s."),
    "VoucherFiguresLate": (
        "1801",
        "The figures of sales or margins lack an order that is 30m 1s old.",
    ),
    "VoucherImportsMissing": ("61", "No imports worker has given a sign of life for a minute."),
    "VoucherKeyWornOut": ("2147483649", "Encryption key 2 may have sealed 2.147G values."),
    "VoucherKeysAbandoned": ("11", "11 purchases were made but their responses were lost."),
    "VoucherLedgerUnsigned": ("100801", "The ledger has not been signed for 1d 4h 0m 1s."),
    "VoucherReconcileFindings": ("1", "Problems in the books that the last reconcile found: 1."),
    "VoucherReconcileOverdue": ("100801", "reconcile has not finished for 1d 4h 0m 1s."),
    "VoucherRefundOverdue": ("301", "A refund has been due for 5m 1s."),
    "VoucherRefundsLate": ("2", "2 % of the refunds of a day took longer than a minute."),
    "VoucherTopupsLate": ("6", "6 % of the top-ups of a day took longer than promised."),
    "VoucherSchedulerMissing": ("61", "The scheduler has given no sign of life for a minute."),
    "VoucherShelfRunsOut": ("0.5", "Shelf 7 (Card) will be sold out in 0.5 days."),
    "VoucherTransactionIdsOld": ("1500000001", "The oldest multixact id is 1.5G ids old."),
    "VoucherWorkerMissing": ("61", "No worker has given a sign of life for a minute."),
}
NEVER = {
    "VoucherBackupOld": "There is no backup.",
    "VoucherCopyOfFilesOld": "No copy of the host's files was ever opened.",
    "VoucherCopyOfLogOld": "The purchase log of a host was never copied.",
    "VoucherCopyOfRootsOld": "The signed roots never left the host.",
}
SAMPLE = {
    "kind": "multixact",
    "shelf": "7",
    "product": "Card",
    "key_id": "2",
    "slot": "db2",
}  # labels of a value


def rule_tests() -> list[dict[str, Any]]:
    """Tests of the alerts that no component declares."""
    purchases, requests = "voucher_purchases_total", "voucher_requests_total"
    bucket = "voucher_request_seconds_bucket"
    purchase_seconds = "voucher_request_seconds_count"
    return [
        rule_test(
            "VoucherExporterDown",
            [
                series("up", "0x119 1x120", job="voucher-hosts", instance="a"),
                series("voucher_database_up", "1x119 1x120"),
            ],
            EXPORTER_DOWN.format("a"),
            labels={"job": "voucher-hosts", "instance": "a"},
        ),
        rule_test("VoucherExporterDown", [], EXPORTER_DOWN.format(""), ends=False),
        rule_test(
            "VoucherDatabaseUnreachable",
            [series("voucher_database_up", "0x119 1x120", instance="a")],
            "The database does not respond to the exporter.",
        ),
        rule_test(
            "VoucherGaugesFailed",
            [series("voucher_gauges_failed", "2x119 0x120", instance="a")],
            "2 groups of gauges cannot be read, so their alerts cannot fire.",
        ),
        rule_test(
            "VoucherPurchasesFail",
            [
                series(purchases, BAD_THEN_GOOD, kind="voucher", outcome="server_error"),
                series(purchases, GOOD_THEN_BAD, kind="voucher", outcome="created"),
            ],
            "2% of the purchases end in server_error.",
        ),
        rule_test(
            "VoucherServerErrors",
            [
                series(requests, BAD_THEN_GOOD, route="api/v1/ping", status="500"),
                series(requests, GOOD_THEN_BAD, route="api/v1/ping", status="200"),
            ],
            "2% of the responses have a status of 500 or more.",
        ),
        rule_test(
            "VoucherPurchasesSlow",
            [
                series(bucket, "0+80x119 9600+100x120", le="1.0", **BUYING),
                series(purchase_seconds, "0+100x119 12000+100x120", **BUYING),
            ],
            "20% of the purchases take longer than a second.",
        ),
        rule_test(
            "VoucherPurchaseLogIncomplete",
            [series("voucher_purchase_lines_lost_total", "_x60 3x180")],
            "3 purchases of the last hour have no line in the purchase log.",
        ),
        rule_test(
            "VoucherDiskFull",
            [
                series("node_filesystem_avail_bytes", "9x119 11x120", **DISK),
                series("node_filesystem_size_bytes", "100x240", **DISK),
            ],
            "/var of db1 has 9% of its space left.",
            labels=DISK,
        ),
        rule_test(
            "VoucherClockOff",
            [
                series("node_timex_offset_seconds", "-0.6x119 0.1x120", job="node", instance="db1"),
                series("node_timex_sync_status", "1x240", job="node", instance="db1"),
            ],
            "The clock of db1 is wrong, or nothing sets it.",
            labels={"job": "node", "instance": "db1"},
        ),
        rule_test(
            "VoucherCertificateExpires",
            [series("probe_ssl_earliest_cert_expiry", "871140x119 9000000x120", instance=SITE)],
            f"The certificate of {SITE} expires in 10d 0h 0m 0s.",
            labels={"instance": SITE},
        ),
        rule_test(
            "VoucherProbeFails",
            [series("probe_success", "0x119 1x120", instance=SITE, job="voucher-outside")],
            f"{SITE} does not answer as it should, seen from outside.",
            labels={"instance": SITE, "job": "voucher-outside"},
        ),
        rule_test(
            "VoucherAlertsArrive", [], "Alerts reach the service that watches them.", ends=False
        ),
        rule_test(
            "VoucherTasksFail",
            [
                series(
                    "voucher_task_seconds_count",
                    "0+1x119 120+0x120",
                    task="topups.tasks.refund",
                    state="FAILURE",
                )
            ],
            "The task topups.tasks.refund failed 15 times in 15 minutes.",
            labels={"task": "topups.tasks.refund"},
        ),
    ]


@pytest.mark.parametrize(
    ("failed", "minutes", "fires"),
    [
        ("0x60 0+20x10", 70, False),  # 2 % for ten minutes: a fifth of a percent of the hour
        ("0x60 0+20x60", 120, True),
        ("0+7x420", 420, True),  # 0.7 % for hours
        ("0+5x420", 420, False),
    ],
)
def test_a_burn_rate_needs_both_windows(
    failed: str, minutes: int, fires: bool, tmp_path: Path
) -> None:
    name = "voucher_purchases_total"
    test = rule_test(
        "VoucherPurchasesFail",
        [
            series(name, failed, outcome="server_error"),
            series(name, "0+1000x500", outcome="created"),
        ],
        "0.6951% of the purchases end in server_error."
        if minutes == 420
        else "1.961% of the purchases end in server_error.",
    )
    (expected, _) = test["alert_rule_test"]
    expected |= {"eval_time": f"{minutes}m"} | ({} if fires else {"exp_alerts": []})
    check_rules(tmp_path, [{**test, "alert_rule_test": [expected]}])


def test_each_alert_about_other_metrics_fires_and_ends(tmp_path: Path) -> None:
    tests = rule_tests()
    tested = {test["alert_rule_test"][0]["alertname"] for test in tests}

    assert tested == set(rules()) - {component.alert.name for component in COMPONENTS}
    check_rules(tmp_path, tests)
    run_promtool("check", "config", "prometheus.yml")


@pytest.mark.parametrize(("received", "fires"), [(300_000_000, False), (200_000_000, True)])
def test_a_standby_of_patroni_that_is_behind_is_reported(
    received: int, fires: bool, tmp_path: Path
) -> None:
    """Patroni reports 0 for what a host does not have: the leader has received nothing."""

    def host(name: str, *, leads: int, location: int, received: int) -> list[dict[str, str]]:
        labels = {"scope": "voucher", "instance": f"{name}:8008", "job": "patroni"}
        return [
            series("patroni_replica", f"{1 - leads}x20", **labels),
            series("patroni_xlog_location", f"{location}x20", **labels),
            series("patroni_xlog_received_location", f"{received}x20", **labels),
        ]

    expected = {
        "exp_labels": {
            "severity": "warning",
            "scope": "voucher",
            "instance": "db3:8008",
            "job": "patroni",
        },
        "exp_annotations": {
            "runbook_url": f"{RUNBOOKS_AT}/replica-behind.md",
            "summary": "The standby db3:8008 lacks 286.1MiB of WAL.",
        },
    }
    test = {
        "interval": "1m",
        "external_labels": {"runbooks": RUNBOOKS_AT},
        "input_series": [
            *host("db1", leads=1, location=500_000_000, received=0),
            *host("db2", leads=0, location=0, received=500_000_000),
            *host("db3", leads=0, location=0, received=received),
        ],
        "alert_rule_test": [
            {
                "alertname": "VoucherStandbyBehind",
                "eval_time": "19m",
                "exp_alerts": [expected] if fires else [],
            }
        ],
    }
    file = tmp_path / "failover_test.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(FAILOVER)], "tests": [test]}))
    run_promtool("test", "rules", str(file))


@pytest.mark.blackbox_exporter
def test_the_probes_are_what_the_exporter_reads() -> None:
    command = ["prometheus-blackbox-exporter", "--config.check", "--config.file=blackbox.yml"]
    ran = subprocess.run(command, cwd=PROMETHEUS, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    modules = yaml.safe_load((PROMETHEUS / "blackbox.yml").read_text())["modules"]
    jobs = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())["scrape_configs"]
    asked = {name for job in jobs for name in job.get("params", {}).get("module", [])}
    assert asked == set(modules)


def test_each_alert_fires_beyond_its_limit_and_ends_at_it(tmp_path: Path) -> None:
    labels = {name: one.labels for one in GAUGES for name in one.meanings}
    tests = []
    for one in COMPONENTS:
        bad, summary = SAYS[one.alert.name]
        free = {each: SAMPLE[each] for each in labels[one.gauge] if each not in one.labels}
        values = f"{bad}x119 {one.red}x120"
        read = series(one.gauge, values, instance="a", **one.labels, **free)
        tests.append(rule_test(one.alert.name, [read], summary, labels=free))
        if never := NEVER.get(one.alert.name):
            values = " ".join(["Inf"] * 120 + [f"{one.red}x120"])
            read = series(one.gauge, values, instance="a", **one.labels)
            tests.append(rule_test(one.alert.name, [read], never))

    assert SAYS.keys() == {one.alert.name for one in COMPONENTS}
    check_rules(tmp_path, tests)
