"""Counts the codes in stock of each batch, for the value of stock on a day.

The codes of a shelf are read in slices, so that no statement is long. Sales go on meanwhile: a code
counts if it is in stock when its slice is read.
"""

from collections import Counter
from collections.abc import Iterator

from django.db import connection, transaction

from catalogue.models import Shelf

LOCK = "hashtext('figures.count_stock')"
SLICE = 100_000
# A code belongs to a batch if it is after as many first codes as the batch has places, and after
# the last codes of those before it. A join by ranges would be slow.
COUNT = """
    WITH batches AS MATERIALIZED (
        SELECT id, first_code, last_code, row_number() OVER (ORDER BY first_code)::int AS place
          FROM catalogue_batch WHERE shelf_id = %(shelf)s
    ), slice AS MATERIALIZED (
        SELECT id, position FROM catalogue_vouchercode
         WHERE shelf_id = %(shelf)s AND order_id IS NULL AND hold_id IS NULL
           AND position > %(after)s
         ORDER BY position LIMIT %(most)s
    ), stock AS (
        SELECT count(*) AS codes, max(position) AS last,
               width_bucket(id, ARRAY(SELECT first_code FROM batches ORDER BY 1)) AS begun,
               width_bucket(id, ARRAY(SELECT last_code + 1 FROM batches ORDER BY 1)) AS ended
          FROM slice GROUP BY begun, ended
    )
    SELECT batches.id, codes, last
      FROM stock LEFT JOIN batches ON place = begun AND begun = ended + 1
"""
FORGET = "DELETE FROM figures_dailystock WHERE day = (now() AT TIME ZONE 'UTC')::date"
STORE = """
    INSERT INTO figures_dailystock (day, shelf_id, batch_id, codes)
    SELECT (now() AT TIME ZONE 'UTC')::date, * FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[])
"""


@transaction.atomic
def count_stock() -> int:
    """Counts the codes in stock today, in place of what was counted earlier today; returns how
    many. Does nothing while another run does."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_try_advisory_xact_lock({LOCK})")
        if not cursor.fetchone()[0]:
            return 0
        shelves = Shelf.objects.filter(available_stock__gt=0).values_list("pk", flat=True)
        rows = [(shelf, *one) for shelf in shelves for one in _count(shelf).items()]
        cursor.execute(FORGET)
        if rows:
            cursor.execute(STORE, [list(column) for column in zip(*rows, strict=True)])
    return sum(codes for _, _, codes in rows)


def _count(shelf: int) -> Counter[int | None]:
    """The codes in stock of a shelf by batch; None for codes without one."""
    counts = Counter[int | None]()
    for batch, codes in _slices(shelf):
        counts[batch] += codes
    return counts


def _slices(shelf: int) -> Iterator[tuple[int | None, int]]:
    last = -1
    with connection.cursor() as cursor:
        while True:
            cursor.execute(COUNT, {"shelf": shelf, "after": last, "most": SLICE})
            rows = cursor.fetchall()
            yield from ((batch, codes) for batch, codes, _ in rows)
            if sum(codes for _, codes, _ in rows) < SLICE:
                return
            last = max(position for *_, position in rows)
