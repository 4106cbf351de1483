"""The dashboard for Grafana: panels of what processes count, and one panel for each gauge."""

import json
from collections.abc import Iterator
from typing import Any

from operators.upkeep.monitoring.exporter import all_gauges

RATE = "[$__rate_interval]"
SOURCE = {"type": "prometheus", "uid": "${source}"}
WIDTH, HEIGHT, COLUMNS = 8, 7, 3
LOWEST = 10  # rows of one gauge
Panel = tuple[str, str, dict[str, str]]  # a title, a unit of Grafana, and legends by query


def _quantile(part: float, metric: str, by: str = "", selector: str = "") -> str:
    """The query of a quantile of a histogram."""
    labels = f"le, {by}" if by else "le"
    rates = f"rate({metric}_bucket{{{selector}}}{RATE})"
    return f"histogram_quantile({part}, sum by ({labels}) ({rates}))"


def _rate(metric: str, *by: str, scale: str = "") -> dict[str, str]:
    """The query of a rate by labels, and its legend."""
    query = f"{scale}sum by ({', '.join(by)}) (rate({metric}{RATE}))"
    return {query: " ".join(f"{{{{{label}}}}}" for label in by)}


PURCHASES = "voucher_purchases_total"
PER_MINUTE = "60 * "
TASKS = "voucher_task_seconds_count"
REFUSED = PURCHASES + '{outcome="order_refused"}'
BUYING = 'route="api/v1/orders",method="POST"'
COUNTED: list[Panel] = [
    ("Purchases per minute", "short", _rate(PURCHASES, "kind", "outcome", scale=PER_MINUTE)),
    ("Refusals per minute, by reason", "short", _rate(REFUSED, "reason", scale=PER_MINUTE)),
    ("Lines of the purchase log that were lost", "short", {
        "sum(voucher_purchase_lines_lost_total)": "all processes",
    }),
    ("Time of a purchase", "s", {
        _quantile(part, "voucher_request_seconds", selector=BUYING): f"{part:.0%}"
        for part in (0.5, 0.95, 0.99)
    }),
    ("Requests per second, by route", "reqps", _rate("voucher_requests_total", "route")),
    ("Requests by status", "reqps", _rate("voucher_requests_total", "status")),
    ("Time in the database, 95 %, by function", "s", {
        _quantile(0.95, "voucher_database_seconds", "function"): "{{function}}",
    }),
    ("Time in the cache, 95 %", "s", {
        _quantile(0.95, "voucher_cache_seconds", "outcome"): "{{outcome}}",
    }),
    ("Tasks per minute", "short", _rate(TASKS, "task", "state", scale=PER_MINUTE)),
    ("Time of tasks, 95 %", "s", {
        _quantile(0.95, "voucher_task_seconds", "task"): "{{task}}",
    }),
    ("Exporters", "short", {'up{job=~"voucher-.*"}': "{{job}} {{instance}}"}),
    ("Alerts", "short", {'sum by (alertname) (ALERTS{alertstate="firing"})': "{{alertname}}"}),
]  # fmt: skip


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana imports it."""
    panels = [_graph(*panel) for panel in COUNTED] + [*_gauges()]
    for place, panel in enumerate(panels):
        row, column = divmod(place, COLUMNS)
        panel["id"] = place + 1
        panel["gridPos"] = {"x": column * WIDTH, "y": row * HEIGHT, "w": WIDTH, "h": HEIGHT}
    return {
        "title": "Voucher & top-up",
        "uid": "voucher-topup",
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "label": "Source", "type": "datasource", "query": "prometheus"}
            ]
        },
        "panels": panels,
    }


def dashboard_as_json() -> str:
    """The file to import into Grafana."""
    return json.dumps(dashboard(), indent=1)


def _gauges() -> Iterator[dict[str, Any]]:
    """A panel for each gauge; of many rows, the lowest."""
    for name, labels, meaning in all_gauges():
        title = name.removeprefix("voucher_").replace("_", " ").capitalize()
        unit = {"seconds": "s", "bytes": "bytes"}.get(name.rpartition("_")[2], "short")
        by, legend = ", ".join(labels), " ".join(f"{{{{{label}}}}}" for label in labels)
        query = f"bottomk({LOWEST}, min by ({by}) ({name}))" if by else f"min({name})"
        yield {**_graph(title, unit, {query: legend or title}), "description": meaning}


def _graph(title: str, unit: str, queries: dict[str, str]) -> dict[str, Any]:
    return {
        "type": "timeseries",
        "title": title,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(65 + place), "datasource": SOURCE, "expr": query, "legendFormat": legend}
            for place, (query, legend) in enumerate(queries.items())
        ],
    }
