"""The records that say who did what, and a failed order whose money was not paid back."""

from typing import Any

from django.db.models import Model

from audit.models import AuditEntry
from tests.factories import buy_topup, make_merchant, make_operator, move_now
from topups.fulfilment.transitions import Move
from topups.models import FulfilmentEvent

RECORDS: dict[str, type[Model]] = {
    "audit": AuditEntry,
    "history": FulfilmentEvent,  # append-only, with the actor of each move
}


class Watch:
    """Which records were added since it was made."""

    def __init__(self) -> None:
        self.before = {name: set(self._ids(name)) for name in RECORDS}

    def _ids(self, name: str) -> list[int]:
        return list(RECORDS[name]._default_manager.values_list("pk", flat=True))

    def added(self, name: str) -> list[Any]:
        new = set(self._ids(name)) - self.before[name]
        return list(RECORDS[name]._default_manager.filter(pk__in=new).order_by("pk"))


def failed_order() -> str:
    reference, senior = buy_topup(make_merchant()), make_operator(senior=True)
    for step in (Move.CLAIM, Move.REVIEW, Move.REJECT_UNREFUNDED):
        move_now(reference=reference, move=step, operator=senior)
    return reference
