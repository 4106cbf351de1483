"""The scenarios: who meets whom, and where they pause."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from idempotency.cleanup import cleanup_records
from idempotency.models import IdempotencyRecord
from idempotency.services import Claim, claim_key, end_attempt
from labs.interleavings.pauses import IDEMPOTENCY, MONEY, PURCHASES, STOCK
from labs.interleavings.scheduler import Bounds
from labs.interleavings.world import FIVE_MINUTES, ONE_DAY, SEVEN_DAYS, Request, World, grow_older
from orders.remedies.credits import credit_order
from tests.factories import buy_topup, move_now
from topups.fulfilment.fulfilments import AlreadyDone, MoveRefused, Overtaken, move_fulfilment
from topups.fulfilment.transitions import Move
from topups.fulfilment.versions import version_of
from topups.models import Channel, Fulfilment, TopUpProduct
from topups.tasks import refund_fulfilment, sweep_refunds
from wallets.services import AlreadyBooked, BadBooking

Task = Callable[[World], Any]


@dataclass(frozen=True)
class Scenario:
    """Participants, and what may come out.

    participants: a Request, or another task; they are numbered from 0.
    files: SQL files whose functions pause before each statement. Other functions run as one step.
    private: functions that touch rows of one participant only, which need no choice.
    own: tables of which each participant touches other rows.
    others: the allowed outcomes of the participants that are no Request, together; None if they
        have none.
    orders: the most orders that may exist afterwards.
    forgets: whether cleanup may delete the record of a key, which may then buy again.
    """

    participants: tuple[Request | Task, ...]
    files: tuple[str, ...] = ()
    private: frozenset[str] = frozenset()
    bounds: Bounds = field(default_factory=Bounds)
    own: frozenset[str] = frozenset()
    prepare: Callable[[World], None] = lambda world: None
    others: frozenset[tuple[str, ...]] | None = None
    orders: int = 1
    forgets: bool = False
    size: Mapping[str, int] = field(default_factory=dict)  # of the world

    @property
    def requests(self) -> dict[int, Request]:
        return {
            number: participant
            for number, participant in enumerate(self.participants)
            if isinstance(participant, Request)
        }


def passes(seconds: int) -> Task:
    """The time that passes for the idempotency records."""

    def task(world: World) -> str:
        grow_older(seconds)
        return "done"

    return task


def end_any_attempt(world: World) -> str:
    """Ends the attempt that has the key now, as a process does that lost the database. The attempt
    may still be running, whatever it waits for."""
    for record in IdempotencyRecord.objects.filter(key=ONE.key):
        claim = Claim(record.client_id, record.key, b"", record.pk, record.attempt)
        if end_attempt(claim):
            return "ended"
    return "nothing to end"


def cleanup(world: World) -> str:
    return f"deleted {cleanup_records()}"


def refund(world: World) -> str:
    return "refunded" if refund_fulfilment(_fulfilment(world).pk) else "nothing due"


def sweep(world: World) -> str:
    return "refunded" if sweep_refunds() else "nothing due"


def credit(amount: str, booking: str) -> Task:
    def task(world: World) -> str:
        try:
            credit_order(
                reference=world.reference,
                amount=Decimal(amount),
                note="sorry",
                actor="admin:anna",
                channel=Channel.ADMIN,
                booking_reference=booking,
            )
        except BadBooking:
            return "refused"
        except AlreadyBooked:
            return "credited"
        return "credited"

    return task


def move(kind: Move, operator: int = 0) -> Task:
    """An operator's move of the order, on the version that it has at the start."""

    def task(world: World) -> str:
        try:
            move_fulfilment(
                reference=world.reference,
                version=world.version,
                move=kind,
                operator=world.operators[operator],
            )
        except AlreadyDone:
            return "already done"
        except Overtaken:
            return "overtaken"
        except MoveRefused:
            return "refused"
        return str(kind)

    return task


def with_order(*moves: Move) -> Callable[[World], None]:
    """A top-up order that was moved like this."""

    def prepare(world: World) -> None:
        world.reference = buy_topup(world.merchant, _product(world))
        for kind in moves:
            move_now(reference=world.reference, move=kind, operator=world.operators[0])
        world.version = version_of(_fulfilment(world))

    return prepare


def stored(request: Request, *, age: int) -> Callable[[World], None]:
    """The request was answered this many seconds ago."""

    def prepare(world: World) -> None:
        assert world.send(request).status_code == 201
        grow_older(age)

    return prepare


