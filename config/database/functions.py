"""Calling the service's own SQL functions, and reading their refusals.

A function refuses by raising SQLSTATE VT001 with one stable word as its message; its transaction
is gone with it. The word is named in the contract's terms by whoever called.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    InterfaceError,
    OperationalError,
    connection,
    connections,
    transaction,
)
from django.db.backends.base.base import BaseDatabaseWrapper

from config.api.errors import ApiError
from config.database.libpq import call_function

REFUSED = "VT001"
CANCELED = "57014"


@contextmanager
def refusals(name: Callable[[str], ApiError]) -> Iterator[None]:
    """Turns a refusal raised by the database inside the block into the ApiError that names it."""
    try:
        yield
    except DatabaseError as error:
        word = refusal_word(error)
        if word is None:
            raise
        raise name(word) from None


def call(function: str, *arguments: Any) -> dict[str, Any]:
    """Runs one SQL function as one transaction of its own and returns its row by column name.

    Raises RuntimeError inside an open transaction, or where autocommit is off: these functions
    decide for themselves how durable their commit is, and that must never be decided for somebody
    else's.
    """
    database = connections[DEFAULT_DB_ALIAS]
    blocks = database.atomic_blocks
    inside = any(not getattr(block, "_from_testcase", False) for block in blocks)
    if inside or not (blocks or database.get_autocommit()):
        raise RuntimeError(f"{function} must be a transaction of its own")
    return _rows(database, function, arguments)[0]


def ask(function: str, *arguments: Any) -> list[dict[str, Any]]:
    """Runs one SQL function that only reads and returns its rows by column name.

    Django spends a round trip on finding out whether a connection kept from an earlier request
    still lives. What only reads can find that out by itself, and be asked again.
    """
    database = connections[DEFAULT_DB_ALIAS]
    kept = database.connection is not None and not database.in_atomic_block
    if kept:
        database.health_check_done = True  # type: ignore[attr-defined]  # not in the stubs
    try:
        return _rows(database, function, arguments)
    except (OperationalError, InterfaceError):
        if not kept or database.is_usable():
            raise
        database.close()
        return _rows(database, function, arguments)


def _rows(
    database: BaseDatabaseWrapper, function: str, arguments: tuple[Any, ...]
) -> list[dict[str, Any]]:
    """What Django's cursors do around a statement, less what a live connection makes needless."""
    database.validate_no_broken_transaction()
    if database.connection is None or not database.health_check_done:  # type: ignore[attr-defined]
        database.close_if_health_check_failed()
        database.ensure_connection()
    if database.queries_logged:  # where queries are counted, these count too
        database.queries_log.append({"sql": f"{function}(…)", "time": ""})
    with database.wrap_database_errors:
        return call_function(database.connection, function, arguments)


class TookTooLong(Exception):
    """The database was asked for more than somebody can wait for."""


@contextmanager
def patience(seconds: int) -> Iterator[None]:
    """One transaction whose statements may take this long each. Raises TookTooLong."""
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('statement_timeout', %s, true)", [f"{seconds}s"])
            yield
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) != CANCELED:
            raise
        raise TookTooLong from None


def name_actor(actor: str) -> None:
    """Tells triggers who acts until this transaction ends: `admin:anna`, `command:…`."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('voucher.actor', %s, true)", [actor])


def refusal_word(error: DatabaseError) -> str | None:
    """The word a function refused with; None for any other failure."""
    cause = error.__cause__
    if getattr(cause, "sqlstate", None) != REFUSED:
        return None
    word: str = cause.diag.message_primary  # type: ignore[union-attr]
    return word
