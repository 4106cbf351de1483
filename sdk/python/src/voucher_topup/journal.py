"""The journal: it stores purchases before they are sent, so a crash loses none.

A journal keeps no code: `Bought` of an earlier purchase is read from the service again.
"""

import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Callable, Literal, Optional, Protocol, Union

from voucher_topup.wire import Failure

EntryState = Literal["open", "bought", "refused"]


@dataclass(frozen=True)
class Entry:
    """A purchase in the journal. `opened_at`, and `sent_at` of its last attempt, are Unix times."""

    order_number: str
    key: str
    body: bytes = field(repr=False)
    opened_at: float
    state: EntryState = "open"
    reference: Optional[str] = None
    total: Optional[str] = None
    error: Optional[Failure] = None
    sent_at: Optional[float] = None


class OrderNumberTaken(Exception):
    """The order number belongs to a purchase with other content. Nothing was sent."""


class NotInJournal(Exception):
    """The journal has no such purchase, or the transaction that wrote it is not committed."""


class Journal(Protocol):
    """The interface of a journal. Each method is one durable transaction.

    `order_number` and `key` are unique. A purchase that was bought stays bought. A journal belongs
    to one API client: with the key of another, the service would buy again.
    """

    def write(self, entry: Entry) -> Entry:
        """Stores the entry. If the order number exists, returns the stored entry instead."""
        ...

    def find(self, order_number: str) -> Optional[Entry]: ...

    def open_entries(self) -> Sequence[Entry]:
        """All open purchases, the oldest first."""
        ...

    def bought_entries(self) -> Sequence[Entry]:
        """All purchases that were bought."""
        ...

    def begin_attempt(self, order_number: str, before: Optional[float], sent_at: float) -> bool:
        """Stores the time of an attempt. Returns False, and does nothing, if the purchase is not
        open, or if its last attempt was not at `before`."""
        ...

    def settle_bought(self, order_number: str, reference: str, total: str) -> None:
        """Makes an open or refused purchase bought."""
        ...

    def settle_refused(self, order_number: str, sent_at: float, error: Failure) -> None:
        """Makes an open purchase refused, unless there was an attempt after `sent_at`."""
        ...

    def reopen(self, order_number: str, opened_after: float) -> None:
        """Makes a refused purchase open again, with the same key and bytes, as if it had not been
        sent. Does nothing if it was written before `opened_after`."""
        ...


