"""The desk's numbers: how many orders are open, how old they are, and how many were closed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Count, Min, Q
from django.db.models.functions import TruncHour
from django.utils import timezone
from django.utils.translation import gettext as _

from core.texts import lazy
from topups.fulfilment.refunds import refunds_due
from topups.fulfilment.transitions import OPEN
from topups.models import Fulfilment, FulfilmentStatus

HOURS = 24
BUSIEST = 8
STATES = (
    FulfilmentStatus.PENDING,
    FulfilmentStatus.PROCESSING,
    FulfilmentStatus.PENDING_REVIEW,
)
# The theme's name for each colour.
URGENCIES = {"fresh": "success", "waiting": "warning", "late": "danger"}
LEVELS = {"fresh": lazy("fresh"), "waiting": lazy("waiting"), "late": lazy("late")}


def summarise_queue(user: User, *, after: int | None = None) -> dict[str, Any]:
    """Counts of open orders by state, the person's own claims, new orders, and the oldest age.

    New orders are pending orders with an id above `after`; without `after`, none. One query.
    """
    now = timezone.now()
    numbers = _open().aggregate(
        **{status: Count("pk", filter=Q(status=status)) for status in STATES},
        mine=Count("pk", filter=Q(claimed_by=user)),
        new=Count("pk", filter=Q(status=FulfilmentStatus.PENDING, pk__gt=after or 0)),
        oldest=Min("created_at"),
    )
    return {
        "states": [
            {"name": status.label, "count": numbers[status], "work": status.value}
            for status in STATES
        ],
        "mine": numbers["mine"],
        "new": numbers["new"] if after is not None else 0,
        "refresh": settings.DESK_REFRESH_SECONDS,
        "oldest": _age(now, numbers["oldest"]) if numbers["oldest"] else None,
    }


def summarise_desk(user: User) -> dict[str, Any]:
    """The queue by state and product, the last 24 hours by hour, and refunds. Four queries."""
    now = timezone.now()
    return {
        **summarise_queue(user),
        "products": [
            {"name": name, "count": count, **_age(now, oldest)}
            for name, count, oldest in _open()
            .values_list("product__name")
            .annotate(count=Count("pk"), oldest=Min("created_at"))
            .order_by("oldest")[:BUSIEST]
        ],
        "hours": _last_hours(now),
        **_refunds(now),
    }


def age_in_words(age: timedelta) -> str:
    """`7 min`, `3 h 05`, `2 days`."""
    minutes = int(age.total_seconds() // 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60:02}"
    return _("%(days)s days") % {"days": minutes // (24 * 60)}


def urgency(age: timedelta) -> str:
    """`fresh`, `waiting` or `late`, by DESK_WAITING_MINUTES and DESK_LATE_MINUTES."""
    minutes = age.total_seconds() / 60
    if minutes >= settings.DESK_LATE_MINUTES:
        return "late"
    return "waiting" if minutes >= settings.DESK_WAITING_MINUTES else "fresh"


def _age(now: datetime, since: datetime) -> dict[str, str]:
    age = now - since
    level = urgency(age)
    return {"age": age_in_words(age), "level": str(LEVELS[level]), "colour": URGENCIES[level]}


def _open() -> Any:
    return Fulfilment.objects.filter(status__in=OPEN)


def _last_hours(now: datetime) -> dict[str, Any]:
    """Deliveries and failures of the last 24 hours, one pair per hour, including empty hours."""
    local = timezone.localtime(now).replace(minute=0, second=0, microsecond=0)
    first = local.astimezone(UTC) - timedelta(hours=HOURS - 1)
    rows = (
        Fulfilment.objects.filter(closed_at__gte=first)
        .annotate(hour=TruncHour("closed_at"))
        .values_list("hour")
        .annotate(
            completed=Count("pk", filter=Q(status=FulfilmentStatus.COMPLETED)),
            failed=Count("pk", filter=Q(status=FulfilmentStatus.FAILED)),
        )
        .order_by()
    )
    counts = {hour: (completed, failed) for hour, completed, failed in rows}
    hours = [first + timedelta(hours=number) for number in range(HOURS)]
    return {
        "labels": [f"{timezone.localtime(hour):%H}" for hour in hours],
        "completed": [counts.get(hour, (0, 0))[0] for hour in hours],
        "failed": [counts.get(hour, (0, 0))[1] for hour in hours],
    }


def _refunds(now: datetime) -> dict[str, int]:
    """Counts times, not ids: the index of refunds that are due has them."""
    overdue = now - timedelta(minutes=settings.REFUND_OVERDUE_MINUTES)
    due = "refund_due_at"
    return refunds_due().aggregate(
        refunds_due=Count(due), refunds_overdue=Count(due, filter=Q(refund_due_at__lte=overdue))
    )
