"""Servers that misbehave."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from embedded.processes import free_port
from tests.live import HOST


@dataclass
class SilentServer:
    """A server that accepts connections and never sends anything."""

    port: int
    connections: int = 0  # accepted so far


@contextmanager
def silent_server() -> Iterator[SilentServer]:
    """Runs a SilentServer in a thread of this process."""
    accepted: list[socket.socket] = []
    with socket.create_server((HOST, free_port())) as listener:
        server = SilentServer(listener.getsockname()[1])

        def accept() -> None:
            while True:
                try:
                    accepted.append(listener.accept()[0])
                except OSError:  # the test is over
                    return
                server.connections += 1

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in accepted:
                connection.close()
