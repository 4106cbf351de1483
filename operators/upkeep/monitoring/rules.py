"""The alert rules, and the document of metrics and alerts, from the declarations.

The declarations are `Gauges`, `Component` and `Alert` in the apps' `backoffice.py`, and the `Count`
and `Times` of core/telemetry/metrics.py.
"""

import re
from collections.abc import Iterable
from dataclasses import replace

import yaml

import orders.views  # noqa: F401  declares its counters
from core.backoffice.declarations import Alert, Component
from core.backoffice.registry import back_offices
from core.telemetry.metrics import METRICS, Metric
from operators.upkeep.monitoring.exporter import all_gauges
from operators.upkeep.monitoring.gauges import GAUGES


def alerts() -> list[Alert]:
    """Every alert, each with its expression."""
    return [
        alert
        for app in back_offices()
        for alert in (
            *app.alerts,
            *(replace(one.alert, expression=_expression(one)) for one in app.components),
        )
    ]


def rules_as_yaml() -> str:
    """The alert rules as Prometheus loads them."""
    rules = [
        {
            "alert": alert.name,
            "expr": alert.expression,
            "for": alert.after,
            "labels": {"severity": alert.severity.value},
            "annotations": {
                "summary": alert.summary,
                "runbook_url": f"{{{{ $externalLabels.runbooks }}}}/{alert.runbook}",
            },
        }
        for alert in alerts()
    ]
    head = "# Written by `make monitoring` from the declarations in */backoffice.py.\n"
    groups = {"groups": [{"name": "voucher", "rules": rules}]}
    return head + yaml.safe_dump(groups, sort_keys=False, default_flow_style=None, width=1000)


def _sentences(summary: str) -> str:
    """The summary without its templates: both texts of one that has two."""
    cases = re.sub("{{ (if .*?|end) }}", "", summary).replace("{{ else }}", " / ")
    return re.sub("{{.*?}}", "…", cases)


def document() -> str:
    """The page docs/operate/metrics.md."""
    counted = [(_full_name(metric), metric.labels, metric.meaning) for metric in METRICS]
    rules = [
        f"| [{alert.name}](runbooks/{alert.runbook}) | {alert.severity} |"
        f" `{alert.expression}` for {alert.after} | {_sentences(alert.summary)} |"
        for alert in alerts()
    ]
    return "\n".join(
        [
            "# Metrics and alerts",
            "",
            "`make monitoring` writes this page. [Monitor](monitor.md) explains it.",
            "",
            "## What processes count",
            "",
            "Each histogram also has `_bucket`, `_sum` and `_count`. The unit is seconds.",
            "",
            *_table(counted),
            "",
            "## What the exporter reads",
            "",
            *_table(all_gauges()),
            "",
            "## Alerts",
            "",
            "| alert | severity | fires when | what it says |",
            "|---|---|---|---|",
            *rules,
            "",
        ]
    )


def _expression(component: Component) -> str:
    """When the line of the component is red, in PromQL, over all exporters."""
    labels = next(one.labels for one in GAUGES if component.gauge in one.meanings)
    others = [label for label in labels if label not in component.labels]
    chosen = ",".join(f'{label}="{value}"' for label, value in component.labels.items())
    return "{}{}({}{}) {} {}".format(
        "max" if component.low_is_bad == component.every_exporter else "min",
        f" by ({', '.join(others)}) " if others else "",
        component.gauge,
        f"{{{chosen}}}" if chosen else "",
        "<" if component.low_is_bad else ">",
        component.red,
    )


def _full_name(metric: Metric) -> str:
    return f"{metric.name}_total" if metric.kind == "counter" else metric.name


def _table(rows: Iterable[tuple[str, Iterable[str], str]]) -> list[str]:
    return [
        "| metric | labels | meaning |",
        "|---|---|---|",
        *(
            f"| `{name}` | {', '.join(f'`{label}`' for label in labels)} | {meaning} |"
            for name, labels, meaning in rows
        ),
    ]
