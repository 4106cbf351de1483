"""Sends raw bytes to the server, for requests that no HTTP client would send."""

import json
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import IO, Any

from tests.answers import check_answer
from tests.live import HOST, LiveServer

TIMEOUT = 60.0  # seconds


@dataclass(frozen=True)
class RawAnswer:
    """One HTTP response."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    """One connection to the server."""

    def __init__(self, server: LiveServer) -> None:
        self._socket = socket.create_connection((HOST, server.port), timeout=TIMEOUT)
        self._answers = self._socket.makefile("rb")

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self._answers.close()
        self._socket.close()

    def send(self, *parts: bytes) -> None:
        """Sends each part in a packet of its own."""
        for part in parts:
            self._socket.sendall(part)

    def end(self) -> None:
        """Closes the connection for writing."""
        with suppress(OSError):  # the server may have closed it first
            self._socket.shutdown(socket.SHUT_WR)

    def read(self, method: str = "POST", path: str = "") -> RawAnswer:
        """Reads the next response. With a path, checks it against the OpenAPI document."""
        response = HTTPResponse(_Reader(self._answers), method=method)  # type: ignore[arg-type]
        response.begin()
        answer = RawAnswer(
            response.status,
            {name.title(): value for name, value in response.getheaders()},
            response.read(),
        )
        if path:
            check_answer(
                method, path, status=answer.status, headers=answer.headers, body=answer.body
            )
        return answer

    def read_within(self, seconds: float) -> RawAnswer:
        """Reads the next response. Raises TimeoutError when none arrives in time."""
        self._socket.settimeout(seconds)
        return self.read()

    def rest(self) -> bytes:
        """Reads everything until the server closes the connection."""
        try:
            return self._answers.read()
        except ConnectionError:
            return b""


class _Reader:
    """The part of a socket that HTTPResponse uses."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def makefile(self, mode: str) -> IO[bytes]:
        return _Unclosed(self._file)  # type: ignore[return-value]


class _Unclosed:
    """A file that stays open for the next response."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def close(self) -> None:
        pass


def head(method: str, path: str, headers: dict[str, str], *, host: str = "localhost") -> bytes:
    """The request line and headers."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def chunked(parts: Iterable[bytes]) -> bytes:
    """A body in chunks, without a length."""
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return chunks + b"0\r\n\r\n"
