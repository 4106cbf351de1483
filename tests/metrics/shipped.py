"""What is shipped for Prometheus and Grafana, as tests read it."""

import json
import re
from typing import Any

import yaml

import orders.metrics  # noqa: F401  declares its counter
from core.telemetry.metrics import METRICS
from embedded.environment import PROJECT
from operators.exporter import FAILED, UP
from operators.gauges import GAUGES

PROMETHEUS = PROJECT / "deploy" / "prometheus"
ALERTS = PROMETHEUS / "alerts.yml"
DASHBOARD = PROJECT / "deploy" / "grafana" / "voucher.json"
RUNBOOKS = PROJECT / "docs" / "operate" / "runbooks"


def rules() -> dict[str, dict[str, Any]]:
    """Every alert rule by name."""
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def queries() -> list[str]:
    """Every query of the dashboard."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


def metrics_named(text: str) -> set[str]:
    """The names of our metrics in a query or a document."""
    return set(re.findall(r"\bvoucher_[a-z_]+\b", text))


def gauges() -> set[str]:
    """The name of each gauge of the service."""
    return {UP, FAILED, *(name for one in GAUGES for name in one.meanings)}


def samples_of_processes() -> set[str]:
    """The names of all samples that processes count."""
    names = {sample for metric in METRICS for sample, _ in metric.samples}
    return names | {f"{metric.name}_count" for metric in METRICS if metric.kind == "histogram"}
