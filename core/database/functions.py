"""Calls the service's SQL functions, translates their refusals, and sets up transactions.

A function refuses by raising SQLSTATE VT001 with one stable word as its message, which rolls back
its transaction. The caller of the function translates the word into an exception.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    Error,
    InterfaceError,
    OperationalError,
    connection,
    connections,
    transaction,
)
from django.db.backends.base.base import BaseDatabaseWrapper

from core.database.libpq import call_function
from core.telemetry.metrics import DATABASE_SECONDS

REFUSED = "VT001"
CANCELED = "57014"
DEADLOCK = "40P01"
READ_ONLY = "25006"


@contextmanager
def refusals(to_error: Callable[[str], Exception]) -> Iterator[None]:
    """Raises `to_error(word)` when an SQL function refuses with `word` inside the block."""
    try:
        yield
    except DatabaseError as error:
        word = refusal_word(error)
        if word is None:
            raise
        raise to_error(word) from None


def call(function: str, *arguments: Any) -> dict[str, Any]:
    """Runs one SQL function in a transaction of its own and returns its row by column name.

    The function sets `synchronous_commit` for its transaction, so the transaction must contain
    nothing else: raises RuntimeError inside an open transaction and when autocommit is off. Raises
    Django's database errors.

    A server that became read-only in a failover refuses the call. PostgreSQL ends one of two
    transactions that wait for each other, such as a purchase and a migration. Both change nothing,
    so the call is repeated on a new connection.
    """
    database = connections[DEFAULT_DB_ALIAS]
    blocks = database.atomic_blocks
    inside = any(not getattr(block, "_from_testcase", False) for block in blocks)
    if inside or not (blocks or database.get_autocommit()):
        raise RuntimeError(f"{function} must be a transaction of its own")
    try:
        return _rows(database, function, arguments)[0]
    except DatabaseError as error:
        if blocks or _sqlstate(error) not in (READ_ONLY, DEADLOCK):
            raise
        database.close()
        return _rows(database, function, arguments)[0]


def query(function: str, *arguments: Any) -> list[dict[str, Any]]:
    """Runs one SQL function that only reads and returns its rows by column name.

    Django spends a round trip on checking a connection that an earlier request left open. This
    function skips the check: it repeats the read on a new connection when the old one was lost.
    Raises Django's database errors.
    """
    database = connections[DEFAULT_DB_ALIAS]
    reused = database.connection is not None and not database.in_atomic_block
    if reused:
        database.health_check_done = True  # type: ignore[attr-defined]  # not in the stubs
    try:
        return _rows(database, function, arguments)
    except (OperationalError, InterfaceError):
        if not reused or database.is_usable():
            raise
        database.close()
        return _rows(database, function, arguments)


def _rows(
    database: BaseDatabaseWrapper, function: str, arguments: tuple[Any, ...]
) -> list[dict[str, Any]]:
    """Calls the function; does what a Django cursor does around a statement, as far as needed."""
    database.validate_no_broken_transaction()
    if database.connection is None or not database.health_check_done:  # type: ignore[attr-defined]
        database.close_if_health_check_failed()
        database.ensure_connection()
    if database.queries_logged:  # tests count queries
        database.queries_log.append({"sql": f"{function}(…)", "time": ""})
    since = time.perf_counter()
    try:
        with database.wrap_database_errors:
            return call_function(database.connection, function, arguments)
    finally:
        DATABASE_SECONDS.add(time.perf_counter() - since, function)


class StatementTimeout(Exception):
    """A statement ran longer than `statement_timeout` allows."""


@contextmanager
def statement_timeout(seconds: int) -> Iterator[None]:
    """A transaction in which each statement may take this long. Raises StatementTimeout."""
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('statement_timeout', %s, true)", [f"{seconds}s"])
            yield
    except OperationalError as error:
        if _sqlstate(error) != CANCELED:
            raise
        raise StatementTimeout from None


def remove_statement_timeout() -> None:
    """Lets the statements of the open transaction take as long as they need."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")


@contextmanager
def snapshot() -> Iterator[None]:
    """A transaction that reads one state of the database, however long that takes. Writes fail."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        remove_statement_timeout()
        yield


def database_now() -> datetime:
    """The present time at the database, in UTC.

    Compare times of rows with this clock: the clock of a host may be wrong.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now


def name_actor(actor: str) -> None:
    """Tells triggers who acts in this transaction, such as `admin:anna` or `shell:anna`.

    The caller writes the audit entries of the prices that the transaction changes. Without a name,
    the triggers of the price histories write them.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('voucher.actor', %s, true)", [actor])


def name_asker(name: str) -> None:
    """Tells the triggers of the price histories who asked for the low prices that this transaction
    sets; nobody if `name` is empty."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('voucher.asked_by', %s, true)", [name])


def refusal_word(error: DatabaseError) -> str | None:
    """The word that an SQL function refused with; None for any other error."""
    if _sqlstate(error) != REFUSED:
        return None
    word: str = error.__cause__.diag.message_primary  # type: ignore[union-attr]
    return word


def refusal_detail(error: DatabaseError) -> str | None:
    """The detail that an SQL function added to its word of refusal; None for any other error."""
    if _sqlstate(error) != REFUSED:
        return None
    detail: str | None = error.__cause__.diag.message_detail  # type: ignore[union-attr]
    return detail


def is_unavailable(error: Error) -> bool:
    """Whether the server could not be reached, was lost during the statement, or is read-only."""
    if _sqlstate(error) == READ_ONLY:
        return True
    return isinstance(error, OperationalError | InterfaceError) and _sqlstate(error) is None


def _sqlstate(error: Error) -> str | None:
    """PostgreSQL's code of the error; None when the error is not from the server."""
    return getattr(error.__cause__, "sqlstate", None)