def late_claim(world: World) -> None:
    """An attempt claimed the key more than five minutes ago, and died."""
    claim_key(
        client=world.merchant.client, key=ONE.key, fingerprint=bytes.fromhex(world.content(ONE))
    )
    grow_older(FIVE_MINUTES)


def _fulfilment(world: World) -> Fulfilment:
    return Fulfilment.objects.get(order_reference=world.reference)


def _product(world: World) -> Any:
    return TopUpProduct.objects.get(pk=world.topup)


ONE = Request("one", "voucher")
ONE_OTHER = Request("one", "voucher", "other")
ONE_TOPUP = Request("one", "top_up")
TWO = Request("two", "voucher")
TWO_TOPUP = Request("two", "top_up")
THREE = Request("three", "voucher")
TWINS, TRIPLETS = frozenset({0, 1}), frozenset({0, 1, 2})
# With a key of its own, no other request sees a participant's record.
OWN_KEYS = frozenset(
    {
        "orders_find_key_and_success",
        *("idempotency_claim", "idempotency_store_response", "idempotency_release"),
    }
)
OWN_FULFILMENT = frozenset({"topups_fulfilment", "topups_fulfilmentevent"})
OWN_ORDER = OWN_FULFILMENT | {"wallets_ledgerentry"}
DELIVERY = (*PURCHASES, *STOCK, *MONEY)
PAYMENT = (*PURCHASES, *MONEY)  # where the participants share only the wallet

