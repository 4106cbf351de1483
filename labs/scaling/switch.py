"""An address that moves from one server to another, as in a failover.

New connections go to the present server. Those that are open stay where they are.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from tests.live import HOST


class Switch:
    """Forwards connections to the server of `url`, which a test may change."""

    def __init__(self, url: str) -> None:
        self.to = url
        self._listener = socket.create_server((HOST, 0))
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """The URL of the database behind this address."""
        port = self._listener.getsockname()[1]
        return self.to.replace(f":{urlsplit(self.to).port}/", f":{port}/")

    def close(self) -> None:
        self._listener.close()
        for one in self._open:
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                caller, _ = self._listener.accept()
                server = socket.create_connection((HOST, urlsplit(self.to).port or 0))
                self._open += [caller, server]
                for source, target in ((caller, server), (server, caller)):
                    threading.Thread(target=_copy, args=[source, target], daemon=True).start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextmanager
def switch(url: str) -> Iterator[Switch]:
    moving = Switch(url)
    try:
        yield moving
    finally:
        moving.close()
