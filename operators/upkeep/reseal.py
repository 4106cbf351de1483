"""`reseal`: re-encrypts all sealed values with the first key of CODE_ENCRYPTION_KEYS."""

from collections.abc import Iterator

from django.db import connection, transaction
from tqdm import tqdm

from catalogue.imports.code_import import wait_for_import
from core.backoffice.declarations import Sealed
from core.backoffice.registry import sealed_columns
from core.database import sealing
from core.database.functions import remove_statement_timeout
from core.database.key_ring import check_keys, forget_keys


def reseal_all() -> dict[str, int]:
    """Re-encrypts the values that another key sealed; returns counts by kind.

    First waits for a running import of codes, which may still seal with the old key. Each batch
    commits, so it can be stopped and run again, and a purchase waits for one batch at most. Raises
    sealing.CannotOpen if a key is missing or wrong; the batches before that stay committed.
    """
    check_keys()
    with transaction.atomic():
        wait_for_import()
    return {sealed.kind: _reseal(sealed) for sealed in sealed_columns()}


def retire_keys() -> list[int]:
    """Forgets the keys that no stored value needs; returns the ids of the keys still in use.

    Only the first key is in use after a `reseal`, unless a process still seals with another one.
    """
    in_use = {sealing.sealing_key_id()}
    with transaction.atomic(), connection.cursor() as cursor:
        wait_for_import()
        remove_statement_timeout()  # these read whole tables, and so does the trigger of the keys
        for sealed in sealed_columns():
            cursor.execute(
                f"SELECT DISTINCT get_byte({sealed.column}, 0) FROM {sealed.table}"  # noqa: S608  names of ours
                f" WHERE {sealed.column} IS NOT NULL"
            )
            in_use.update(key_id for (key_id,) in cursor)
        forget_keys(in_use=sorted(in_use))
    return sorted(in_use)


def _reseal(sealed: Sealed) -> int:
    total = 0
    with tqdm(desc=sealed.kind, unit=" rows") as progress:
        for done in _batches(sealed):
            progress.update(done)
            total += done
    return total


def _batches(sealed: Sealed) -> Iterator[int]:
    """Walks the primary key once; the key id is the first byte of a sealed value."""
    table, column, identity = sealed.table, sealed.column, ", ".join(sealed.identity)
    last = 0
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            remove_statement_timeout()  # a batch may be at a table's end
            # No SKIP LOCKED, which would leave rows out: a batch and a purchase wait for each
            # other. A purchase locks its codes by position, which is the order of their ids within
            # a shelf. Both lock in the same order, so they cannot deadlock.
            cursor.execute(
                f"SELECT id, {column}, {identity} FROM {table}"  # noqa: S608  names of ours
                f" WHERE id > %s AND {column} IS NOT NULL AND get_byte({column}, 0) <> %s"
                " ORDER BY id LIMIT %s FOR NO KEY UPDATE",
                [last, sealing.sealing_key_id(), sealed.at_once],
            )
            rows = cursor.fetchall()
            if not rows:
                return
            cursor.execute(
                f"UPDATE {table} AS row SET {column} = new.sealed"  # noqa: S608  names of ours
                " FROM unnest(%s::bigint[], %s::bytea[]) AS new (id, sealed) WHERE row.id = new.id",
                [
                    [pk for pk, *_ in rows],
                    [_seal_again(sealed, value, *named) for _, value, *named in rows],
                ],
            )
            last = rows[-1][0]
        yield len(rows)


def _seal_again(sealed: Sealed, value: bytes, *named: object) -> bytes:
    row = sealed.row(*named)
    return sealing.seal(sealing.open_sealed(value, sealed.context, row), sealed.context, row)
