"""Daily closes: what a wallet held before a day (UTC), what moved on it, and what it held after.

A day is closed once, an hour after its end: no transaction of the day can be open any more. A close
is never rewritten (wallets/sql/closes.sql), and `reconcile` compares it with the ledger. An entry
belongs to the day of its time. The close of a month's last day issues the statements of the month.
"""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db import IntegrityError, connection, transaction

from core.database.functions import database_now, remove_statement_timeout
from core.database.ids import MARGIN, find_first_id
from wallets.models import DailyClose, EntryKind, LedgerEntry

DAY = timedelta(days=1)
# The column of a close, by the kind of the entries that it sums up. A replacement moves no money.
COLUMNS = {kind: f"{kind.value}s" for kind in EntryKind if kind != EntryKind.REPLACEMENT}
NAMES = ", ".join(COLUMNS.values())
SUMS = ", ".join(
    f"coalesce(sum(amount) FILTER (WHERE kind = '{kind.value}'), 0) AS {name}"
    for kind, name in COLUMNS.items()
)

CLOSE_WALLETS = f"""
    INSERT INTO wallets_walletclose (wallet_id, day, opening, {NAMES}, closing)
    SELECT wallet_id, %(day)s, coalesce(before.closing, 0), {NAMES},
           coalesce(before.closing, 0) + total
      FROM (SELECT wallet_id, sum(amount) AS total, {SUMS}
              FROM wallets_ledgerentry
             WHERE id >= %(first)s AND id < %(end)s
               AND created_at >= %(since)s AND created_at < %(until)s
             GROUP BY wallet_id) AS moved
      LEFT JOIN LATERAL (SELECT closing FROM wallets_walletclose AS earlier
                          WHERE earlier.wallet_id = moved.wallet_id
                          ORDER BY earlier.wallet_id DESC, earlier.day DESC LIMIT 1)
             AS before ON true
"""  # noqa: S608  names of ours
# A row for each currency, also for one in which nothing moved.
CLOSE_CURRENCIES = f"""
    INSERT INTO wallets_dailyclose (day, currency, wallets, opening, {NAMES}, closing)
    SELECT %(day)s, currencies.currency, coalesce(today.wallets, 0), coalesce(before.closing, 0),
           {", ".join(f"coalesce(today.{name}, 0)" for name in COLUMNS.values())},
           coalesce(before.closing, 0) + coalesce(moved, 0)
      FROM (SELECT DISTINCT currency FROM accounts_account
              JOIN wallets_wallet ON account_id = accounts_account.id) AS currencies
      LEFT JOIN (SELECT currency, count(*) AS wallets, sum(closing - opening) AS moved,
                        {", ".join(f"sum({name}) AS {name}" for name in COLUMNS.values())}
                   FROM wallets_walletclose
                   JOIN accounts_account ON accounts_account.id = wallet_id
                  WHERE day = %(day)s GROUP BY currency) AS today
             ON today.currency = currencies.currency
      LEFT JOIN wallets_dailyclose AS before
             ON before.currency = currencies.currency AND before.day = %(day)s - 1
"""  # noqa: S608  names of ours

# For each wallet that had an entry before the end of the month, also if not in the month.
ISSUE_STATEMENTS = """
    INSERT INTO wallets_monthlystatement (wallet_id, month, issuer, recipient, bank_details)
    SELECT account.id, %(month)s,
           coalesce((SELECT to_jsonb(own) - 'id' FROM accounts_owncompany AS own), '{}'),
           coalesce(to_jsonb(company) - 'account_id' - 'note', '{}')
               || jsonb_build_object('name', account.name),
           coalesce(bank.details, '')
      FROM wallets_wallet
      JOIN accounts_account AS account ON account.id = account_id
      LEFT JOIN accounts_company AS company ON company.account_id = account.id
      LEFT JOIN wallets_bankdetails AS bank ON bank.currency = account.currency
     WHERE EXISTS (SELECT FROM wallets_walletclose WHERE wallet_id = account.id)
"""


def last_closed_day() -> date | None:
    """The last day that is closed; None before the first close."""
    return DailyClose.objects.order_by("-day").values_list("day", flat=True).first()


def close_days() -> int:
    """Closes each day that has ended, the oldest first. Returns how many were closed.

    Another process may do the same at the same time: each day is closed once.
    """
    closed = 0
    while (day := _next_day()) is not None and day + DAY <= _today_after_margin():
        if not _close(day):
            break
        closed += 1
    return closed


@transaction.atomic
def _close(day: date) -> bool:
    """Closes one day. Returns False if another process closed it."""
    remove_statement_timeout()
    since = datetime.combine(day, time(), UTC)
    values: dict[str, Any] = {
        "day": day,
        "since": since,
        "until": since + DAY,
        "first": find_first_id(LedgerEntry, since - MARGIN),
        "end": find_first_id(LedgerEntry, since + DAY + MARGIN),
    }
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(CLOSE_WALLETS, values)
            cursor.execute(CLOSE_CURRENCIES, values)
            if (day + DAY).day == 1:
                cursor.execute(ISSUE_STATEMENTS, {"month": day.replace(day=1)})
    except IntegrityError:
        if (last_closed_day() or date.min) < day:
            raise
        return False
    return True


def _next_day() -> date | None:
    """The first day that is not closed; None without any entry."""
    if last := last_closed_day():
        return last + DAY
    first = LedgerEntry.objects.order_by("pk").values_list("created_at", flat=True).first()
    return None if first is None else (first - MARGIN).astimezone(UTC).date()


def _today_after_margin() -> date:
    """The present day (UTC), if each day began an hour later."""
    return (database_now() - MARGIN).astimezone(UTC).date()