class MemoryJournal:
    """A journal that a crash loses, with every purchase in it. For experiments only."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._lock = threading.Lock()

    def write(self, entry: Entry) -> Entry:
        with self._lock:
            return self._entries.setdefault(entry.order_number, entry)

    def find(self, order_number: str) -> Optional[Entry]:
        with self._lock:
            return self._entries.get(order_number)

    def open_entries(self) -> Sequence[Entry]:
        return self._with_state("open")

    def bought_entries(self) -> Sequence[Entry]:
        return self._with_state("bought")

    def begin_attempt(self, order_number: str, before: Optional[float], sent_at: float) -> bool:
        return self._change(
            order_number,
            lambda entry: entry.state == "open" and entry.sent_at == before,
            sent_at=sent_at,
        )

    def settle_bought(self, order_number: str, reference: str, total: str) -> None:
        self._change(
            order_number,
            lambda entry: entry.state != "bought",
            state="bought",
            reference=reference,
            total=total,
            error=None,
        )

    def settle_refused(self, order_number: str, sent_at: float, error: Failure) -> None:
        self._change(
            order_number,
            lambda entry: entry.state == "open" and entry.sent_at == sent_at,
            state="refused",
            error=error,
        )

    def reopen(self, order_number: str, opened_after: float) -> None:
        self._change(
            order_number,
            lambda entry: entry.state == "refused" and entry.opened_at > opened_after,
            state="open",
            error=None,
            sent_at=None,
        )

    def _with_state(self, state: str) -> list[Entry]:
        with self._lock:
            return [entry for entry in self._entries.values() if entry.state == state]

    def _change(
        self, order_number: str, condition: Callable[[Entry], bool], **changes: Any
    ) -> bool:
        with self._lock:
            entry = self._entries.get(order_number)
            if entry is None or not condition(entry):
                return False
            self._entries[order_number] = replace(entry, **changes)
            return True


TABLE = """
CREATE TABLE IF NOT EXISTS voucher_purchases (
    order_number text PRIMARY KEY,
    idempotency_key text NOT NULL UNIQUE,
    body {bytes} NOT NULL,
    opened_at double precision NOT NULL,
    sent_at double precision,
    state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'bought', 'refused')),
    reference text UNIQUE,
    total text,
    error text,
    CHECK ((state = 'bought') = (reference IS NOT NULL)),
    CHECK ((state = 'refused') = (error IS NOT NULL))
)
"""
OPEN_INDEX = """
CREATE INDEX IF NOT EXISTS voucher_purchases_open ON voucher_purchases (opened_at)
WHERE state = 'open'
"""
COLUMNS = "order_number, idempotency_key, body, opened_at, state, reference, total, error, sent_at"
INSERT = """
INSERT INTO voucher_purchases (order_number, idempotency_key, body, opened_at)
VALUES (?, ?, ?, ?) ON CONFLICT (order_number) DO NOTHING
"""
ATTEMPT = """
UPDATE voucher_purchases SET sent_at = ?
WHERE order_number = ? AND state = 'open' AND COALESCE(sent_at, 0) = ?
"""
BOUGHT = """
UPDATE voucher_purchases SET state = 'bought', reference = ?, total = ?, error = NULL
WHERE order_number = ? AND state IN ('open', 'refused')
"""
REFUSED = """
UPDATE voucher_purchases SET state = 'refused', error = ?
WHERE order_number = ? AND state = 'open' AND sent_at = ?
"""
REOPENED = """
UPDATE voucher_purchases SET state = 'open', error = NULL, sent_at = NULL
WHERE order_number = ? AND state = 'refused' AND opened_at > ?
"""


class Cursor(Protocol):
    """The methods that the journal uses of a cursor of sqlite3 or psycopg."""

    @property
    def rowcount(self) -> int: ...

    def execute(self, statement: str, values: Any) -> object: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> Sequence[Any]: ...


class Connection(Protocol):
    """The methods that the journal uses of a connection of psycopg 3 or 2."""

    def cursor(self) -> Cursor: ...

    def commit(self) -> None: ...

    def close(self) -> None: ...


Execute = Callable[[str, Sequence[object]], Cursor]


class _SQLJournal:
    """The statements that SQLite and PostgreSQL share."""

    def _transaction(self) -> AbstractContextManager[Execute]:
        """A context with a function that executes a statement; commits at the end."""
        raise NotImplementedError

    def write(self, entry: Entry) -> Entry:
        with self._transaction() as execute:
            execute(INSERT, (entry.order_number, entry.key, entry.body, entry.opened_at))
            stored = self._find(execute, entry.order_number)
        if stored is None:
            raise NotInJournal(entry.order_number)
        return stored

    def find(self, order_number: str) -> Optional[Entry]:
        with self._transaction() as execute:
            return self._find(execute, order_number)

    def open_entries(self) -> Sequence[Entry]:
        return self._select("state = 'open'")

    def bought_entries(self) -> Sequence[Entry]:
        return self._select("state = 'bought'")

    def begin_attempt(self, order_number: str, before: Optional[float], sent_at: float) -> bool:
        with self._transaction() as execute:
            return bool(execute(ATTEMPT, (sent_at, order_number, before or 0.0)).rowcount)

    def settle_bought(self, order_number: str, reference: str, total: str) -> None:
        with self._transaction() as execute:
            execute(BOUGHT, (reference, total, order_number))

    def settle_refused(self, order_number: str, sent_at: float, error: Failure) -> None:
        with self._transaction() as execute:
            execute(REFUSED, (json.dumps(error.as_json()), order_number, sent_at))

    def reopen(self, order_number: str, opened_after: float) -> None:
        with self._transaction() as execute:
            execute(REOPENED, (order_number, opened_after))

    def _find(self, execute: Execute, order_number: str) -> Optional[Entry]:
        query = f"SELECT {COLUMNS} FROM voucher_purchases WHERE order_number = ?"  # noqa: S608
        row = execute(query, (order_number,)).fetchone()
        return row and _entry(row)

    def _select(self, condition: str) -> Sequence[Entry]:
        query = f"SELECT {COLUMNS} FROM voucher_purchases WHERE {condition} ORDER BY opened_at"  # noqa: S608
        with self._transaction() as execute:
            return [_entry(row) for row in execute(query, ()).fetchall()]


class SQLiteJournal(_SQLJournal):
    """A journal in a file on a local disk. Threads and processes may share the file."""

    def __init__(self, path: Union[str, "PathLike[str]"]) -> None:
        self._connection = sqlite3.connect(
            path, timeout=30, isolation_level=None, check_same_thread=False
        )
        self._lock = threading.Lock()
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        with self._transaction() as execute:
            execute(TABLE.format(bytes="blob"), ())
            execute(OPEN_INDEX, ())

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[Execute]:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection.execute
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")


class PostgresJournal(_SQLJournal):
    """A journal in the shop's PostgreSQL database, through psycopg 3 or 2.

    `connect` opens a connection; the journal commits and closes it. `within` writes a purchase in
    the transaction of the shop.
    """

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect

    def create_table(self) -> None:
        """Creates the table unless it exists. Call it once, or in a migration."""
        with self._transaction() as execute:
            execute(TABLE.format(bytes="bytea"), ())
            execute(OPEN_INDEX, ())

    def within(self, connection: Connection) -> "Journal":
        """A journal for `prepare` that uses this connection, and commits nothing."""
        return _WithinTransaction(connection)

    @contextmanager
    def _transaction(self) -> Iterator[Execute]:
        connection = self._connect()
        try:
            yield _executor(connection)
            connection.commit()
        finally:
            connection.close()


class _WithinTransaction(_SQLJournal):
    def __init__(self, connection: Connection) -> None:
        self._shop = connection

    @contextmanager
    def _transaction(self) -> Iterator[Execute]:
        yield _executor(self._shop)


def _executor(connection: Connection) -> Execute:
    def execute(statement: str, values: Sequence[object]) -> Cursor:
        cursor = connection.cursor()
        cursor.execute(statement.replace("?", "%s"), values)
        return cursor

    return execute


def _entry(row: Sequence[Any]) -> Entry:
    number, key, body, opened_at, state, reference, total, error, sent_at = row
    return Entry(
        number,
        key,
        bytes(body),
        float(opened_at),
        state,
        reference,
        total,
        Failure.from_json(json.loads(error)) if error else None,
        None if sent_at is None else float(sent_at),
    )


def new_entry(order_number: str, key: str, body: bytes) -> Entry:
    return Entry(order_number, key, body, opened_at=time.time())
