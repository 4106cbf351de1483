"""The shipped rules, runbooks, dashboard and documents agree with each other and with the code."""

import re
from functools import cache

import pytest
import yaml
from django.core.management import get_commands
from django.db import connection

from core.telemetry.metrics import METRICS
from embedded.environment import PROJECT
from operators.upkeep.monitoring.rules import document, rules_as_yaml
from operators.upkeep.monitoring.system_lines import COMPONENTS
from tests.metrics.shipped import (
    ALERTS,
    RUNBOOKS,
    gauges,
    metrics_named,
    queries,
    rules,
    samples_of_processes,
)

METRICS_PAGE = PROJECT / "docs" / "operate" / "metrics.md"
LIMIT = re.compile(r"([<>]) ([0-9.]+)$")


def test_the_rules_and_the_document_are_what_the_declarations_say() -> None:
    """`make monitoring` writes them."""
    assert ALERTS.read_text() == rules_as_yaml()
    assert METRICS_PAGE.read_text() == document()


def test_each_alert_has_a_runbook_and_each_runbook_an_alert() -> None:
    pages = {name: alert.runbook for name, alert in rules().items()}

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
def test_the_commands_of_a_runbook_can_be_run() -> None:
    """Its queries run, and its units, commands and log lines exist."""
    units = {path.name.partition(".")[0] for path in (PROJECT / "deploy").rglob("*.service")}
    for page in RUNBOOKS.glob("*.md"):
        look = page.read_text().partition("## What to look at")[2].partition("## What to do")[0]
        (block,) = re.findall(r"```sh\n(.*?)```", look, re.DOTALL)
        for unit in re.findall(r"\bvoucher-([a-z]+)", block):
            assert {f"voucher-{unit}", f"voucher-{unit}@"} & units, (page, unit)
        for events in re.findall(r"grep -E '([a-z_|]+)'", block):
            for event in events.split("|"):
                assert event in code(), (page, event)
        for command in re.findall(r"^manage (\w+)", block, re.MULTILINE):
            assert command in get_commands(), page
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


def test_a_line_of_the_system_page_is_red_when_its_alert_fires() -> None:
    for component in COMPONENTS:
        name = component.alert.name
        expression = rules()[name].expression
        match = LIMIT.search(expression)
        assert match is not None, expression

        sign, limit = match.groups()

        assert (sign, float(limit)) == ("<" if component.low_is_bad else ">", component.red), name
        assert metrics_named(expression) == {component.gauge}, name
        for label, value in component.labels.items():
            assert f'{label}="{value}"' in expression, name


def test_every_alert_about_a_gauge_has_a_line_on_the_system_page() -> None:
    """Except for alerts about Prometheus and its exporter, which the page does not need."""
    without = {"VoucherExporterDown", "VoucherDatabaseUnreachable", "VoucherGaugesFailed"}
    named = {name: metrics_named(alert.expression) for name, alert in rules().items()}
    about = {name for name, metrics in named.items() if metrics and metrics <= gauges()}

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
        assert f"[{name}](runbooks/{alert.runbook})" in text
