"""The faults without a guard: each control removes one, or all that protect the same thing."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models import QuerySet

from labs.interleavings.pauses import Weaknesses
from labs.interleavings.scenarios import SCENARIOS, Scenario
from labs.interleavings.search import Arena, Search, arena
from tests.concurrency.racing import execute

NO_CLAIM_CONSTRAINT = (
    "ALTER TABLE idempotency_idempotencyrecord DROP CONSTRAINT idempotency_record_client_and_key",
    "ALTER TABLE idempotency_idempotencyrecord"
    " ADD CONSTRAINT idempotency_record_client_and_key UNIQUE (client_id, key)",
)
NO_LEDGER_INDEX = (
    "DROP INDEX wallets_entry_once_per_order",
    "CREATE UNIQUE INDEX wallets_entry_once_per_order ON wallets_ledgerentry"
    " (order_reference, kind, booking_reference) NULLS NOT DISTINCT"
    " WHERE order_reference IS NOT NULL",
)


@dataclass(frozen=True)
class Control:
    """A scenario without a guard.

    weaknesses: parts of SQL files to replace.
    dropped: statements that drop a constraint and create it again.
    unlocked: whether rows are read without FOR UPDATE.
    sampled: the most schedules to choose by seeds; None to search in order.
    """

    name: str
    weaknesses: Weaknesses = field(default_factory=dict)
    dropped: tuple[str, str] = ("SELECT", "SELECT")
    unlocked: bool = False
    sampled: int | None = None

    @property
    def scenario(self) -> Scenario:
        return SCENARIOS[self.name]

    @contextmanager
    def arena(self) -> Iterator[Arena]:
        """The scenario without the guard. Afterwards the database is empty, and guarded again."""
        drop, restore = self.dropped
        with pytest.MonkeyPatch.context() as patch:
            if self.unlocked:
                patch.setattr(QuerySet, "select_for_update", _read_only)
            execute(drop)
            try:
                with arena(self.name, self.scenario, self.weaknesses) as scene:
                    yield scene
            finally:
                call_command("flush", interactive=False, verbosity=0)
                execute(restore)

    def search(self) -> Search:
        """Searches until the first failure."""
        with self.arena() as scene:
            return scene.sample(self.sampled) if self.sampled else scene.search()


def _read_only(rows: "QuerySet[Any]", **options: Any) -> "QuerySet[Any]":
    return rows.all()


CONTROLS = {
    "claims without their uniqueness": Control(
        "same-key",
        {"idempotency/sql/claim.sql": [("ON CONFLICT (client_id, key) DO NOTHING", "")]},
        dropped=NO_CLAIM_CONSTRAINT,
    ),
    "a purchase without the check of its attempt": Control(
        "takeover",
        {
            "idempotency/sql/stamp.sql": [
                (" AND attempt = p_attempt AND order_reference IS NULL", "")
            ]
        },
        sampled=400,
    ),
    "two refunds without the row lock": Control("refund-twice", unlocked=True),
    "two refunds without lock, sum and uniqueness": Control(
        "refund-twice",
        {"wallets/sql/paid_back.sql": [("IF total > 0 THEN", "IF false THEN")]},
        dropped=NO_LEDGER_INDEX,
        unlocked=True,
    ),
    "two moves without the row lock": Control("complete-and-reject", unlocked=True),
    "two credits without the sum": Control(
        "two-credits", {"wallets/sql/paid_back.sql": [("IF total > 0 THEN", "IF false THEN")]}
    ),
    "a wallet without its condition": Control(
        "last-money", {"wallets/sql/post_entry.sql": [("AND balance + NEW.amount >= 0", "")]}
    ),
    "codes taken without lock and condition": Control(
        "last-code",
        {
            "catalogue/sql/offer.sql": [("FOR NO KEY UPDATE;", ";")],
            "catalogue/sql/take_codes.sql": [
                ("AND available_stock >= p_quantity", ""),
                ("AND order_id IS NULL AND hold_id IS NULL", ""),
            ],
        },
    ),
}
