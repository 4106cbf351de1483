"""Moves of fulfilments and price changes as lines of the audit trail (core/trails.py)."""

from collections.abc import Sequence

from django.db.models import Q

from core.trails import Line, Trail, about_object, by_name, price_trail, who_and_where
from topups.fulfilments import RejectReason
from topups.models import (
    Channel,
    Fulfilment,
    FulfilmentEvent,
    FulfilmentStatus,
    PriceChange,
    TopUpProduct,
)
from topups.transitions import Move

# The condition of the partial indexes: the first event of an order comes from its purchase, which
# the indexes must cost nothing.
IS_MOVE = ~Q(channel=Channel.API)
CHANNELS = {
    Channel.API: "API",
    Channel.ADMIN: "Back office",
    Channel.COMMAND: "Server",
    Channel.TELEGRAM: "Telegram",
    Channel.SYSTEM: "",
}
# What happened, by the move of the event.
WORDS = {
    "open": "Top-up ordered",
    Move.CLAIM: "Top-up claimed",
    Move.RELEASE: "Top-up released",
    Move.COMPLETE: "Top-up delivered",
    Move.REVIEW: "Top-up sent to review",
    Move.REJECT: "Top-up rejected",
    Move.REJECT_UNREFUNDED: "Top-up failed without refund",
    "refund": "Top-up refunded",
}
COLOURS = {FulfilmentStatus.COMPLETED: "success", FulfilmentStatus.FAILED: "danger"}


def event_line(event: FulfilmentEvent) -> Line:
    """What an event of a fulfilment says, read with `fulfilment`."""
    who, where = who_and_where(event.actor)
    to_status = FulfilmentStatus(event.to_status)
    return Line(
        at=event.created_at,
        what=WORDS[event.move],
        on=("topups.fulfilment", str(event.fulfilment_id)),
        name=event.fulfilment.order_reference,
        who=who,
        where=CHANNELS[Channel(event.channel)] or where,
        note=_note(event),
        changes={}
        if event.from_status in (None, event.to_status)
        else {"state": (_state(event.from_status), _state(event.to_status))},
        colour="success" if event.move == "refund" else COLOURS.get(to_status, ""),
    )


def _note(event: FulfilmentEvent) -> str:
    """The note. That of a rejection begins with its reason (topups/fulfilments.py)."""
    reason, colon, note = event.note.partition(": ")
    rejected = event.move in (Move.REJECT, Move.REJECT_UNREFUNDED)
    if rejected and reason in RejectReason.values:
        return f"{RejectReason(reason).label}{colon}{note}"
    return event.note


def _state(status: str) -> str:
    return FulfilmentStatus(status).label.lower()


def _of_order(reference: str) -> Sequence[Q]:
    found = Fulfilment.objects.filter(order_reference=reference).values_list("pk", flat=True)
    return [Q(fulfilment=pk) for pk in found]


TRAILS = [
    Trail(
        title="Moves of top-ups",
        model=FulfilmentEvent,
        seen_with=Fulfilment,
        rows=lambda: FulfilmentEvent.objects.filter(IS_MOVE).prefetch_related("fulfilment"),
        line=event_line,
        by=by_name("actor"),
        about=about_object("topups.fulfilment", "fulfilment"),
        called=_of_order,
    ),
    price_trail(
        title="Prices of top-up products",
        model=PriceChange,
        of=TopUpProduct,
        column="product",
        read_with=["product"],
    ),
]
