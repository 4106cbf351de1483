"""`reseal`: re-encrypts all sealed values with the first key of CODE_ENCRYPTION_KEYS."""

from collections.abc import Iterator

from django.db import connection, transaction
from tqdm import tqdm

from config.backoffice import Sealed
from config.database import sealing
from operators.declarations import SEALED

BATCH = 1000


def reseal_all() -> dict[str, int]:
    """Re-encrypts the values that another key sealed; returns counts by kind.

    Each batch commits, so it can be stopped and run again, and a purchase waits for one batch at
    most. Raises sealing.CannotOpen if a key is missing; the batches before that stay committed.
    """
    return {sealed.kind: _reseal(sealed) for sealed in SEALED}


def _reseal(sealed: Sealed) -> int:
    total = 0
    with tqdm(desc=sealed.kind, unit=" rows") as progress:
        for done in _batches(sealed):
            progress.update(done)
            total += done
    return total


def _batches(sealed: Sealed) -> Iterator[int]:
    """Walks the primary key once; the key id is the first byte of a sealed value."""
    table, column, context = sealed.table, sealed.column, sealed.context
    last = 0
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            # No SKIP LOCKED, which would leave rows out: a batch and a purchase wait for each
            # other. A purchase locks its codes by position, which is the order of their ids within
            # a shelf. Both lock in the same order, so they cannot deadlock.
            cursor.execute(
                f"SELECT id, {column} FROM {table}"  # noqa: S608  names of ours
                f" WHERE id > %s AND {column} IS NOT NULL AND get_byte({column}, 0) <> %s"
                " ORDER BY id LIMIT %s FOR NO KEY UPDATE",
                [last, sealing.sealing_key_id(), BATCH],
            )
            rows = cursor.fetchall()
            if not rows:
                return
            cursor.execute(
                f"UPDATE {table} AS row SET {column} = new.sealed"  # noqa: S608  names of ours
                " FROM unnest(%s::bigint[], %s::bytea[]) AS new (id, sealed) WHERE row.id = new.id",
                [
                    [pk for pk, _ in rows],
                    [sealing.seal(sealing.open_sealed(old, context), context) for _, old in rows],
                ],
            )
            last = rows[-1][0]
        yield len(rows)
