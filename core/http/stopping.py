"""Stops a web process of granian without losing a request.

Granian alone would lose some. A web process misses a SIGTERM that arrives while it starts, and the
master process then waits for ever. A web process that stops resets the connections of
requests that it has not read yet (docs/decisions/0033-stopping-the-web-server.md).
"""

import ctypes
import os
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from multiprocessing import current_process
from pathlib import Path
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
WEB_PROCESS = "granian-worker"  # granian's name for its web processes
DRAIN_SECONDS = 0.5  # for clients to read `Connection: close` on the connections that they use

SO_ATTACH_FILTER = 26  # Linux; Python's socket module does not define it
# A BPF program, each instruction as code, jump if true, jump if false, operand. It drops the
# packets that open a connection and passes the others, so open handshakes are completed.
DROP_NEW_CONNECTIONS = (
    (0x30, 0, 0, 13),  # load the byte of the TCP header that has the flags
    (0x45, 0, 1, 0x02),  # SYN?
    (0x06, 0, 0, 0),  # drop
    (0x06, 0, 0, 0xFFFFFFFF),  # pass
)

_draining = threading.Event()


def stop_on_signals() -> None:
    """Handles SIGTERM and SIGINT from now on. Call it before anything else, in the main thread.

    The signals are blocked in all threads, so they wait until our thread takes them. A process that
    is still starting ends at once. A process that serves drains first, then granian stops it. Does
    nothing outside granian's web processes.
    """
    if current_process().name != WEB_PROCESS:
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    # Until now the process had the handler that it inherited from its master.
    inherited = signal.getsignal(signal.SIGTERM)
    if getattr(getattr(inherited, "__self__", None), "interrupt_signal", False):
        os._exit(0)
    threading.Thread(target=_wait, args=[inherited], name="stop", daemon=True).start()


def close_while_draining(application: WSGIApplication) -> WSGIApplication:
    """WSGI middleware: while the process drains, each response closes its connection."""

    def draining(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            if _draining.is_set():
                headers = [*headers, ("Connection", "close")]
            return start_response(status, headers, *more)

        return application(environ, start)

    return draining


def _wait(inherited: object) -> None:
    number = signal.sigwait(STOP_SIGNALS)
    stop = signal.getsignal(number)
    if stop is inherited or not callable(stop):
        os._exit(0)  # granian has not installed its handler: the process does not serve yet
    _draining.set()
    _drop_new_connections()
    time.sleep(DRAIN_SECONDS)
    stop(number, None)  # once only: a second call may block the whole process


def _drop_new_connections() -> None:
    """Ignores new connections. The client's kernel asks again after a second.

    By then another process has the port, or the connection is refused. Without this, connections
    that granian has not accepted when it closes its socket are reset.
    """
    if sys.platform != "linux":
        return
    instructions = b"".join(struct.pack("HBBI", *one) for one in DROP_NEW_CONNECTIONS)
    program = ctypes.create_string_buffer(instructions)
    fprog = struct.pack("HL", len(DROP_NEW_CONNECTIONS), ctypes.addressof(program))
    for listener in _listeners():
        with listener, suppress(OSError):  # a Unix socket, for example
            listener.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, fprog)


def _listeners() -> Iterator[socket.socket]:
    """Copies of the sockets on which this process accepts connections."""
    for entry in list(Path("/proc/self/fd").iterdir()):
        with suppress(OSError):  # closed meanwhile, or not a socket
            copy = socket.socket(fileno=os.dup(int(entry.name)))
            if copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                yield copy
            else:
                copy.close()
