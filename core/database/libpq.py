"""Calls SQL functions through libpq directly, without psycopg's and Django's cursors.

Psycopg's cursor sends, waits and reads in Python, and Django's cursor wraps each step. For the four
function calls of a purchase this took a fifth of a web process's time. libpq does all steps in one
C call. Psycopg only converts the values, in PostgreSQL's binary format.

A connection prepares each statement on first use, so PostgreSQL parses and plans it once. A
prepared statement becomes unusable when a pooler moves the connection to another server process, or
when a migration changes the columns of the function. The connection then stops preparing and sends
every statement in full.
"""

import hashlib
from collections.abc import Sequence
from functools import cache
from typing import Any

from psycopg import Connection, OperationalError
from psycopg.abc import Buffer
from psycopg.abc import Transformer as Values
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGresult

# SQLSTATEs of an unusable prepared statement: it does not exist (26000), the name already exists
# (42P05), or its result columns changed (0A000). The failed call was a transaction of its own and
# was rolled back, so the statement can be sent again in full.
PREPARED_IS_UNUSABLE = {b"26000", b"42P05", b"0A000"}


class CallState:
    """The state of a connection between its calls.

    values: converts values; it remembers how to convert each type.
    prepared: the names of the prepared statements; None when the connection stopped preparing.
    """

    def __init__(self, connection: Connection[Any]) -> None:
        # Made from the adapters alone: with the connection, the two would keep each other alive. It
        # then uses UTC and UTF-8, which Django sets for every connection.
        self.values: Values = Transformer.from_context(connection.adapters)
        self.prepared: set[bytes] | None = set()


def call_function(
    connection: Connection[Any], function: str, arguments: tuple[Any, ...]
) -> list[dict[str, Any]]:
    """The rows of `SELECT * FROM function(arguments)` by column name.

    Raises psycopg's errors. Not safe for two threads on one connection.
    """
    if not connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE:
        connection.execute("SELECT")  # psycopg begins the transaction before its own statement
    state = state_of(connection)
    values = state.values
    sent = values.dump_sequence(arguments, [PyFormat.AUTO] * len(arguments))
    statement = _statement(function, len(arguments))
    result = _run_prepared(connection, state, statement, sent)
    if result is None:
        result = connection.pgconn.exec_params(
            statement, sent, values.types, values.formats, Format.BINARY
        )
    if result.status != ExecStatus.TUPLES_OK:
        if connection.pgconn.status == ConnStatus.BAD:
            raise OperationalError(result.get_error_message(), info=result)  # without an SQLSTATE
        raise error_from_result(result)
    values.set_pgresult(result)
    names = [(result.fname(column) or b"").decode() for column in range(result.nfields)]
    rows = values.load_rows(0, result.ntuples, lambda row: dict(zip(names, row, strict=True)))
    values.set_pgresult(None)  # it may be large
    return rows


def state_of(connection: Connection[Any]) -> CallState:
    """The state of the connection, which ends with it."""
    of_connection = vars(connection)
    state: CallState | None = of_connection.get("libpq_state")
    if state is None:
        state = of_connection["libpq_state"] = CallState(connection)
    return state


def _run_prepared(
    connection: Connection[Any], state: CallState, statement: bytes, sent: Sequence[Buffer | None]
) -> PGresult | None:
    """The result of the prepared statement; None when nothing ran and it must be sent in full."""
    names, values = state.prepared, state.values
    if names is None or connection.pgconn.transaction_status != TransactionStatus.IDLE:
        return None  # an unusable prepared statement would abort an open transaction
    name = _name(statement, values.types)
    result = None
    if name not in names:
        result = connection.pgconn.prepare(name, statement, values.types)
    if result is None or result.status == ExecStatus.COMMAND_OK:
        names.add(name)
        result = connection.pgconn.exec_prepared(
            name,
            sent,  # type: ignore[arg-type]  # psycopg's stubs omit None, which is NULL
            values.formats,
            Format.BINARY,
        )
    if result.status == ExecStatus.TUPLES_OK:
        return result
    if result.error_field(DiagnosticField.SQLSTATE) in PREPARED_IS_UNUSABLE:
        state.prepared = None
        return None
    return result


@cache
def _name(statement: bytes, types: tuple[int, ...]) -> bytes:
    """The name of the prepared statement: a digest, equal for equal statements in every process.

    Behind a pooler, a server process may hold statements that other processes prepared.
    """
    return hashlib.sha256(statement + repr(types).encode()).hexdigest()[:32].encode()


@cache
def _statement(function: str, arguments: int) -> bytes:
    places = ", ".join(f"${place}" for place in range(1, arguments + 1))
    return f"SELECT * FROM {function}({places})".encode()  # noqa: S608  constant names only
