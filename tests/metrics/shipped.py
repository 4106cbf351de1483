"""What is shipped for Prometheus and Grafana, as tests read it."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from core.backoffice.declarations import Alert
from core.telemetry.metrics import METRICS
from embedded.environment import PROJECT
from operators.upkeep.monitoring.dashboard import dashboard
from operators.upkeep.monitoring.exporter import all_gauges
from operators.upkeep.monitoring.rules import alerts

PROMETHEUS = PROJECT / "deploy" / "prometheus"
ALERTS = PROMETHEUS / "alerts.yml"
RUNBOOKS = PROJECT / "docs" / "operate" / "runbooks"
RUNBOOKS_AT = "https://git.example.com/runbooks"


def rules() -> dict[str, Alert]:
    """Every alert by name."""
    return {alert.name: alert for alert in alerts()}


def queries() -> list[str]:
    """Every query of the dashboard."""
    return [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]


def metrics_named(text: str) -> set[str]:
    """The names of our metrics in a query or a document."""
    return set(re.findall(r"\bvoucher_[a-z_]+\b", text))


def gauges() -> set[str]:
    """The name of each gauge of the service."""
    return {name for name, _, _ in all_gauges()}


def samples_of_processes() -> set[str]:
    """The names of all samples that processes count."""
    names = {sample for metric in METRICS for sample, _ in metric.samples}
    return names | {f"{metric.name}_count" for metric in METRICS if metric.kind == "histogram"}


def series(name: str, values: str, **labels: str) -> dict[str, str]:
    """A series for `rule_test`: the values of two hours that are bad, then of two that are good."""
    pairs = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return {"series": f"{name}{{{pairs}}}", "values": values}


def rule_test(
    name: str,
    input_series: list[dict[str, str]],
    summary: str,
    *,
    labels: Mapping[str, str] | None = None,
    ends: bool = True,
) -> dict[str, Any]:
    """A unit test of promtool: the alert `name` fires with this summary, and then ends."""
    alert = rules()[name]
    fires = {
        "exp_labels": {"severity": alert.severity.value, **(labels or {})},
        "exp_annotations": {
            "runbook_url": f"{RUNBOOKS_AT}/{alert.runbook}",
            "summary": summary,
        },
    }
    times = [{"alertname": name, "eval_time": "119m", "exp_alerts": [fires]}]
    if ends:
        times.append({"alertname": name, "eval_time": "230m", "exp_alerts": []})
    return {
        "interval": "1m",
        "external_labels": {"runbooks": RUNBOOKS_AT},
        "input_series": input_series,
        "alert_rule_test": times,
    }


def check_rules(folder: Path, tests: list[dict[str, Any]]) -> None:
    """Runs unit tests of promtool on the shipped rules. Raises AssertionError."""
    file = folder / "alerts_test.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(ALERTS)], "tests": tests}))
    run_promtool("test", "rules", str(file))


def run_promtool(*arguments: str) -> None:
    """Raises AssertionError with the output of promtool if it finds a fault."""
    promtool = shutil.which("promtool")
    assert promtool is not None
    ran = subprocess.run(
        [promtool, *arguments], cwd=PROMETHEUS, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
