"""The core of the Python library, with any order of events, against a small model of the service.

The model decides what an attempt really does. The core sees only replies, of which any may be lost
or replaced.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from voucher_topup import core
from voucher_topup.wire import ErrorCode, Failure, Foreign, Refusal, Reply, Success

from tests.generating import given, settings, st

ORDER = {"reference": "R-1", "codes": [{"code": "SECRET"}]}
CODES = [*ErrorCode, ErrorCode("a_new_code")]
RULES = core.RULES
PATIENT = replace(RULES, patience=600.0)

replies = st.one_of(
    st.sampled_from([0, 200, 201, 204, 302, 400, 403, 404, 408, 429, 500, 502, 503]).map(Foreign),
    st.builds(
        Refusal,
        st.sampled_from([400, 401, 403, 404, 408, 409, 422, 429, 500, 503]),
        st.builds(
            Failure,
            st.sampled_from(CODES),
            st.just(""),
            reference=st.sampled_from([None, "R-1"]),
            retry_after_seconds=st.sampled_from([None, 0, 1, 60, 3600]),
        ),
    ),
    st.builds(Success, st.sampled_from([200, 201]), st.sampled_from([ORDER, {}, {"reference": 7}])),
)


@dataclass
class World:
    """The truth at the service: whether the key has bought, and whether an attempt is stuck."""

    bought: bool = False
    stuck: bool = False  # an attempt that has bought, or will never finish, and left no response
    late: list[float] = field(default_factory=list)  # when attempts without a response arrive

    def let_arrive(self, now: float) -> None:
        if any(time <= now for time in self.late):
            self.bought = self.bought or not self.stuck
        self.late = [time for time in self.late if time > now]

    def attempt(self, fate: str) -> Reply:
        """The service's own answer to an attempt, and what the attempt does."""
        if fate == "disabled":  # before it looks at the key
            return Refusal(403, Failure(ErrorCode.CLIENT_DISABLED, ""))
        if fate == "limited":
            return Refusal(429, Failure(ErrorCode.RATE_LIMITED, "", retry_after_seconds=5))
        if self.stuck and fate == "busy":
            return Refusal(409, Failure(ErrorCode.REQUEST_IN_PROGRESS, ""))
        if self.stuck and self.bought:
            return Refusal(409, Failure(ErrorCode.REQUEST_ABANDONED, "", reference="R-1"))
        if self.bought:
            return Success(201, ORDER)
        if fate == "refuse":
            self.stuck = False
            return Refusal(409, Failure(ErrorCode.ORDER_REFUSED, ""))
        if fate == "invalid":
            return Refusal(422, Failure(ErrorCode.VALIDATION_FAILED, ""))
        if fate == "crash before":
            self.stuck = True
            return Refusal(500, Failure(ErrorCode.SERVER_ERROR, ""))
        self.bought = True
        self.stuck = fate == "crash after"
        if self.stuck:
            return Refusal(500, Failure(ErrorCode.SERVER_ERROR, ""))
        return Success(201, ORDER)


FATES = ["buy", "disabled", "limited", "busy", "refuse", "invalid", "crash before", "crash after"]
networks = st.sampled_from(
    [*["pass"] * 4, *["late"] * 2, "lose before", "lose after", "html 408", "html 429", "html 502"]
)


def foreign(network: str) -> Foreign:
    return Foreign(int(network.split()[1]) if network.startswith("html") else 0)


@settings(max_examples=800)
@given(
    st.lists(st.tuples(st.sampled_from([*FATES, *["refuse"] * 6]), networks), max_size=40),
    st.booleans(),
    st.floats(0, 1),
    st.sampled_from([RULES, PATIENT]),
)
def test_an_outcome_agrees_with_the_service(
    plan: list[tuple[str, str]], resumed: bool, chance: float, rules: core.Rules
) -> None:
    life = RULES.attempt_lifetime
    world = World(bought=resumed and chance < 0.5, late=[life * chance] if resumed else [])
    state = core.State(
        started=0,
        key_ends=RULES.key_lifetime,
        doubt=resumed,
        late_until=life if resumed else 0.0,
    )
    event: core.Event = core.Begin()
    now, bought_before, reads = 0.0, world.bought, False
    for fate, network in [*plan, *[("buy", "pass")] * 1000]:
        state, action = core.decide(state, event, now=now, chance=chance, rules=rules)
        if isinstance(action, core.SettleBought):
            assert world.bought
            return
        if isinstance(action, core.SettleRefused):
            assert not world.bought
            assert not bought_before
            assert not world.late, "an earlier attempt may still buy"
            return
        if isinstance(action, core.LeaveOpen):
            return
        assert isinstance(action, (core.Send, core.Read))
        now += action.after
        world.let_arrive(now)
        if isinstance(action, core.Read):
            reads = True
            answer: Reply = Success(200, ORDER)
        else:
            assert not reads, "it buys again although the order exists"
            is_lost = network in ("lose before", "late")
            answer = Foreign() if is_lost else world.attempt(fate)
            if network == "late":
                world.late.append(now + life * chance)
        event = answer if network in ("pass", "lose before", "late") else foreign(network)
        now += 0.01
    pytest.fail("it never ends")


