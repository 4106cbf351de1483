"""Child processes that never outlive this process, and free ports for them."""

import ctypes
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

PR_SET_PDEATHSIG = 1
SERVER_PORTS = range(20_000, 32_000)  # below Linux's ports for outgoing connections


class Process:
    """A child process that the kernel sends a signal when this process dies.

    By default the child has its own session. Ctrl-C in the terminal then reaches only the
    supervisor, which stops its children in order. `stop_signal` asks the child to stop,
    `orphan_signal` (default: the same) is sent when this process dies. The kernel sends it when the
    *thread* that started the child ends, so start children from the main thread only.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        stop_signal: signal.Signals = signal.SIGTERM,
        orphan_signal: signal.Signals | None = None,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        stdin: int | None = subprocess.DEVNULL,
        output: int | IO[bytes] | None = None,
        errors: int | IO[bytes] | None = None,
        keep_open: Sequence[int] = (),
        own_session: bool = True,
    ) -> None:
        self.name = name
        self.stop_signal = stop_signal
        self.own_session = own_session
        self.popen = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=output,
            stderr=errors or (subprocess.STDOUT if output else None),
            env=environment,
            cwd=folder,
            pass_fds=keep_open,
            start_new_session=own_session,
            # Safe with threads: the function only makes system calls.
            preexec_fn=_die_with_parent(orphan_signal or stop_signal),  # noqa: PLW1509
        )

    @property
    def pid(self) -> int:
        return self.popen.pid

    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while the child runs."""
        return self.popen.poll()

    def wait(self) -> int:
        return self.popen.wait()

    def write(self, text: bytes) -> None:
        """Writes to the child's standard input, which must be a pipe, and closes it."""
        if self.popen.stdin:
            with self.popen.stdin as stdin:
                stdin.write(text)

    def stop(self, *, timeout: float = 30) -> None:
        """Asks the child to stop and kills it after `timeout` seconds; then kills its session."""
        if self.exit_code() is None:
            self.popen.send_signal(self.stop_signal)
            try:
                self.popen.wait(timeout)
            except subprocess.TimeoutExpired:
                self.popen.kill()
        if self.own_session:
            _kill_group(self.pid)
        self.popen.wait()


def describe_exit(code: int) -> str:
    """`exit code 1`, or `killed by SIGTERM` for a negative code."""
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def listen_error(host: str, port: int) -> str | None:
    """Why no server can listen on this port; None when it is free.

    A port that another server shares with SO_REUSEPORT, as granian does, counts as in use.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.strerror or str(error)
    return None


def free_port() -> int:
    """A free port of 127.0.0.1 that the kernel never gives to an outgoing connection.

    No connection takes the port before its server starts, or while the server restarts.
    """
    while True:
        port = secrets.choice(SERVER_PORTS)
        if listen_error("127.0.0.1", port) is None:
            return port


if sys.platform == "linux":
    # Loaded before any fork: after a fork, the child should only make system calls.
    _prctl = ctypes.CDLL(None).prctl

    def _die_with_parent(orphan_signal: signal.Signals) -> Callable[[], None] | None:
        parent = os.getpid()

        def set_parent_death_signal() -> None:
            _prctl(PR_SET_PDEATHSIG, int(orphan_signal))
            if os.getppid() != parent:  # the parent died before the call
                os._exit(1)

        return set_parent_death_signal
else:

    def _die_with_parent(orphan_signal: signal.Signals) -> Callable[[], None] | None:
        return None


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
