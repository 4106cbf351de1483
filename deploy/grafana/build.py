"""Writes the dashboard: python deploy/grafana/build.py > deploy/grafana/voucher.json

Each panel is a title, a unit of Grafana, and queries with their legends.
"""

import json
import sys
from typing import Any

Panel = tuple[str, str, dict[str, str]]
RATE = "[$__rate_interval]"
REFUSED = '{outcome="order_refused"}'
BUYING = 'route="api/v1/orders",method="POST"'


def quantile(part: float, metric: str, by: str, selector: str = "") -> str:
    """The query of a quantile of a histogram."""
    labels = f"le, {by}" if by else "le"
    rates = f"rate({metric}_bucket{{{selector}}}{RATE})"
    return f"histogram_quantile({part}, sum by ({labels}) ({rates}))"


ROWS: dict[str, list[Panel]] = {
    "Selling": [
        ("Purchases per minute", "short", {
            f"60 * sum by (kind, outcome) (rate(voucher_purchases_total{RATE}))":
                "{{kind}} {{outcome}}",
        }),
        ("Refusals per minute, by reason", "short", {
            f"60 * sum by (reason) (rate(voucher_purchases_total{REFUSED}{RATE}))": "{{reason}}",
        }),
        ("Time of a purchase", "s", {
            quantile(part, "voucher_request_seconds", "", BUYING): f"{part:.0%}"
            for part in (0.5, 0.95, 0.99)
        }),
        ("Requests per second, by route", "reqps", {
            f"sum by (route) (rate(voucher_requests_total{RATE}))": "{{route}}",
        }),
        ("Requests by status", "reqps", {
            f"sum by (status) (rate(voucher_requests_total{RATE}))": "{{status}}",
        }),
        ("Time in the database, 95 %, by function", "s", {
            quantile(0.95, "voucher_database_seconds", "function"): "{{function}}",
        }),
        ("Time in the cache, 95 %", "s", {
            quantile(0.95, "voucher_cache_seconds", "outcome"): "{{outcome}}",
        }),
        ("Idempotency keys", "short", {
            "max(voucher_keys_in_progress)": "in progress",
            "max(voucher_keys_abandoned)": "abandoned",
            "max(voucher_keys_unfinished)": "unfinished",
        }),
    ],
    "Work": [
        ("Desk", "short", {"max by (status) (voucher_desk_orders)": "{{status}}"}),
        ("Desk, age of the oldest", "s", {
            "max by (status) (voucher_desk_oldest_seconds)": "{{status}}",
        }),
        ("Refunds due", "short", {"max(voucher_refunds_due)": "due"}),
        ("Waiting", "short", {
            "max(voucher_announcements_waiting)": "announcements",
            "max(voucher_announcements_given_up)": "announcements given up",
            "max(voucher_emails_waiting)": "emails",
        }),
        ("Age of the oldest", "s", {
            "max(voucher_refunds_oldest_seconds)": "refund",
            "max(voucher_announcements_oldest_seconds)": "announcement",
            "max(voucher_emails_oldest_seconds)": "email",
        }),
        ("Tasks per minute", "short", {
            f"60 * sum by (task, state) (rate(voucher_task_seconds_count{RATE}))":
                "{{task}} {{state}}",
        }),
        ("Time of tasks, 95 %", "s", {
            quantile(0.95, "voucher_task_seconds", "task"): "{{task}}",
        }),
    ],
    "Stock": [
        ("Days until sold out, the ten first", "short", {
            "bottomk(10, min by (shelf, product) (voucher_shelf_days_left))":
                "{{product}} ({{shelf}})",
        }),
        ("Codes, the ten lowest shelves", "short", {
            "bottomk(10, min by (shelf, product) (voucher_shelf_codes))":
                "{{product}} ({{shelf}})",
        }),
    ],
    "Health": [
        ("Time since the last sign of life", "s", {
            "min by (process) (voucher_heartbeat_age_seconds)": "{{process}}",
        }),
        ("Exporters, database, cache", "short", {
            'up{job=~"voucher-.*"}': "{{job}} {{instance}}",
            "max(voucher_database_up)": "database",
            "max(voucher_cache_up)": "cache",
            "max(voucher_gauges_failed)": "gauges failed",
        }),
        ("Last complete reconcile", "s", {"max(voucher_reconcile_age_seconds)": "age"}),
        ("Ledger last signed", "s", {"max(voucher_ledger_root_age_seconds)": "age"}),
        ("Found by reconcile", "short", {
            "max(voucher_reconcile_findings)": "findings",
            "max(voucher_reconcile_warnings)": "warnings",
        }),
        ("Values sealed per key", "short", {
            "max by (key_id) (voucher_key_sealed_values)": "key {{key_id}}",
        }),
        ("Alerts", "short", {
            'sum by (alertname) (ALERTS{alertstate="firing"})': "{{alertname}}",
        }),
    ],
}  # fmt: skip

WIDTH, HEIGHT, COLUMNS = 8, 7, 3
SOURCE = {"type": "prometheus", "uid": "${source}"}


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana imports it."""
    panels: list[dict[str, Any]] = []
    top = 0
    for row, shown in ROWS.items():
        place = {"x": 0, "y": top, "w": WIDTH * COLUMNS, "h": 1}
        panels.append({"type": "row", "title": row, "gridPos": place, "id": len(panels) + 1})
        top += 1
        for number, panel in enumerate(shown):
            place = {
                "x": number % COLUMNS * WIDTH,
                "y": top + number // COLUMNS * HEIGHT,
                "w": WIDTH,
                "h": HEIGHT,
            }
            panels.append({**_graph(panel), "gridPos": place, "id": len(panels) + 1})
        top += -(-len(shown) // COLUMNS) * HEIGHT
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


def _graph(panel: Panel) -> dict[str, Any]:
    title, unit, queries = panel
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


if __name__ == "__main__":
    json.dump(dashboard(), sys.stdout, indent=1)
    sys.stdout.write("\n")
