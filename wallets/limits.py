"""The largest booking that a member of staff makes alone, and the largest sum of a day.

A booking counts towards the sum with one conditional INSERT, in its transaction, so simultaneous
bookings of one person cannot exceed the limit together.
"""

from datetime import UTC
from decimal import Decimal
from typing import NamedTuple

from django.contrib.auth.models import User
from django.db import connection

from core.database.functions import database_now
from wallets.models import BookedAlone, BookingLimit, EntryKind

# Of a person whose groups have no limit for the kind and currency.
DEFAULT_LIMIT = Decimal(10_000)
# How many times its amount a limit allows in a day, if it names no sum of a day.
BOOKINGS_PER_DAY = 10

COUNT = """
    INSERT INTO wallets_bookedalone AS alone (user_id, day, kind, currency, amount)
    SELECT %(user)s, %(day)s, %(kind)s, %(currency)s, %(amount)s WHERE %(amount)s <= %(limit)s
    ON CONFLICT (user_id, day, kind, currency) DO UPDATE
       SET amount = alone.amount + excluded.amount
     WHERE alone.amount + excluded.amount <= %(limit)s
"""


class Limits(NamedTuple):
    """The largest booking, and the largest sum of a day, that a person makes alone."""

    booking: Decimal
    day: Decimal


def limits_of(user: User, *, kind: EntryKind, currency: str) -> Limits:
    """The highest limits of the person's groups. A group's limit for the currency comes before its
    limit for all currencies."""
    limits = BookingLimit.objects.filter(
        group__in=user.groups.all(), kind=kind, currency__in=["", currency]
    )
    of_groups = {limit.group_id: limit for limit in limits.order_by("currency")}.values()
    return Limits(
        max((limit.amount for limit in of_groups), default=DEFAULT_LIMIT),
        max(
            (day_limit(limit.amount, limit.per_day) for limit in of_groups),
            default=DEFAULT_LIMIT * BOOKINGS_PER_DAY,
        ),
    )


def booked_today(user: User, *, kind: EntryKind, currency: str) -> Decimal:
    """The sum of the bookings that the person made alone today (UTC)."""
    day = database_now().astimezone(UTC).date()
    sums = BookedAlone.objects.filter(user=user, day=day, kind=kind, currency=currency)
    return sums.values_list("amount", flat=True).first() or Decimal(0)


def count_booking(*, user: User, kind: EntryKind, currency: str, amount: Decimal) -> bool:
    """Counts a booking that the person makes alone, in the transaction of the booking.

    Returns False, and counts nothing, if it is above a limit. `amount` is positive. Other bookings
    of the person wait until the transaction ends.
    """
    limits = limits_of(user, kind=kind, currency=currency)
    if amount > limits.booking:
        return False
    with connection.cursor() as cursor:
        cursor.execute(
            COUNT,
            {
                "user": user.pk,
                "day": database_now().astimezone(UTC).date(),
                "kind": kind.value,
                "currency": currency,
                "amount": amount,
                "limit": limits.day,
            },
        )
        return bool(cursor.rowcount == 1)


def day_limit(amount: Decimal, per_day: Decimal | None) -> Decimal:
    """The sum of a day of a limit."""
    return amount * BOOKINGS_PER_DAY if per_day is None else per_day
