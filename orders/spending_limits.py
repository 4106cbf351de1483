"""The most that a client may spend in a day and in a month.

A purchase beyond a limit is refused as `insufficient_balance` (orders/sql/spend.sql). The limits
count purchases from the moment they are set. Refunds and credits give no room back: with a stolen
key, rejected top-ups would otherwise make the limit endless.
"""

from dataclasses import dataclass
from decimal import Decimal

from django.db import connection, transaction
from django.db.models import F, Q, QuerySet

from accounts.models import ApiClient
from core.database.functions import database_now
from orders.models import SpendingLimit

BEYOND_LIMIT = "spending_limit"  # as orders/sql/spend.sql says it


@dataclass(frozen=True)
class Limits:
    """The limits of a client, in the currency of its account. None: no limit."""

    per_day: Decimal | None = None
    per_month: Decimal | None = None


@transaction.atomic
def set_spending_limits(*, client: ApiClient, limits: Limits) -> Limits | None:
    """Sets or removes the limits. Returns those before, or None if they are the same.

    Locks the client's counter, so it waits for a purchase and a purchase waits for it.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO orders_clientcounter AS counter (client_id, orders, limited)"
            " VALUES (%(client)s, 0, %(limited)s) ON CONFLICT (client_id)"
            " DO UPDATE SET limited = excluded.limited RETURNING orders",
            {"client": client.pk, "limited": limits != Limits()},
        )
        (orders,) = cursor.fetchone()
    row = SpendingLimit.objects.filter(pk=client.pk).first()
    before = Limits(row.per_day, row.per_month) if row else Limits()
    if limits == before:
        return None
    if limits == Limits():
        SpendingLimit.objects.filter(pk=client.pk).delete()
    elif row:
        SpendingLimit.objects.filter(pk=client.pk).update(
            per_day=limits.per_day, per_month=limits.per_month
        )
    else:
        SpendingLimit.objects.create(
            client=client,
            per_day=limits.per_day,
            per_month=limits.per_month,
            counted_after=orders,
        )
    return before


@dataclass(frozen=True)
class Spending:
    """The limits of a client, and what counts towards them now."""

    limits: Limits
    today: Decimal
    this_month: Decimal


def spending_of(client: ApiClient) -> Spending | None:
    """The limits of the client and its spending under them; None if it has none."""
    row = SpendingLimit.objects.filter(pk=client.pk).first()
    if row is None:
        return None
    now = database_now().date()
    return Spending(
        limits=Limits(row.per_day, row.per_month),
        today=row.spent_today if row.day == now else Decimal(0),
        this_month=row.spent_this_month if row.month == now.replace(day=1) else Decimal(0),
    )


def record_refusal(client: ApiClient) -> None:
    """Stores that the limit refused a purchase, for the email to the owners.

    The purchase was rolled back, so this is a statement of its own. It writes once a day.
    """
    today = database_now().date()
    others = SpendingLimit.objects.exclude(refused_on=today)
    others.filter(pk=client.pk).update(refused_on=today)


def unreported_refusals() -> QuerySet[SpendingLimit]:
    """The limits that refused a purchase on a day about which the owners have no email yet."""
    return SpendingLimit.objects.filter(refused_on__isnull=False).filter(
        Q(reported_on=None) | Q(reported_on__lt=F("refused_on"))
    )
