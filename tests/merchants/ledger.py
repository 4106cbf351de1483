"""Makes a long ledger history quickly."""

from datetime import UTC, date, datetime, time, timedelta

import pytest
from django.db import connection, transaction

from accounts.models import Account
from core.database.ids import MARGIN
from wallets.evidence import closes

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def book_many(
    account: Account,
    number: int,
    *,
    amount: str = "0.01",
    begin: datetime = BEGIN,
    apart: timedelta = timedelta(minutes=1),
) -> None:
    """Inserts `number` deposits, `apart` from each other.

    The triggers are off, because the one that moves the wallet would get slower with each deposit
    of the transaction. The balance therefore stays the same.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(
            "INSERT INTO wallets_ledgerentry"
            " (wallet_id, kind, counterpart, amount, balance_after, actor, booking_reference,"
            " created_at, chain)"
            " SELECT %s, 'deposit', 'bank', %s, %s::numeric * (n + 1), 'test', gen_random_uuid(),"
            "        %s::timestamptz + n * %s::float * interval '1 s', ''"
            " FROM generate_series(0, %s - 1) n",
            [account.pk, amount, amount, begin, str(apart.total_seconds()), number],
        )
        cursor.execute("SET LOCAL session_replication_role = origin")


def close_days_before(day: date) -> int:
    """Closes the days before `day`. `close_days` alone would close all days until yesterday, more
    each day that passes."""
    end = datetime.combine(day, time(), UTC) + MARGIN
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(closes, "database_now", lambda: end)
        return closes.close_days()
