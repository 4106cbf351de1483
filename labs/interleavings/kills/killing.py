"""Kills one process, or PostgreSQL, at each database call of an operation in turn.

`Operation` says how to begin on fresh data, what the killed process does, and how the documented
rules finish it. `kill_everywhere` runs the operation once to count its calls, and then once for
each kill: of the process or of PostgreSQL, before or after call 1, 2, 3 …
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from django.db import Error, connection

from embedded.environment import PROJECT
from embedded.processes import Process
from labs.installation.postgres import DurablePostgres
from labs.interleavings.kills.proxy import Proxy, When
from tests.concurrency.books import findings
from tests.live import database_url

PATIENCE = 60.0  # seconds, for a server that recovers


class Victim(StrEnum):
    PROCESS = "the process"
    SERVER = "PostgreSQL"


@dataclass(frozen=True)
class Operation:
    """An operation to kill, and its end.

    begin: makes fresh data; returns the order for the zygote, and what `finish` needs.
    finish: follows the documented rules after the kill; returns what is wrong then.
    """

    name: str
    begin: Callable[[], tuple[dict[str, Any], Any]]
    finish: Callable[[Any, Any], list[str]]
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass
class Killed:
    """The counts of a run of kills. `calls` are those of the operation when nobody is killed."""

    calls: int
    kills: Counter[Victim] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


class Zygote:
    """The process that forks the victims (labs/interleavings/kills/zygote.py)."""

    def __init__(self) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  closed in `stop`
        self._process = Process(
            "zygote",
            [sys.executable, "-m", "labs.interleavings.kills.zygote"],
            stdin=subprocess.PIPE,
            output=subprocess.PIPE,
            errors=self._log,
            environment={**os.environ, "DATABASE_URL": database_url()},
            folder=PROJECT,
        )

    def begin(self, order: dict[str, Any]) -> int:
        """Starts a process; returns its id."""
        assert self._process.popen.stdin is not None
        self._process.popen.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.popen.stdin.flush()
        return int(self._read()["pid"])

    def end(self) -> Any:
        """Waits for the process; returns its result, None if it was killed or failed."""
        return self._read()["result"]

    def stop(self) -> None:
        self._process.stop()
        for pipe in (self._process.popen.stdin, self._process.popen.stdout):
            with suppress(OSError):
                assert pipe is not None
                pipe.close()
        self._log.close()

    def errors(self) -> str:
        """The last lines of stderr of the processes."""
        self._log.seek(0)
        return self._log.read()[-2000:].decode(errors="replace")

    def _read(self) -> Any:
        assert self._process.popen.stdout is not None
        line = self._process.popen.stdout.readline()
        assert line, "the zygote has ended"
        return json.loads(line)


@contextmanager
def running_zygote(durable: DurablePostgres) -> Iterator[Zygote]:
    """A zygote for the database that Django uses now. Main thread only."""
    assert urlsplit(durable.url).port == int(connection.settings_dict["PORT"])
    zygote = Zygote()
    try:
        yield zygote
    finally:
        zygote.stop()


def kill_everywhere(
    zygote: Zygote,
    operation: Operation,
    *,
    chosen: Callable[[Victim, When, int], bool] = lambda victim, when, call: True,
) -> Killed:
    """Kills each victim before and after each call of the operation for which `chosen` is true. A
    run without a kill comes first and counts the calls."""
    _, calls, wrong = kill_once(zygote, operation, Victim.PROCESS, When.BEFORE, 0)
    assert calls, f"{operation.name} makes no call: {zygote.errors()}"
    counted = Killed(calls, failures=[f"{operation.name}, nobody killed: {one}" for one in wrong])
    for victim, when, call in itertools.product(Victim, When, range(1, calls + 1)):
        if not chosen(victim, when, call):
            continue
        killed, _, wrong = kill_once(zygote, operation, victim, when, call)
        counted.kills[victim] += killed
        if not killed:
            wrong.append("the call was not made")
        where = f"{operation.name}: {victim} {when} call {call} of {calls}"
        counted.failures += [f"{where}: {problem}" for problem in wrong]
    return counted


def kill_once(
    zygote: Zygote, operation: Operation, victim: Victim, when: When, call: int
) -> tuple[bool, int, list[str]]:
    """Kills at one call, finishes by the rules; returns whether it was killed, how many calls were
    made, and what is wrong."""
    order, needed = operation.begin()
    at = urlsplit(database_url())
    connection.close()
    proxy = Proxy((str(at.hostname), at.port or 0), call=call, when=when)
    try:
        pid = zygote.begin({**order, "port": proxy.port, "settings": operation.settings})
        proxy.act = lambda: _kill(pid if victim is Victim.PROCESS else proxy.backend)
        proxy.start()  # now that it knows whom to kill
        result = zygote.end()
    finally:
        proxy.close()
    wait_for_database()
    wrong = operation.finish(needed, result)
    wrong += [f"{problem}: {rows}" for problem, rows in findings().items()]
    return proxy.acted, proxy.calls, wrong


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def wait_for_database() -> None:
    """Waits until PostgreSQL accepts connections and has ended the sessions of the dead."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                    " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
                )
                if cursor.fetchone() == (0,):
                    return
        except Error:
            connection.close()
        assert time.monotonic() < deadline, "PostgreSQL does not come back"
        time.sleep(0.01)
