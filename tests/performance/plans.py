"""What PostgreSQL really did, statement by statement, also inside of functions (auto_explain)."""

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
# A function's plans are custom ones five times, and may then become one that is kept.
AGAIN = 8
# A plan that was made for one call compares with its value, one that is kept with `$1`.
FOR_ONE_VALUE = re.compile(r"[=<>] (ANY )?\(?('|\d)")


@contextmanager
def watched() -> Iterator[list[dict[str, Any]]]:
    """The plans of everything that runs inside the block, filled when it ends."""
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
    """Every step of a plan."""
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def read_in_full(plans: list[dict[str, Any]], tables: set[str]) -> list[str]:
    """The statements that read one of these tables from one end to the other."""
    return [
        plan["Query Text"]
        for plan in plans
        if any(
            node["Node Type"] == "Seq Scan" and node["Relation Name"] in tables
            for node in nodes(plan["Plan"])
        )
    ]


def planned_anew(plans: list[dict[str, Any]]) -> list[str]:
    """The statements of functions that were planned for this one call. Statements of the ORM, which
    quotes its names, always are."""
    return [
        plan["Query Text"]
        for plan in plans
        if '"' not in plan["Query Text"]
        and any(FOR_ONE_VALUE.search(node.get("Index Cond", "")) for node in nodes(plan["Plan"]))
    ]


def pages(plan: dict[str, Any]) -> int:
    """How many pages a statement looked at, with the triggers it set off."""
    return int(plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"])
