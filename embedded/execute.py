"""`python -m embedded exec -- COMMAND`: a command with servers of its own."""

import os
import signal
from collections.abc import Sequence

from embedded.errors import EmbeddedError
from embedded.interrupts import Interrupted, interruptible
from embedded.processes import Process
from embedded.servers import temporary_servers


def execute(command: Sequence[str], *, durable: bool) -> int:
    """Run the command, and return its exit code as a shell would."""
    with interruptible(), temporary_servers(durable=durable) as servers:
        child = _start(command, os.environ | servers.environment)
        try:
            code = _wait(child)
        finally:
            child.stop()
    return 128 - code if code < 0 else code


def _start(command: Sequence[str], environment: dict[str, str]) -> Process:
    try:
        # Not in a session of its own: the terminal and its keys are the command's.
        return Process(command[0], command, environment=environment, stdin=None, own_session=False)
    except OSError as error:
        raise EmbeddedError(f"Cannot run {command[0]}: {error.strerror}") from error


def _wait(child: Process) -> int:
    """Whoever interrupts us means the command, and the command decides how to end."""
    try:
        return child.wait()
    except Interrupted as interrupted:
        if interrupted.number != signal.SIGINT:  # the terminal gave Ctrl-C to both of us
            child.popen.send_signal(interrupted.number)
        return child.wait()
