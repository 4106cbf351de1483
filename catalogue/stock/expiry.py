"""Codes that expire: held shortly before the end of their last day of sale."""

from datetime import UTC, date, datetime, timedelta

from django.db.models import Q

from catalogue.models import VoucherCode
from catalogue.stock.holds import hold_codes

HELD_BEFORE = timedelta(minutes=5)


def hold_expired_codes() -> int:
    """Holds the codes in stock whose last day ends within five minutes; returns how many. A shelf
    at a time: purchases of it wait meanwhile."""
    first = first_sellable_day()
    expired = VoucherCode.objects.filter(order_id=None, hold=None, expires_on__lt=first)
    total = 0
    for shelf in set(expired.values_list("shelf", flat=True).distinct()):
        _, number = hold_codes(
            codes=Q(shelf=shelf, expires_on__lt=first),
            reason=f"Expired before {first}.",
            held_by="expiry",
        )
        total += number
    return total


def first_sellable_day() -> date:
    """Codes whose last day of sale is before this day, in UTC, are sold no more."""
    return (datetime.now(UTC) + HELD_BEFORE).date()
