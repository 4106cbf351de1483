"""Child processes that never outlive this one."""

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
BELOW_CONNECTIONS = range(20_000, 32_000)


class Process:
    """A child in a session of its own, told to stop when this process dies, however it dies.

    Its own session keeps Ctrl-C in the terminal away from it: only the supervisor hears that, and
    stops its children in order. The kernel ties the child to the *thread* that starts it, so start
    children from the main thread only.
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
            # Safe beside threads: the function only calls into the kernel.
            preexec_fn=_die_with_parent(orphan_signal or stop_signal),  # noqa: PLW1509
        )

    @property
    def pid(self) -> int:
        return self.popen.pid

    def exit_code(self) -> int | None:
        """None while it runs."""
        return self.popen.poll()

    def wait(self) -> int:
        return self.popen.wait()

    def write(self, text: bytes) -> None:
        """Everything it will ever read from its standard input, which must be a pipe."""
        if self.popen.stdin:
            with self.popen.stdin as stdin:
                stdin.write(text)

    def stop(self, *, patience: float = 30) -> None:
        """Ask, wait, then insist; and take along whatever the child itself left behind."""
        if self.exit_code() is None:
            self.popen.send_signal(self.stop_signal)
            try:
                self.popen.wait(patience)
            except subprocess.TimeoutExpired:
                self.popen.kill()
        if self.own_session:
            _kill_group(self.pid)
        self.popen.wait()


def describe_exit(code: int) -> str:
    """`exit code 1`, or the name of the signal that ended it."""
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def listen_error(host: str, port: int) -> str | None:
    """Why nobody can listen there, or None. A port that is shared, as granian's, is taken too."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.strerror or str(error)
    return None


def free_port() -> int:
    """A port of 127.0.0.1 nobody listens on, from below those the kernel gives to connections.

    So it stays free until the server that is to use it has started, and over a restart.
    """
    while True:
        port = secrets.choice(BELOW_CONNECTIONS)
        if listen_error("127.0.0.1", port) is None:
            return port


if sys.platform == "linux":
    # Looked up before any fork: after one, a child should do nothing but call into the kernel.
    _prctl = ctypes.CDLL(None).prctl

    def _die_with_parent(orphan_signal: signal.Signals) -> Callable[[], None] | None:
        parent = os.getpid()

        def ask_the_kernel() -> None:
            _prctl(PR_SET_PDEATHSIG, int(orphan_signal))
            if os.getppid() != parent:  # it died before the kernel knew
                os._exit(1)

        return ask_the_kernel
else:

    def _die_with_parent(orphan_signal: signal.Signals) -> Callable[[], None] | None:
        return None


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
