"""`python -m embedded exec -- COMMAND`: runs a command with temporary servers."""

import os
import signal
from collections.abc import Sequence

from embedded.errors import EmbeddedError
from embedded.interrupts import Interrupted, interruptible
from embedded.processes import Process
from embedded.servers import temporary_servers


def execute(command: Sequence[str], *, durable: bool) -> int:
    """Runs the command. Returns its exit code, or 128 + the number of the signal that killed it.

    Raises EmbeddedError when the command or a server cannot start.
    """
    with interruptible(), temporary_servers(durable=durable) as servers:
        child = _start(command, os.environ | servers.environment)
        try:
            code = _wait(child)
        finally:
            child.stop()
    return 128 - code if code < 0 else code


def _start(command: Sequence[str], environment: dict[str, str]) -> Process:
    try:
        # The command shares our session, so it can read the terminal and receives Ctrl-C.
        return Process(command[0], command, environment=environment, stdin=None, own_session=False)
    except OSError as error:
        raise EmbeddedError(f"Cannot run {command[0]}: {error.strerror}") from error


def _wait(child: Process) -> int:
    """Waits for the command and forwards an interrupting signal to it."""
    try:
        return child.wait()
    except Interrupted as interrupted:
        if interrupted.number != signal.SIGINT:  # the terminal sends Ctrl-C to both processes
            child.popen.send_signal(interrupted.number)
        return child.wait()
