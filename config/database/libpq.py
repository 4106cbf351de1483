"""A function of the database called by libpq itself, in one step.

A cursor of psycopg sends, waits and reads in Python, and Django's wraps each of these. A purchase
calls four functions, and that took a fifth of a web process's time. libpq does it all in one call
of C; what is left of psycopg is how values are written and read, in PostgreSQL's binary form.

A connection prepares each call when it first makes it, and PostgreSQL then neither parses nor plans
it again. Where that does not hold, because a pooler gives the next transaction to another server
process, or a migration changed what the function returns, the connection goes on without.
"""

import hashlib
from collections.abc import Sequence
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from psycopg import Connection, OperationalError
from psycopg.abc import Buffer
from psycopg.abc import Transformer as Values
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGresult

# How PostgreSQL refuses what was prepared: it is not there (26000), another was there already
# (42P05), it returns other columns by now (0A000). A call is a transaction, so nothing of it stays.
NOT_AS_PREPARED = {b"26000", b"42P05", b"0A000"}

# What a connection has prepared, by name; None where it prepares no more.
_prepared: WeakKeyDictionary[Connection[Any], set[bytes] | None] = WeakKeyDictionary()


def call_function(
    kept: Connection[Any], function: str, arguments: tuple[Any, ...]
) -> list[dict[str, Any]]:
    """The rows of `SELECT * FROM function(arguments)` by column name.

    Raises what a cursor of psycopg would. Not to be used from two threads at once.
    """
    if not kept.autocommit and kept.info.transaction_status == TransactionStatus.IDLE:
        kept.execute("SELECT")  # psycopg begins the transaction, before a statement of its own
    values = Transformer.from_context(kept)
    sent = values.dump_sequence(arguments, [PyFormat.AUTO] * len(arguments))
    statement = _statement(function, len(arguments))
    result = _run_prepared(kept, statement, sent, values)
    if result is None:
        result = kept.pgconn.exec_params(
            statement, sent, values.types, values.formats, Format.BINARY
        )
    if result.status != ExecStatus.TUPLES_OK:
        if kept.pgconn.status == ConnStatus.BAD:
            raise OperationalError(result.get_error_message(), info=result)  # it names no SQLSTATE
        raise error_from_result(result)
    values.set_pgresult(result)
    names = [(result.fname(column) or b"").decode() for column in range(result.nfields)]
    return values.load_rows(0, result.ntuples, lambda row: dict(zip(names, row, strict=True)))


def _run_prepared(
    kept: Connection[Any], statement: bytes, sent: Sequence[Buffer | None], values: Values
) -> PGresult | None:
    """None where nothing has run, and nothing is changed: the statement has to be sent in full."""
    known = _prepared.setdefault(kept, set())
    if known is None or kept.pgconn.transaction_status != TransactionStatus.IDLE:
        return None  # inside a transaction, to be refused would be the end of it
    name = _name(statement, values.types)
    result = None
    if name not in known:
        result = kept.pgconn.prepare(name, statement, values.types)
    if result is None or result.status == ExecStatus.COMMAND_OK:
        known.add(name)
        result = kept.pgconn.exec_prepared(
            name,
            sent,  # type: ignore[arg-type]  # psycopg's stubs forget that NULL is None
            values.formats,
            Format.BINARY,
        )
    if result.status == ExecStatus.TUPLES_OK:
        return result
    if result.error_field(DiagnosticField.SQLSTATE) in NOT_AS_PREPARED:
        _prepared[kept] = None
        return None
    return result


@cache
def _name(statement: bytes, types: tuple[int, ...]) -> bytes:
    """The same for the same statement in whatever process, and for no other: a server process may
    hold what was prepared by others behind the same pooler."""
    return hashlib.sha256(statement + repr(types).encode()).hexdigest()[:32].encode()


@cache
def _statement(function: str, arguments: int) -> bytes:
    places = ", ".join(f"${place}" for place in range(1, arguments + 1))
    return f"SELECT * FROM {function}({places})".encode()  # noqa: S608  names of ours
