"""The version of a fulfilment: the state that a person saw when they decided on a move.

The version is the id of the event that led to the present state. Every form, button and command
that moves an order carries the version that was shown. `topups.fulfilment.fulfilments.check_move`
compares.
"""

from django.db.models import OuterRef, QuerySet, Subquery

from topups.models import Fulfilment, FulfilmentEvent


def state_events() -> QuerySet[FulfilmentEvent]:
    """The events that led to a state. A refund changes none."""
    return FulfilmentEvent.objects.exclude(move="refund")


def last_event(fulfilment: Fulfilment) -> FulfilmentEvent:
    """The event that led to the present state."""
    event = state_events().filter(fulfilment=fulfilment).order_by("pk").last()
    assert event is not None, "each fulfilment starts with an event"  # noqa: S101
    return event


def version_of(fulfilment: Fulfilment) -> int:
    """The present version. To show state and version together, read both with `with_versions`."""
    return last_event(fulfilment).pk


def latest_event(fulfilment: str, column: str) -> Subquery:
    """A column of the last event; `fulfilment` is the outer query's path to the order's id."""
    events = state_events().filter(fulfilment=OuterRef(fulfilment))
    return Subquery(events.order_by("-pk").values(column)[:1])


def with_versions(fulfilments: QuerySet[Fulfilment]) -> QuerySet[Fulfilment]:
    """Adds each order's `version`, read in the same statement as its state."""
    return fulfilments.annotate(version=latest_event("pk", "pk"))
