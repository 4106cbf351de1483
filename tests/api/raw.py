"""Bytes on a socket, for what no HTTP client would send."""

import json
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import IO, Any

from tests.answers import check_answer
from tests.live import HOST, LiveServer

PATIENCE = 20.0


@dataclass(frozen=True)
class RawAnswer:
    """One answer as it came over the wire."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    """One connection to the server."""

    def __init__(self, server: LiveServer) -> None:
        self._socket = socket.create_connection((HOST, server.port), timeout=PATIENCE)
        self._answers = self._socket.makefile("rb")

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self._answers.close()
        self._socket.close()

    def send(self, *parts: bytes) -> None:
        """Each part is a packet of its own."""
        for part in parts:
            self._socket.sendall(part)

    def end(self) -> None:
        """Says that nothing more will come."""
        with suppress(OSError):  # where the server was quicker
            self._socket.shutdown(socket.SHUT_WR)

    def read(self, method: str = "POST", path: str = "") -> RawAnswer:
        """The next answer; checked against the document where its path is given."""
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

    def rest(self) -> bytes:
        """All that still comes until the server ends the connection."""
        try:
            return self._answers.read()
        except ConnectionError:
            return b""


class _Reader:
    """What HTTPResponse wants of a socket."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def makefile(self, mode: str) -> IO[bytes]:
        return _Unclosed(self._file)  # type: ignore[return-value]


class _Unclosed:
    """A file that stays open for the next answer."""

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