@settings(max_examples=400)
@given(st.lists(replies, max_size=60), st.booleans(), st.floats(0, 1))
def test_any_order_of_events_keeps_the_rules(
    events: list[Reply], doubt: bool, chance: float
) -> None:
    state = core.State(started=0, key_ends=RULES.key_lifetime, doubt=doubt)
    now = 0.0
    state, action = core.decide(state, core.Begin(), now=now, chance=chance)
    for event in events:
        if not isinstance(action, (core.Send, core.Read)):
            break
        now += action.after
        before = state
        state, action = core.decide(state, event, now=now, chance=chance)
        assert state.doubt >= before.doubt
        assert not before.reference or state.reference == before.reference
        if isinstance(action, core.SettleBought):
            assert isinstance(event, Success)
        if isinstance(action, core.SettleRefused):
            assert isinstance(event, Refusal)
            assert 400 <= event.status < 500
            assert event.status != 408
            assert not before.doubt or event.error.code in core.FINAL
        if isinstance(action, core.Send):
            assert not state.reference
            assert now + action.after < state.key_ends
        if isinstance(action, (core.Send, core.Read)):
            assert now + action.after <= RULES.patience + RULES.progress_patience
            if isinstance(event, Refusal) and event.status == 429:
                assert action.after >= (event.error.retry_after_seconds or 1)


@pytest.mark.parametrize(
    ("event", "doubt"),
    [
        (Foreign(408), True),
        (Foreign(403), True),
        (Foreign(201), True),
        (Foreign(), True),
        (Refusal(500, Failure(ErrorCode.SERVER_ERROR, "")), True),
        (Refusal(408, Failure(ErrorCode.ORDER_REFUSED, "")), True),
        (Refusal(429, Failure(ErrorCode.RATE_LIMITED, "", retry_after_seconds=7)), False),
    ],
)
def test_an_unsettled_purchase_is_sent_again(event: Any, doubt: bool) -> None:
    state = core.State(started=0, key_ends=1e9)
    state, action = core.decide(state, event, now=0, chance=0)
    assert isinstance(action, core.Send)
    assert state.doubt is doubt


def test_a_429_of_a_proxy_waits_half_a_minute() -> None:
    _, action = core.decide(core.State(0, 1e9), Foreign(429), now=0, chance=0)
    assert isinstance(action, core.Send)
    assert action.after >= 30


def test_request_in_progress_has_six_minutes_of_patience() -> None:
    busy = Refusal(409, Failure(ErrorCode.REQUEST_IN_PROGRESS, ""))
    state, now, chance = core.State(0, 1e9), 0.0, 0.5
    while True:
        state, action = core.decide(state, busy, now=now, chance=chance)
        if not isinstance(action, core.Send):
            break
        now += action.after
    assert isinstance(action, core.LeaveOpen)
    assert 350 < now <= 360


def test_an_old_key_is_not_sent_again() -> None:
    """The service may have forgotten it, and would buy again."""
    state = core.State(started=0, key_ends=-1, doubt=True)
    assert core.decide(state, core.Begin(), now=0, chance=0)[1] == core.LeaveOpen()


REFUSED = Refusal(409, Failure(ErrorCode.ORDER_REFUSED, ""))


def test_a_refusal_after_a_lost_response_is_asked_again() -> None:
    """The lost attempt may still arrive and buy, because a refusal does not bind the key."""
    state, action = core.decide(core.State(0, 1e9), Foreign(502), now=1, chance=0, rules=PATIENT)
    state, action = core.decide(state, REFUSED, now=3, chance=0, rules=PATIENT)
    assert action == core.Send(1 + PATIENT.attempt_lifetime - 3)
    _, action = core.decide(state, REFUSED, now=95, chance=0, rules=PATIENT)
    assert action == core.SettleRefused(REFUSED.error)


def test_a_refusal_beyond_the_patience_leaves_the_purchase_open() -> None:
    state, _ = core.decide(core.State(0, 1e9), Foreign(502), now=1, chance=0)
    assert core.decide(state, REFUSED, now=3, chance=0)[1] == core.LeaveOpen(REFUSED.error)


def test_a_first_refusal_settles_at_once() -> None:
    state, _ = core.decide(core.State(0, 1e9), core.Begin(), now=1, chance=0)
    assert core.decide(state, REFUSED, now=2, chance=0)[1] == core.SettleRefused(REFUSED.error)
