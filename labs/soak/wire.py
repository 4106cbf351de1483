"""HTTP over a plain socket, which costs a tenth of a client library."""

import socket
import time
from dataclasses import dataclass

HOST = "127.0.0.1"
ANSWER_SECONDS = 30.0  # until a merchant gives a request up and sends it again


class Lost(Exception):
    """The connection ended, or no answer came in time. The outcome is unknown."""


@dataclass(frozen=True)
class Reply:
    """An HTTP response. `head` is lower case."""

    status: int
    head: bytes
    content: bytes

    @property
    def replayed(self) -> bool:
        return b"\r\nidempotent-replay: true\r\n" in self.head + b"\r\n"


class Wire:
    """A connection to one web server, kept for many requests."""

    def __init__(self, port: int) -> None:
        try:
            self._socket = socket.create_connection((HOST, port), timeout=ANSWER_SECONDS)
        except OSError as error:
            raise Lost from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, *parts: bytes, pause: float = 0) -> Reply:
        """Sends a request, perhaps slowly in parts, and reads its response. Raises Lost."""
        try:
            for number, part in enumerate(parts):
                if number and pause:
                    time.sleep(pause)
                self._socket.sendall(part)
            return self._read()
        except (OSError, ValueError) as error:
            self._socket.close()
            raise Lost from error

    def close(self) -> None:
        self._socket.close()

    def _read(self) -> Reply:
        data = b""
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self._more()
        head = data[:end].lower()
        _, _, length = head.partition(b"\r\ncontent-length:")
        size = end + 4 + int(length.partition(b"\r\n")[0])
        while len(data) < size:
            data += self._more()
        return Reply(int(head[9:12]), head, data[end + 4 : size])

    def _more(self) -> bytes:
        if more := self._socket.recv(65536):
            return more
        raise ConnectionError
