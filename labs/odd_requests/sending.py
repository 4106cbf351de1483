"""Sends requests: inside this process through the WSGI application, or over a socket."""

import io
import json
import random
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.parse import unquote_to_bytes

from django.core.wsgi import get_wsgi_application

from core.http.body_limits import lazy_chunked_bodies
from labs.odd_requests.making import MAX_BODY, Odd
from tests.api.raw import Wire, chunked
from tests.live import LiveServer


@dataclass(frozen=True)
class Reply:
    """The response. `headers` have the names of the document."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def outcome(self) -> str:
        """`200`, `201`, an error code, or `message`."""
        if self.status in (200, 201):
            return str(self.status)
        try:
            body = json.loads(self.content)
        except ValueError:
            return f"{self.status} without JSON"
        if isinstance(body, dict) and set(body) == {"message"}:
            return "message"
        return str(body.get("error", {}).get("code")) if isinstance(body, dict) else "no object"


class InProcess:
    """Calls the application as the web server does, without a network."""

    def __init__(self) -> None:
        self._application = lazy_chunked_bodies(get_wsgi_application())

    def send(self, odd: Odd) -> Reply:
        started: list[Any] = []

        def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> Any:
            started[:] = [int(status[:3]), dict(headers)]
            return lambda data: None

        parts: Iterable[bytes] = self._application(environ_of(odd), start_response)
        try:
            content = b"".join(parts)
        finally:
            close = getattr(parts, "close", None)
            if close:
                close()
        status, headers = started
        return Reply(status, headers, b"" if odd.method == "HEAD" else content)


def environ_of(odd: Odd) -> dict[str, Any]:
    environ: dict[str, Any] = {
        "REQUEST_METHOD": odd.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(odd.path).decode("latin-1"),
        "QUERY_STRING": odd.query,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": "localhost",
        "CONTENT_LENGTH": str(len(odd.body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(odd.body),
        "wsgi.errors": io.StringIO(),
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for name, value in odd.headers:
        variable = name.upper().replace("-", "_")
        known = "CONTENT_TYPE" if variable == "CONTENT_TYPE" else f"HTTP_{variable}"
        environ[known] = value.strip(" \t")  # as the server reads header values
    return environ


class OverHttp:
    """Sends over real sockets, in odd pieces. Keeps no connection."""

    def __init__(self, server: LiveServer, seed: int) -> None:
        self._server = server
        self._chance = random.Random(seed)

    def can_send(self, odd: Odd) -> bool:
        """Whether the request can be written as HTTP: no line break in a header or in the line."""
        text = "".join((odd.method, odd.path, odd.query, *(value for _, value in odd.headers)))
        return not any(each in text for each in "\r\n\x00\x7f") and " " not in odd.query

    def send(self, odd: Odd) -> Reply | None:
        """None when the server refused the request as HTTP, before the application."""
        with Wire(self._server) as wire:
            with suppress(OSError):  # the server may refuse before it has read everything
                wire.send(*self._pieces(odd))
            try:
                answer = wire.read(odd.method)
            except (OSError, HTTPException):
                return None
        if "X-Request-Id" not in answer.headers and answer.status in (400, 413, 414, 431):
            return None
        return Reply(answer.status, answer.headers, answer.body)

    def send_garbage(self) -> int | None:
        """Sends bytes that are not HTTP. Returns the status, if there was one."""
        lines = [
            self._chance.randbytes(self._chance.randint(1, 400)),
            b"GET / HTTP/9.9\r\n\r\n",
            b"POST /api/v1/orders HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
            b"POST /api/v1/orders HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"GET /api/v1/ping HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 300 + b"\r\n",
            b"GET http://elsewhere/api/v1/ping HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(50),
        ]
        with Wire(self._server) as wire:
            with suppress(OSError):
                wire.send(self._chance.choice(lines))
                wire.end()
            try:
                return wire.read("GET").status
            except (OSError, HTTPException):
                return None

    def _pieces(self, odd: Odd) -> list[bytes]:
        target = odd.path + (f"?{odd.query}" if odd.query else "")
        headers = [("Host", "localhost"), *odd.headers]
        way = self._chance.random()
        # A longer body in chunks is refused where the service reads it, after the key of the API.
        in_chunks = way < 0.2 and 0 < len(odd.body) <= MAX_BODY
        if in_chunks:
            headers.append(("Transfer-Encoding", "chunked"))
        else:
            headers.append(("Content-Length", str(len(odd.body))))
        if way > 0.7:
            headers = [(name.lower(), f"  {value} ") for name, value in headers]
        self._chance.shuffle(headers)
        lines = [f"{odd.method} {target} HTTP/1.1", *(f"{n}: {v}" for n, v in headers), "", ""]
        head = "\r\n".join(lines).encode("latin-1", "replace")
        half = len(odd.body) // 2
        if in_chunks:
            body = chunked([part for part in (odd.body[:half], odd.body[half:]) if part])
        else:
            body = odd.body
        return [head, body] if way < 0.5 else [head + body]
