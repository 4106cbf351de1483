"""Decides what to do after each event of a purchase. It sends, waits, stores and reads nothing.

`decide(state, event, …)` returns the next state and one action. The transports carry out the action
and report what came of it as the next event.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Optional, Union

from voucher_topup.wire import ErrorCode, Failure, Foreign, Refusal, Reply, Success


@dataclass(frozen=True)
class Rules:
    """How long to wait, in seconds."""

    patience: float = 60.0  # for an outcome, from the first attempt
    progress_patience: float = 360.0  # for request_in_progress, from the first of them
    first_pause: float = 0.5
    longest_pause: float = 30.0
    progress_pause: float = 5.0
    crowd_pause: float = 30.0  # after a 429 that is not the service's
    # A later request with the same idempotency key could buy again: the service forgets an
    # unfinished request after one day.
    key_lifetime: float = 23 * 3600.0
    # An attempt without a response may still arrive and buy: a proxy may hold it for 60 seconds,
    # and the service works on it for 30.
    attempt_lifetime: float = 90.0


RULES = Rules()


@dataclass(frozen=True)
class State:
    """The state of a purchase that is not settled.

    `doubt`: an attempt may have bought. `late_until`: until then, such an attempt may still arrive.
    `sent`: when the last attempt was sent. `reference`: the order exists, and only has to be read.
    Times are of one clock that never goes back.
    """

    started: float
    key_ends: float
    doubt: bool = False
    late_until: float = 0.0
    sent: float = 0.0
    reference: Optional[str] = None
    tries: int = 0
    progress_since: Optional[float] = None


@dataclass(frozen=True)
class Begin:
    """The purchase is in the journal."""


Event = Union[Begin, Reply]


@dataclass(frozen=True)
class Send:
    """Send the stored bytes with the stored idempotency key, after a pause."""

    after: float = 0.0


@dataclass(frozen=True)
class Read:
    """Read the order, after a pause. Do not buy again."""

    reference: str
    after: float = 0.0


@dataclass(frozen=True)
class SettleBought:
    """Store that it was bought. `data` is the order."""

    data: Mapping[str, object]


@dataclass(frozen=True)
class SettleRefused:
    """Store that nothing was bought."""

    error: Failure


@dataclass(frozen=True)
class LeaveOpen:
    """Give up for now. The purchase stays open in the journal, and `resume` settles it."""

    error: Optional[Failure] = None


# The service refuses with these after it has looked at the key, or because the same bytes can never
# buy. So nothing was bought until then.
FINAL = frozenset(
    {
        ErrorCode.ORDER_REFUSED,
        ErrorCode.VALIDATION_FAILED,
        ErrorCode.VARIATION_MISMATCH,
        ErrorCode.PRODUCT_REFERENCE_NOT_FOUND,
        ErrorCode.PRODUCT_REFERENCE_AMBIGUOUS,
    }
)
Action = Union[Send, Read, SettleBought, SettleRefused, LeaveOpen]


def decide(
    state: State, event: Event, *, now: float, chance: float, rules: Rules = RULES
) -> tuple[State, Action]:
    """The next state and action. `chance` is a random number from 0 to 1, for the jitter."""
    if isinstance(event, Begin):
        return (replace(state, sent=now), Send()) if now < state.key_ends else (state, LeaveOpen())
    if isinstance(event, Success) and _is_order(event, state):
        return state, SettleBought(event.data)
    if isinstance(event, Refusal) and 400 <= event.status < 500 and event.status != 408:
        return _after_refusal(state, event, now, chance, rules)
    if isinstance(event, Foreign) and event.is_unreachable:
        return state, LeaveOpen()
    crowded = event.status == 429
    pause = rules.crowd_pause * (1 + chance / 4) if crowded else _backoff(state, chance, rules)
    return _again(_in_doubt(state, now, rules), pause, now, rules)


def _after_refusal(
    state: State, refusal: Refusal, now: float, chance: float, rules: Rules
) -> tuple[State, Action]:
    error = refusal.error
    code = error.code
    if code == ErrorCode.RATE_LIMITED or refusal.status == 429:
        seconds = max(1, error.retry_after_seconds or 30)
        return _again(state, seconds * (1 + chance / 10), now, rules, error)
    if state.reference:  # the read failed: the key is wrong or disabled, and the order exists
        return state, LeaveOpen(error)
    if code == ErrorCode.REQUEST_ABANDONED:
        if not error.reference:
            return replace(state, doubt=True), LeaveOpen(error)
        return replace(state, doubt=True, reference=error.reference, tries=0), Read(error.reference)
    if code == ErrorCode.REQUEST_IN_PROGRESS:
        since = now if state.progress_since is None else state.progress_since
        state = replace(_in_doubt(state, now, rules), progress_since=since)
        return _again(state, rules.progress_pause * (1 + chance / 4), now, rules, error)
    if code in FINAL:
        if state.sent >= state.late_until:
            return state, SettleRefused(error)
        # A refusal does not bind the key, so an earlier attempt that still arrives could buy.
        return _again(state, (state.late_until - now) * (1 + chance / 10), now, rules, error)
    if state.doubt or code == ErrorCode.IDEMPOTENCY_KEY_REUSED:
        return state, LeaveOpen(error)  # it says nothing about earlier attempts
    return state, SettleRefused(error)


def _again(
    state: State, pause: float, now: float, rules: Rules, error: Optional[Failure] = None
) -> tuple[State, Action]:
    """The next attempt, unless it would be after the patience or the life of the key."""
    ends = state.started + rules.patience
    if state.progress_since is not None:
        ends = max(ends, state.progress_since + rules.progress_patience)
    state = replace(state, tries=state.tries + 1)
    if now + pause > ends:
        return state, LeaveOpen(error)
    if state.reference:
        return state, Read(state.reference, pause)
    if now + pause >= state.key_ends:
        return state, LeaveOpen(error)
    return replace(state, sent=now + pause), Send(pause)


def _in_doubt(state: State, now: float, rules: Rules) -> State:
    return replace(state, doubt=True, late_until=now + rules.attempt_lifetime)


def _backoff(state: State, chance: float, rules: Rules) -> float:
    """Between half of and the whole of a time that doubles with each attempt."""
    whole = min(rules.longest_pause, rules.first_pause * 2.0 ** min(state.tries, 16))
    return whole * (0.5 + chance / 2)


def _is_order(reply: Success, state: State) -> bool:
    reference = reply.data.get("reference")
    if state.reference:
        return reply.status == 200 and reference == state.reference
    return reply.status == 201 and isinstance(reference, str)


def decide_read(
    tries: int, reply: Reply, *, waited: float, chance: float, rules: Rules = RULES
) -> Union[float, Success, Refusal, Foreign]:
    """After a read: a pause before the next attempt, or the reply to return."""
    if isinstance(reply, Success):
        return reply
    if isinstance(reply, Refusal) and reply.status == 429:
        pause = max(1, reply.error.retry_after_seconds or 30) * (1 + chance / 10)
    elif isinstance(reply, Refusal) and 400 <= reply.status < 500 and reply.status != 408:
        return reply
    elif reply.status == 429:
        pause = rules.crowd_pause * (1 + chance / 4)
    else:
        pause = _backoff(State(0, 0, tries=tries), chance, rules)
    if isinstance(reply, Foreign) and reply.is_unreachable:
        return reply
    return pause if waited + pause <= rules.patience else reply


__all__ = [
    "RULES",
    "Action",
    "Begin",
    "Event",
    "Foreign",
    "LeaveOpen",
    "Read",
    "Rules",
    "Send",
    "SettleBought",
    "SettleRefused",
    "State",
    "decide",
    "decide_read",
]
