"""The answers to a purchase that the contract allows, as data ("Idempotency record")."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from labs.interleavings.scheduler import Point, Trace


class KeyState(StrEnum):
    """The states of a key that a purchase may find."""

    UNKNOWN = "no record"
    OTHER_CONTENT = "the key has other content"
    IN_PROGRESS = "in progress"
    LATE = "in progress for five minutes or more, and no purchase found"
    LATE_AND_BOUGHT = "in progress for five minutes or more, and a purchase exists"
    STORED = "stored success"


PROCEEDS = "proceeds"
ALLOWED = {
    KeyState.UNKNOWN: PROCEEDS,
    KeyState.OTHER_CONTENT: "idempotency_key_reused",
    KeyState.IN_PROGRESS: "request_in_progress",
    KeyState.LATE: PROCEEDS,
    KeyState.LATE_AND_BOUGHT: "request_abandoned",
    KeyState.STORED: "replayed",
}
# What a retry by the documented rules may end with.
ENDS_WITH_ORDER = {"bought", "replayed", "request_abandoned"}
ENDS_WITHOUT = {"insufficient_balance", "insufficient_stock", "idempotency_key_reused"}
CLAIM = "idempotency_claim"
LOOK_AHEAD = "orders_find_key_and_success"
RELEASE = "idempotency_release"


@dataclass(frozen=True)
class Seen:
    """The committed data at one moment."""

    balance: int
    stock: dict[str, int]  # of vouchers and of top-ups
    records: dict[str, dict[str, Any]]  # by key

    @property
    def attempts(self) -> dict[str, int]:
        return {key: record["attempt"] for key, record in self.records.items()}

    def state_of(self, key: str, content: str) -> KeyState:
        record = self.records.get(key)
        if record is None:
            return KeyState.UNKNOWN
        if record["content"] != content:
            return KeyState.OTHER_CONTENT
        if record["stored"]:
            return KeyState.STORED
        if not record["late"]:
            return KeyState.IN_PROGRESS
        return KeyState.LATE_AND_BOUGHT if record["bought"] else KeyState.LATE


@dataclass(frozen=True)
class Mine:
    """The subject of a purchase, for the conditions of AFTER_PROCEEDING."""

    key: str
    kind: str
    price: int
    attempt: int | None  # which it got with its claim


# What a purchase that proceeds may be answered, and what must have been true before its debit.
AFTER_PROCEEDING: dict[str, Callable[[Seen, Mine], bool]] = {
    "bought": lambda seen, mine: True,
    "insufficient_balance": lambda seen, mine: seen.balance < mine.price,
    "insufficient_stock": lambda seen, mine: seen.stock[mine.kind] < 1,
    # Another attempt has taken the key over, or cleanup has deleted the record.
    "request_in_progress": lambda seen, mine: seen.attempts.get(mine.key) != mine.attempt,
}


def is_allowed(
    trace: Trace, participant: int, outcome: str, *, key: str, content: str, kind: str, price: int
) -> bool:
    """Whether the outcome of a participant's purchase is one that the contract allows in a state
    that the key had while the purchase looked at it."""
    points = trace.points
    claims = _points_of(points, participant, CLAIM)
    looks = _points_of(points, participant, LOOK_AHEAD)
    if looks and not claims:  # the stored success that it found decided
        return any(
            key in seen.records
            and seen.records[key]["stored"]
            and outcome == ALLOWED[seen.state_of(key, content)]
            for step in looks
            for seen in _until_it_went_on(trace, step, step, participant)
        )
    if not claims:  # nobody else uses its key: the claim needed no choice, and it proceeded
        if outcome == "request_in_progress":
            return False
        claims, allowed = [0], {PROCEEDS}
    else:
        looked = _until_it_went_on(trace, claims[0], claims[-1], participant)
        allowed = {ALLOWED[seen.state_of(key, content)] for seen in looked}
    if outcome in allowed:
        return True
    if PROCEEDS not in allowed or outcome not in AFTER_PROCEEDING:
        return False
    mine = Mine(key, kind, price, _seen_after(trace, claims[-1], participant).attempts.get(key))
    released = _points_of(points, participant, RELEASE)
    until = released[0] if released else len(points)
    condition = AFTER_PROCEEDING[outcome]
    return any(condition(seen, mine) for seen in _seen(trace)[claims[-1] : until + 1])


def _points_of(points: list[Point], participant: int, call: str) -> list[int]:
    return [
        number
        for number, point in enumerate(points)
        if point.participant == participant and point.label.startswith(call)
    ]


def _seen(trace: Trace) -> list[Seen]:
    return [*(point.seen for point in trace.points), trace.at_the_end]


def _until_it_went_on(trace: Trace, first: int, last: int, participant: int) -> list[Seen]:
    """The committed data before each step from the first to the last, and while it waited."""
    end = last + 1
    while end < len(trace.points) and participant in trace.points[end].blocked:
        end += 1
    waited = end > last + 1
    return _seen(trace)[first : end + waited]


def _seen_after(trace: Trace, step: int, participant: int) -> Seen:
    """The committed data when this step had ended."""
    end = step + 1
    while end < len(trace.points) and participant in trace.points[end].blocked:
        end += 1
    return _seen(trace)[end]
