"""A function of the database called by libpq itself, in one step.

A cursor of psycopg sends, waits and reads in Python, and Django's wraps each of these. A purchase
calls four functions, and that took a fifth of a web process's time. libpq does it all in one call
of C; what is left of psycopg is how values are written and read, in PostgreSQL's binary form.

Nothing is prepared by name: a pooler may hand the next transaction to another server process.
"""

from functools import cache
from typing import Any

from psycopg import Connection, OperationalError
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus, Format, TransactionStatus


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
    result = kept.pgconn.exec_params(
        _statement(function, len(arguments)), sent, values.types, values.formats, Format.BINARY
    )
    if result.status != ExecStatus.TUPLES_OK:
        if kept.pgconn.status == ConnStatus.BAD:
            raise OperationalError(result.get_error_message(), info=result)  # it names no SQLSTATE
        raise error_from_result(result)
    values.set_pgresult(result)
    names = [(result.fname(column) or b"").decode() for column in range(result.nfields)]
    return values.load_rows(0, result.ntuples, lambda row: dict(zip(names, row, strict=True)))


@cache
def _statement(function: str, arguments: int) -> bytes:
    places = ", ".join(f"${place}" for place in range(1, arguments + 1))
    return f"SELECT * FROM {function}({places})".encode()  # noqa: S608  names of ours
