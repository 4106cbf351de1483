"""The shipped rules, runbooks, dashboard and documents agree with each other and with the code."""

import re
import shutil
import subprocess
import sys

import pytest

from core.backoffice.declarations import Component
from core.telemetry.metrics import METRICS
from embedded.environment import PROJECT
from operators.system_health import COMPONENTS
from tests.metrics.shipped import (
    DASHBOARD,
    PROMETHEUS,
    RUNBOOKS,
    gauges,
    metrics_named,
    queries,
    rules,
    samples_of_processes,
)

MONITOR = PROJECT / "docs" / "operate" / "monitor.md"
LIMIT = re.compile(r"([<>]) ([0-9.]+)$")


@pytest.mark.prometheus
def test_the_unit_tests_of_the_rules_pass() -> None:
    promtool = shutil.which("promtool")
    assert promtool is not None
    for command in (["test", "rules", "alerts_test.yml"], ["check", "config", "prometheus.yml"]):
        ran = subprocess.run(
            [promtool, *command], cwd=PROMETHEUS, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_each_alert_has_a_unit_test() -> None:
    tested = re.findall(r"alertname: (\w+)", (PROMETHEUS / "alerts_test.yml").read_text())

    assert set(tested) == set(rules())
    assert min(tested.count(name) for name in rules()) >= 2  # it fires, and it ends


def test_each_alert_has_a_runbook_and_each_runbook_an_alert() -> None:
    pages = {name: rule["annotations"]["runbook"] for name, rule in rules().items()}

    assert sorted(pages.values()) == sorted(
        str(path.relative_to(PROJECT)) for path in RUNBOOKS.glob("*.md")
    )
    for name, page in pages.items():
        text = (PROJECT / page).read_text()
        for part in (f"`{name}`", "## Meaning", "## What to look at", "## What to do"):
            assert part in text, f"{page} lacks {part}"


def test_alerts_and_dashboard_name_only_metrics_that_exist() -> None:
    exist = gauges() | samples_of_processes()
    named = {name: metrics_named(rule["expr"]) for name, rule in rules().items()}
    named |= {query: metrics_named(query) for query in queries()}

    assert {place: names - exist for place, names in named.items() if names - exist} == {}


def test_the_dashboard_shows_every_metric() -> None:
    shown = {name for query in queries() for name in metrics_named(query)}

    assert gauges() - shown == set()
    for metric in METRICS:
        assert any(name.startswith(metric.name) for name in shown), metric.name


def test_the_dashboard_is_what_its_program_writes() -> None:
    program = PROJECT / "deploy" / "grafana" / "build.py"
    written = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)

    assert written.stdout == DASHBOARD.read_text()


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda component: component.alert)
def test_a_line_of_the_system_page_is_red_when_its_alert_fires(component: Component) -> None:
    expression = rules()[component.alert]["expr"]
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
    about = {name for name, rule in rules().items() if metrics_named(rule["expr"]) <= gauges()}

    assert about - without == {component.alert for component in COMPONENTS}


def test_the_document_lists_every_metric_with_its_labels() -> None:
    rows = dict(re.findall(r"^\| `(voucher_\w+)` \| (.*?) ?\|", MONITOR.read_text(), re.MULTILINE))
    counted = {
        metric.name + ("_total" if metric.kind == "counter" else ""): metric.labels
        for metric in METRICS
    }

    assert set(rows) == {*gauges(), *counted}
    for name, labels in counted.items():
        assert rows[name] == ", ".join(f"`{label}`" for label in labels), name


def test_the_document_lists_every_alert_with_its_runbook() -> None:
    text = MONITOR.read_text()

    for name, rule in rules().items():
        page = rule["annotations"]["runbook"].removeprefix("docs/operate/")
        assert f"[{name}]({page})" in text
