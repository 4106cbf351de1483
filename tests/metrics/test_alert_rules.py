"""The shipped rules, runbooks, dashboard and documents agree with each other and with the code."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import get_commands
from django.db import connection

from core.backoffice.declarations import Component
from core.telemetry.metrics import METRICS
from embedded.environment import PROJECT
from operators.upkeep.monitoring.rules import document, rules_as_yaml, runbook
from operators.upkeep.monitoring.system_lines import COMPONENTS
from tests.metrics.shipped import (
    ALERTS,
    PROMETHEUS,
    RUNBOOKS,
    RUNBOOKS_AT,
    check_rules,
    gauges,
    metrics_named,
    queries,
    rule_test,
    rules,
    run_promtool,
    samples_of_processes,
    series,
)

METRICS_PAGE = PROJECT / "docs" / "operate" / "metrics.md"
FAILOVER = PROMETHEUS / "failover.yml"
LIMIT = re.compile(r"([<>]) ([0-9.]+)$")
BAD_THEN_GOOD, GOOD_THEN_BAD = "0+2x119 240+0x120", "0+98x119 11760+100x120"
BUYING = {"route": "api/v1/orders", "method": "POST"}
EXPORTER_DOWN = "The exporter at {} does not respond, or Prometheus does not scrape the gauges."


def rule_tests() -> list[dict[str, Any]]:
    """Tests of the alerts that no component declares. Those of components are in
    test_gauges_of_the_service.py."""
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


@pytest.mark.prometheus
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


@pytest.mark.prometheus
def test_each_alert_about_other_metrics_fires_and_ends(tmp_path: Path) -> None:
    tests = rule_tests()
    tested = {test["alert_rule_test"][0]["alertname"] for test in tests}

    assert tested == set(rules()) - {component.alert.name for component in COMPONENTS}
    check_rules(tmp_path, tests)
    run_promtool("check", "config", "prometheus.yml")


@pytest.mark.prometheus
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


def test_the_rules_and_the_document_are_what_the_declarations_say() -> None:
    """`make monitoring` writes them."""
    assert ALERTS.read_text() == rules_as_yaml()
    assert METRICS_PAGE.read_text() == document()


def test_each_alert_has_a_runbook_and_each_runbook_an_alert() -> None:
    pages = {name: runbook(alert) for name, alert in rules().items()}

    assert sorted(pages.values()) == sorted(path.name for path in RUNBOOKS.glob("*.md"))
    for name, page in pages.items():
        text = (RUNBOOKS / page).read_text()
        for part in (f"`{name}`", "## Meaning", "## What to look at", "## What to do"):
            assert part in text, f"{page} lacks {part}"
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    for rule in group["rules"]:
        address, _, page = rule["annotations"]["runbook_url"].rpartition("/")
        assert address == "{{ $externalLabels.runbooks }}"
        assert (RUNBOOKS / page).is_file()


@pytest.mark.django_db
@pytest.mark.parametrize("page", sorted(RUNBOOKS.glob("*.md")), ids=lambda page: page.stem)
def test_the_commands_of_a_runbook_can_be_run(page: Path) -> None:
    """Its queries run, and its units, commands and log lines exist."""
    look = page.read_text().partition("## What to look at")[2].partition("## What to do")[0]
    (block,) = re.findall(r"```sh\n(.*?)```", look, re.DOTALL)
    units = {path.name.partition(".")[0] for path in (PROJECT / "deploy/systemd").glob("*.service")}
    for unit in re.findall(r"\bvoucher-([a-z]+)", block):
        assert {f"voucher-{unit}", f"voucher-{unit}@"} & units, unit
    for events in re.findall(r"grep -E '([a-z_|]+)'", block):
        for event in events.split("|"):
            assert event in code(), event
    for command in re.findall(r"^manage (\w+)", block, re.MULTILINE):
        assert command in get_commands()
    with connection.cursor() as cursor:
        for query in re.findall(r'-c "(.*)"$', block, re.MULTILINE):
            cursor.execute(query)


@cache
def code() -> str:
    apps = ("core", "idempotency", "merchants", "operators", "orders", "topups", "wallets")
    return "".join(file.read_text() for app in apps for file in (PROJECT / app).rglob("*.py"))


def test_alerts_and_dashboard_name_only_metrics_that_exist() -> None:
    exist = gauges() | samples_of_processes()
    named = {name: metrics_named(alert.expression) for name, alert in rules().items()}
    named |= {query: metrics_named(query) for query in queries()}

    assert {place: names - exist for place, names in named.items() if names - exist} == {}


def test_the_dashboard_shows_every_metric() -> None:
    shown = {name for query in queries() for name in metrics_named(query)}

    assert gauges() - shown == set()
    for metric in METRICS:
        assert any(name.startswith(metric.name) for name in shown), metric.name


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda component: component.alert.name)
def test_a_line_of_the_system_page_is_red_when_its_alert_fires(component: Component) -> None:
    expression = rules()[component.alert.name].expression
    match = LIMIT.search(expression)
    assert match is not None, expression

    sign, limit = match.groups()

    assert (sign, float(limit)) == ("<" if component.low_is_bad else ">", component.red)
    assert metrics_named(expression) == {component.gauge}
    for label, value in component.labels.items():
        assert f'{label}="{value}"' in expression


def test_every_alert_about_a_gauge_has_a_line_on_the_system_page() -> None:
    """Except for alerts about Prometheus and its exporter, which the page does not need."""
    without = {"VoucherExporterDown", "VoucherDatabaseUnreachable", "VoucherGaugesFailed"}
    about = {name for name, alert in rules().items() if metrics_named(alert.expression) <= gauges()}

    assert about - without == {component.alert.name for component in COMPONENTS}


def test_the_document_lists_every_metric_with_its_labels() -> None:
    text = METRICS_PAGE.read_text()
    rows = dict(re.findall(r"^\| `(voucher_\w+)` \| (.*?) ?\|", text, re.MULTILINE))
    counted = {
        metric.name + ("_total" if metric.kind == "counter" else ""): metric.labels
        for metric in METRICS
    }

    assert set(rows) == {*gauges(), *counted}
    for name, labels in counted.items():
        assert rows[name] == ", ".join(f"`{label}`" for label in labels), name


def test_the_document_lists_every_alert_with_its_runbook() -> None:
    text = METRICS_PAGE.read_text()

    for name, alert in rules().items():
        assert f"[{name}](runbooks/{runbook(alert)})" in text
