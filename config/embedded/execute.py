"""`python -m config.embedded exec -- COMMAND`: a command with servers of its own."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from config.embedded.errors import EmbeddedError
from config.embedded.interrupts import interruptible
from config.embedded.processes import Process
from config.embedded.servers import temporary_servers


def execute(command: Sequence[str], *, durable: bool) -> int:
    """Run the command, and return its exit code as a shell would."""
    with interruptible(), temporary_servers(durable=durable) as servers:
        child = _start(command, os.environ | servers.environment)
        try:
            with _left_to(child):
                code = child.wait()
        finally:
            child.stop()
    return 128 - code if code < 0 else code


def _start(command: Sequence[str], environment: dict[str, str]) -> Process:
    try:
        # Not in a session of its own: the terminal and its keys are the command's.
        return Process(command[0], command, environment=environment, stdin=None, own_session=False)
    except OSError as error:
        raise EmbeddedError(f"Cannot run {command[0]}: {error.strerror}") from error


@contextmanager
def _left_to(child: Process) -> Iterator[None]:
    """Ctrl-C reaches the command by itself, a SIGTERM is passed on; either way, it decides."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        child.popen.send_signal(number)

    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN),
        signal.SIGTERM: signal.signal(signal.SIGTERM, pass_on),
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
