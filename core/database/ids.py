"""The id of the first row of a time, by a binary search.

An index on the time would cost each insertion an entry. Rows get rising ids, so about thirty reads
of the primary key find where a time begins.
"""

from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Model

# Much longer than any transaction: the ids and times of two rows may disagree by its length.
MARGIN = timedelta(hours=1)


def first_id_since(table: str, moment: str) -> str:
    """SQL for the id of the first row of `table` at or after `moment`, an SQL expression.

    It is the id after the last row if there is none, and NULL in an empty table. Ids and times may
    disagree by the length of a transaction.
    """
    return f"""
        (WITH RECURSIVE search (low, high) AS (
             SELECT min(id), max(id) + 1 FROM {table}
             UNION ALL
             SELECT CASE WHEN early THEN found.id + 1 ELSE low END,
                    CASE WHEN early THEN high ELSE middle END
               FROM (SELECT low, high, low + (high - low) / 2 AS middle
                       FROM search WHERE low < high) AS step
               JOIN LATERAL (SELECT id, created_at FROM {table}
                              WHERE id >= middle ORDER BY id LIMIT 1) AS found ON true
               JOIN LATERAL (SELECT found.id < high AND found.created_at < {moment} AS early)
                    AS comparison ON true
         )
         SELECT max(low) FROM search)
    """  # noqa: S608  names and expressions of ours


def find_first_id(model: type[Model], moment: datetime) -> int:
    """The id of the first row of the model at or after `moment`, or the next id."""
    return find_id_in(model._meta.db_table, moment)


def find_id_in(table: str, moment: datetime) -> int:
    """The same for a table, or for a named subquery with the columns `id` and `created_at`."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {first_id_since(table, '%s')}", [moment])
        (found,) = cursor.fetchone()
    return found or 1
