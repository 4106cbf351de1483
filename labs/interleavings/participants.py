"""Participants of a schedule: threads that stop before every call to the database.

A call leaves a process at three places: `call_function` (SQL functions, through libpq), Django's
cursors, and commit or rollback. `gates` puts a gate at each of them. A participant waits at its
gate until the scheduler lets it make exactly this call. Inside an instrumented SQL function, it
waits at the pauses of `labs/interleavings/pauses.py`.
"""

import re
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from typing import Any, cast

import psycopg
import pytest
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import TransactionStatus

from core.database import functions
from core.database.libpq import call_function
from labs.interleavings.pauses import NOTICE
from topups.fulfilment import refunds

PATIENCE = 30.0  # seconds; only a broken harness waits as long
# Calls that read only what no participant changes. Where they run among other calls makes no
# difference, so the scheduler does not choose it.
PRIVATE_CALLS = {"accounts_find_key", "topups_fields_of"}
# The tables that participants change. A plain SELECT of other tables is private too, and so is a
# statement that concerns only its own session.
CONTESTED = (
    "idempotency_idempotencyrecord",
    "orders_order",
    "orders_clientcounter",
    "wallets_wallet",
    "wallets_ledgerentry",
    "catalogue_shelf",
    "catalogue_vouchercode",
    "topups_topupproduct",
    "topups_fulfilment",
    "topups_fulfilmentevent",
)
# A participant waits as long as the scheduler likes.
SESSION = """
    SELECT set_config('schedule.participant', %s, false), set_config('lock_timeout', '0', false),
           set_config('statement_timeout', '0', false),
           set_config('idle_in_transaction_session_timeout', '0', false)
"""
_OWN_SESSION = re.compile(r"(SAVEPOINT|RELEASE SAVEPOINT|SELECT set_config)\b")
_NAMES = re.compile(r"\w+")


class Crashed(BaseException):
    """Ends the thread of a participant whose process is dead. No handler of errors catches it."""


class State(Enum):
    RUNNING = auto()  # until its next call; or its call runs
    READY = auto()  # before a call
    BLOCKED = auto()  # its call waits for a lock of another participant
    ENDED = auto()


_here = threading.local()


class Participant:
    """A thread with its own database connection, which runs one task in each schedule."""

    def __init__(self, number: int, changed: threading.Condition) -> None:
        self.number = number
        self.state = State.ENDED
        self.label = ""  # what it will do next
        self.result: Any = None  # what its task returned, or its exception
        self.pid = 0  # of its server process
        self.crash = False  # its process dies right after the call
        self.dead = False
        self.disconnected = False  # its connection was closed; PostgreSQL may not know it yet
        self.needs_no_choice: Callable[[str], bool] = is_private  # whether a call passes the gate
        self.paused: int | None = None  # the step of the SQL pause at which it waits
        self._changed = changed
        self._granted = threading.Event()
        self._task: Callable[[], Any] | None = None
        self._wanted = threading.Event()
        self._thread = threading.Thread(target=self._live, name=f"participant {number}")
        self._thread.start()

    def start(self, task: Callable[[], Any], needs_no_choice: Callable[[str], bool]) -> None:
        self.state, self.label, self.result = State.RUNNING, "", None
        self.crash = self.dead = False
        self.needs_no_choice = needs_no_choice
        self._task = task
        self._wanted.set()

    def grant(self) -> None:
        """Lets it make the call at whose gate it waits."""
        self._granted.set()

    def stop(self) -> None:
        self._task = None
        self._wanted.set()
        self._thread.join(PATIENCE)

    def at_gate(self, label: str, call: Callable[[], Any]) -> Any:
        """Waits for the scheduler, then makes the call."""
        if self.dead:
            raise Crashed
        if not self.needs_no_choice(label):
            self._change(State.READY, label)
            if not self._granted.wait(PATIENCE):
                raise Crashed
            self._granted.clear()
        try:
            return call()
        finally:
            if self.crash:
                self._die()

    def heard(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        """Receives a pause of an SQL function. The server waits for its lock."""
        text = diagnostic.message_primary or ""
        if text.startswith(NOTICE):
            step, _, place = text.removeprefix(f"{NOTICE} ").partition(" ")
            self.paused = int(step)
            self._change(State.READY, place)

    def _die(self) -> None:
        """Ends the process. Between transactions it leaves nothing in PostgreSQL, so only an open
        transaction needs a closed connection. The next schedule can use an idle one again."""
        self.dead = True
        raw = connection.connection
        if raw is not None and raw.info.transaction_status != TransactionStatus.IDLE:
            raw.close()
        raise Crashed

    def _change(self, state: State, label: str = "") -> None:
        with self._changed:
            self.state, self.label = state, label
            self._changed.notify_all()

    def _live(self) -> None:
        _here.participant = None
        connection.execute_wrappers.append(_gated_statement)
        while True:
            self._wanted.wait()
            self._wanted.clear()
            task = self._task
            if task is None:
                connection.close()
                return
            self._connect()
            _here.participant = self
            try:
                self.result = task()
            except Crashed:
                self.result = "crashed"
            except Exception as error:  # the scheduler's checks judge it
                self.result = error
            finally:
                _here.participant = None
            if self.dead:
                self.result = "crashed"
            if connection.connection is not None and connection.connection.closed:
                connection.connection = None
                self.disconnected = True
            self._change(State.ENDED)

    def _connect(self) -> None:
        if connection.connection is not None:
            return
        connection.ensure_connection()
        raw = cast("psycopg.Connection[Any]", connection.connection)
        self.pid = raw.info.backend_pid
        raw.execute(SESSION, [str(self.number)])
        raw.add_notice_handler(self.heard)


def is_private(label: str, own: Collection[str] = ()) -> bool:
    """Whether the call commutes with every call of every other participant.

    `own` are tables of which each participant touches other rows than the others.
    """
    if label in PRIVATE_CALLS or _OWN_SESSION.match(label):
        return True
    if not label.startswith(("SELECT ", "INSERT ", "UPDATE ")):
        return False
    contested = set(_NAMES.findall(label)) & set(CONTESTED)
    if not contested:
        return label.startswith("SELECT ") and " FOR " not in label
    return contested <= set(own)


@contextmanager
def gates() -> Iterator[None]:
    """Puts a gate where calls to the database leave a participant. Other threads pass freely."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(functions, "call_function", _gated_function)
        patch.setattr(refunds, "LOCK_TIMEOUT", "0")
        for name, label in (("_commit", "COMMIT"), ("_rollback", "ROLLBACK")):
            original = getattr(BaseDatabaseWrapper, name)
            patch.setattr(BaseDatabaseWrapper, name, _gated(original, label))
        yield


def _participant() -> Participant | None:
    return getattr(_here, "participant", None)


def _gated_function(raw: Any, function: str, arguments: tuple[Any, ...]) -> Any:
    participant = _participant()
    if participant is None:
        return call_function(raw, function, arguments)
    return participant.at_gate(function, lambda: call_function(raw, function, arguments))


def _gated_statement(execute: Callable[..., Any], sql: Any, *rest: Any) -> Any:
    participant = _participant()
    if participant is None:
        return execute(sql, *rest)
    return participant.at_gate(str(sql), lambda: execute(sql, *rest))


def _gated(original: Callable[..., Any], label: str) -> Callable[..., Any]:
    def call(database: BaseDatabaseWrapper) -> Any:
        participant = _participant()
        if participant is None:
            return original(database)
        return participant.at_gate(label, lambda: original(database))

    return call
