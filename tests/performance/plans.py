"""Records the plans of all statements, also those inside SQL functions, with auto_explain."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from tests.concurrency.racing import execute

SETTINGS = {
    "log_min_duration": "0",
    "log_nested_statements": "on",
    "log_analyze": "on",
    "log_buffers": "on",
    "log_timing": "off",
    "log_format": "json",
}
# PostgreSQL makes five custom plans for a statement before it may keep a generic one.
REPETITIONS = 8
# A custom plan compares with a value, a generic plan with `$1`.
CUSTOM_CONDITION = re.compile(r"[=<>] (ANY )?\(?('|\d)")


@contextmanager
def recorded_plans() -> Iterator[list[dict[str, Any]]]:
    """Yields a list that is filled with the plans of all statements inside the block."""
    plans: list[dict[str, Any]] = []

    def note(notice: Any) -> None:
        _, found, text = (notice.message_primary or "").partition("plan:\n")
        if found:
            plans.append(json.loads(text))

    connection.ensure_connection()
    psycopg: Any = connection.connection
    execute("LOAD 'auto_explain'")
    for name, value in SETTINGS.items():
        execute(f"SET auto_explain.{name} = {value}")
    execute("SET client_min_messages = log")
    psycopg.add_notice_handler(note)
    try:
        yield plans
    finally:
        psycopg.remove_notice_handler(note)
        execute("SET client_min_messages = warning")
        execute("SET auto_explain.log_min_duration = -1")


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every node of a plan."""
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def sequential_scans(plans: list[dict[str, Any]], tables: set[str]) -> list[str]:
    """The statements that scan one of these tables sequentially."""
    return [
        plan["Query Text"]
        for plan in plans
        if any(
            node["Node Type"] == "Seq Scan" and node["Relation Name"] in tables
            for node in nodes(plan["Plan"])
        )
    ]


def custom_plans(plans: list[dict[str, Any]]) -> list[str]:
    """The statements of SQL functions with a custom plan.

    Statements of the ORM always have custom plans. They are left out: the ORM quotes its names.
    """
    return [
        plan["Query Text"]
        for plan in plans
        if '"' not in plan["Query Text"]
        and any(CUSTOM_CONDITION.search(node.get("Index Cond", "")) for node in nodes(plan["Plan"]))
    ]


def pages(plan: dict[str, Any]) -> int:
    """The number of pages that a statement and its triggers read."""
    return int(plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"])


def rows_read(plan: dict[str, Any]) -> int:
    """The rows that the scans of a statement looked at."""
    return sum(
        round(
            node["Actual Loops"]
            * (
                node["Actual Rows"]
                + node.get("Rows Removed by Filter", 0)
                + node.get("Rows Removed by Index Recheck", 0)
            )
        )
        for node in nodes(plan)
        if "Relation Name" in node
    )
