"""The largest booking that a member of staff makes alone."""

from decimal import Decimal

from django.contrib.auth.models import User

from wallets.models import BookingLimit, EntryKind

# Of a person whose groups have no limit for the kind and currency.
DEFAULT_LIMIT = Decimal(10_000)


def limit_of(user: User, *, kind: EntryKind, currency: str) -> Decimal:
    """The highest limit of the person's groups. A group's limit for the currency comes before its
    limit for all currencies."""
    limits = BookingLimit.objects.filter(
        group__in=user.groups.all(), kind=kind, currency__in=["", currency]
    )
    of_groups = dict(limits.order_by("currency").values_list("group", "amount"))
    return max(of_groups.values(), default=DEFAULT_LIMIT)
