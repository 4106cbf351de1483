"""Runs tests in a forked copy of the test session, on a database of its own.

A fork costs milliseconds where a new test process would need seconds to import the service, collect
the tests and migrate a database.
"""

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from django.conf import settings
from django.core.cache import cache
from django.db import connection, connections

from tests.database import connect, grant_on_copy

COPY = "mutant"
# A test without an answer for this long waits for a lock that nobody releases.
PATIENCE = 120.0
TEARDOWN = 10.0


@dataclass(frozen=True)
class Ran:
    """The result of a fork: the id of the first test that failed or hung, or '' if all passed."""

    failed: str
    error: str = ""  # why the tests could not run at all


class Copy:
    """A copy of the test database. Tests roll back or flush, so the next run can use it again."""

    def __init__(self) -> None:
        self._is_there = False

    @contextmanager
    def changed(self, statements: str, undo: str) -> Iterator[None]:
        """The copy, in which these statements were run. Raises psycopg.Error if they fail.

        `undo` reverts them. Without it, or after `spoil`, the next run gets a new copy.
        """
        connections.close_all()
        if not self._is_there:
            original = connection.settings_dict["NAME"]
            with connect("postgres", autocommit=True) as server:
                server.execute(f'DROP DATABASE IF EXISTS "{COPY}" WITH (FORCE)')
                server.execute(f'CREATE DATABASE "{COPY}" TEMPLATE "{original}"')
            grant_on_copy(COPY)
        self._is_there = False
        self._run(statements)
        self._is_there = bool(undo or not statements)
        yield
        if self._is_there:
            self._run(undo)

    def spoil(self) -> None:
        """Tests were killed, and may have left rows and connections behind."""
        self._is_there = False

    def _run(self, statements: str) -> None:
        with connect(COPY) as database:
            database.execute(statements)


def run_forked(
    items: Sequence[pytest.Item],
    copy: Copy,
    *,
    statements: str = "",
    undo: str = "",
    mutate: Callable[[], None] | None = None,
) -> Ran:
    """Runs the tests up to the first failure, in a fork, after `mutate`, on the changed copy."""
    sys.stdout.flush()
    cache.clear()  # every fork counts from 0 and uses the same names
    with copy.changed(statements, undo):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _run(items, mutate, writing)
        os.close(writing)
        with os.fdopen(reading, "rb") as said:
            ran = _listen(said.fileno())
        if not _ended(child):
            copy.spoil()
        return ran


class _Failures:
    """A pytest plugin that says whether a test has failed."""

    failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed


def _run(items: Sequence[pytest.Item], mutate: Callable[[], None] | None, writing: int) -> None:
    """The child. Never returns."""
    os.setsid()
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(quiet, stream)

    def say(word: str, text: str = "") -> None:
        os.write(writing, json.dumps([word, text]).encode() + b"\n")

    try:
        settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = COPY
        if mutate is not None:
            mutate()
        _run_tests(items, say)
    except BaseException as error:
        say("broken", f"{type(error).__name__}: {error}")
    finally:
        os._exit(0)


def _run_tests(items: Sequence[pytest.Item], say: Callable[[str, str], None]) -> None:
    """Runs the tests up to the first failure, and ends what their fixtures started."""
    failures = _Failures()
    items[0].config.pluginmanager.register(failures)
    for item, following in zip(items, [*items[1:], None], strict=True):
        say("began", item.nodeid)
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        if failures.failed:
            say("failed", item.nodeid)
            break
    else:
        say("passed", "")
    items[0].session._setupstate.teardown_exact(None)


def _listen(said: int) -> Ran:
    """Follows what a child says, until it is done or silent for too long."""
    began, told = "", b""
    while True:
        if not select.select([said], [], [], PATIENCE)[0]:
            return Ran(failed=began)
        piece = os.read(said, 65536)
        if not piece:
            return Ran("", f"the process of {began or 'the tests'} ended")
        *lines, told = (told + piece).split(b"\n")
        for word, text in map(json.loads, lines):
            if word == "began":
                began = text
            else:
                return Ran(text if word == "failed" else "", text if word == "broken" else "")


def _ended(child: int) -> bool:
    """Whether a child ended by itself. Otherwise it is killed, with all that it started."""
    until = time.monotonic() + TEARDOWN
    while time.monotonic() < until:
        if os.waitpid(child, os.WNOHANG) != (0, 0):
            return True
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False