PAIRS: dict[str, Scenario] = {
    # One key.
    "same-key": Scenario((ONE, ONE), (*IDEMPOTENCY, *PURCHASES), bounds=Bounds(twins=TWINS)),
    "same-key-top-up": Scenario(
        (ONE_TOPUP, ONE_TOPUP), (*IDEMPOTENCY, *PURCHASES), bounds=Bounds(twins=TWINS)
    ),
    "other-content": Scenario((ONE, ONE_OTHER), (*IDEMPOTENCY, *PURCHASES)),
    "other-kind": Scenario((ONE, ONE_TOPUP), (*IDEMPOTENCY, *PURCHASES)),
    "no-stock": Scenario(
        (ONE, ONE),
        (*IDEMPOTENCY, *PURCHASES),
        bounds=Bounds(twins=TWINS),
        size={"codes": 0},
    ),
    "replay-and-cleanup": Scenario(
        (ONE, cleanup),
        (*IDEMPOTENCY, *PURCHASES),
        prepare=stored(ONE, age=SEVEN_DAYS),
        others=frozenset({("deleted 0",), ("deleted 1",)}),
        orders=2,
        forgets=True,
    ),
    # One shelf, one wallet.
    "last-code": Scenario(
        (ONE, TWO), DELIVERY, OWN_KEYS, Bounds(twins=TWINS), size={"codes": 1}, orders=1
    ),
    "last-money": Scenario((ONE, TWO_TOPUP), PAYMENT, OWN_KEYS, size={"money": 10}, orders=1),
    "last-topup": Scenario(
        (ONE_TOPUP, TWO_TOPUP),
        DELIVERY,
        OWN_KEYS,
        Bounds(twins=TWINS),
        size={"packages": 1},
        orders=1,
    ),
    "two-vouchers": Scenario((ONE, TWO), DELIVERY, OWN_KEYS, Bounds(twins=TWINS), orders=2),
    # Fulfilments.
    "complete-and-reject": Scenario(
        (move(Move.COMPLETE), move(Move.REJECT, 1)),
        prepare=with_order(Move.CLAIM),
        others=frozenset({("complete", "overtaken"), ("overtaken", "reject")}),
    ),
    "release-and-complete": Scenario(
        (move(Move.RELEASE), move(Move.COMPLETE, 1)),
        prepare=with_order(Move.CLAIM),
        others=frozenset({("release", "overtaken"), ("overtaken", "complete")}),
    ),
    "double-click": Scenario(
        (move(Move.REJECT), move(Move.REJECT)),
        bounds=Bounds(twins=TWINS),
        prepare=with_order(),
        others=frozenset({("reject", "already done"), ("already done", "reject")}),
    ),
    "reject-and-purchase": Scenario(
        (move(Move.REJECT), TWO_TOPUP),
        (*PURCHASES, *STOCK),
        OWN_KEYS,
        own=OWN_FULFILMENT,
        prepare=with_order(),
        others=frozenset({("reject",)}),
        size={"packages": 1},
        orders=2,
    ),
    "refund-twice": Scenario(
        (refund, refund),
        MONEY,
        bounds=Bounds(twins=TWINS),
        prepare=with_order(Move.REJECT),
        others=frozenset({("refunded", "nothing due"), ("nothing due", "refunded")}),
    ),
    "refund-and-sweep": Scenario(
        (refund, sweep),
        MONEY,
        prepare=with_order(Move.REJECT),
        others=frozenset({("refunded", "nothing due"), ("nothing due", "refunded")}),
    ),
    "refund-and-credit": Scenario(
        (refund, credit("4.00", "c-1")),
        MONEY,
        prepare=with_order(Move.REJECT),
        others=frozenset({("refunded", "credited"), ("refunded", "refused")}),
    ),
    "two-credits": Scenario(
        (credit("6.00", "c-1"), credit("5.00", "c-2")),
        MONEY,
        prepare=with_order(Move.COMPLETE),
        others=frozenset({("credited", "refused"), ("refused", "credited")}),
    ),
    "refund-and-purchase": Scenario(
        (refund, TWO),
        PAYMENT,
        OWN_KEYS,
        own=OWN_ORDER,
        prepare=with_order(Move.REJECT),
        others=frozenset({("refunded",)}),
        size={"money": 10},
        orders=2,
    ),
}
# Three participants. Each call is one step.
TRIOS: dict[str, Scenario] = {
    "three-with-one-key": Scenario((ONE, ONE, ONE), bounds=Bounds(twins=TRIPLETS)),
    "takeover": Scenario((ONE, ONE, passes(FIVE_MINUTES)), others=frozenset({("done",)})),
    "takeover-of-other-content": Scenario(
        (ONE, ONE_OTHER, passes(FIVE_MINUTES)), others=frozenset({("done",)})
    ),
    "takeover-without-stock": Scenario(
        (ONE, ONE, passes(FIVE_MINUTES)), size={"codes": 0}, others=frozenset({("done",)})
    ),
    "takeover-of-top-up": Scenario(
        (ONE_TOPUP, ONE_TOPUP, passes(FIVE_MINUTES)), others=frozenset({("done",)})
    ),
    "takeover-of-late": Scenario(
        (ONE, ONE, ONE), bounds=Bounds(twins=TRIPLETS), prepare=late_claim
    ),
    "end-of-an-attempt": Scenario(
        (ONE, ONE, end_any_attempt),
        bounds=Bounds(twins=TWINS),
        others=frozenset({("ended",), ("nothing to end",)}),
    ),
    "end-without-stock": Scenario(
        (ONE, ONE, end_any_attempt),
        bounds=Bounds(twins=TWINS),
        size={"codes": 0},
        others=frozenset({("ended",), ("nothing to end",)}),
    ),
    "cleanup": Scenario(
        (ONE, passes(ONE_DAY), cleanup),
        forgets=True,
        others=frozenset({("done", "deleted 0"), ("done", "deleted 1")}),
    ),
    "three-for-two-codes": Scenario(
        (ONE, TWO, THREE),
        private=OWN_KEYS,
        bounds=Bounds(twins=TRIPLETS),
        size={"codes": 2},
        orders=2,
    ),
    "two-keys-and-refund": Scenario(
        (refund, TWO, Request("three", "top_up")),
        private=OWN_KEYS,
        own=OWN_ORDER,
        prepare=with_order(Move.REJECT),
        others=frozenset({("refunded",)}),
        size={"money": 10},
        orders=2,
    ),
    "reject-refund-complete": Scenario(
        (move(Move.REJECT), refund, move(Move.COMPLETE, 1)),
        bounds=Bounds(switches=1),  # with two: stopped after 7 minutes
        prepare=with_order(Move.CLAIM),
        others=frozenset(
            {
                ("reject", "refunded", "overtaken"),
                ("reject", "nothing due", "overtaken"),
                ("overtaken", "nothing due", "complete"),
            }
        ),
    ),
}
# The same inside the functions.
INSIDE: dict[str, Scenario] = {
    f"{name}-inside": replace(TRIOS[name], files=(*IDEMPOTENCY, *PURCHASES))
    for name in (
        "three-with-one-key",
        "takeover",
        "takeover-of-other-content",
        "takeover-without-stock",
        "takeover-of-late",
        "cleanup",
    )
}
# Bounded, because the search without a bound did not end. To end an attempt takes two calls, and
# then another request may buy beside the first one.
INSIDE["end-of-an-attempt-inside"] = replace(
    TRIOS["end-of-an-attempt"],
    files=(*IDEMPOTENCY, *PURCHASES),
    bounds=Bounds(twins=TWINS, switches=3),
)
SCENARIOS = {**PAIRS, **TRIOS, **INSIDE}
