"""A bad network between a merchant's program and the service, which loses answers by a plan.

It forwards each request to the service. The next word of `plan` then decides about the answer:
`lose` closes the connection without one, `half` sends half of it, and a word of FOREIGN replaces it
with an answer of the proxy. `limit` and `disable` answer rate_limited and client_disabled without
forwarding, `none` answers a page without orders, and `move` redirects to /ping. After the plan, and
for `pass`, the answer is passed on.
"""

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

UNFORWARDED: dict[str, tuple[int, dict[str, Any]]] = {
    "limit": (429, {"code": "rate_limited", "message": "Wait.", "retry_after_seconds": 1}),
    "disable": (403, {"code": "client_disabled", "message": "It is disabled."}),
}
# What a proxy between answers in the place of the service.
FOREIGN: dict[str, tuple[int, str]] = {
    "gateway": (502, "<html>Bad gateway</html>"),
    "timeout": (408, "<html>Request timeout</html>"),
    "crowd": (429, "<html>Too many requests</html>"),
    "portal": (201, "<html>Sign in to this network</html>"),
    "message": (403, '{"message": "Forbidden"}'),
    "text": (400, '{"success": false, "error": "bad request"}'),
    "number": (403, '{"success": false, "error": {"code": 403, "message": "No"}}'),
    "stranger": (403, '{"error": {"code": "forbidden", "message": "No"}}'),
    "list": (400, "[]"),
}


class BadNetwork:
    """The proxy: its address, its plan, and the requests that it forwarded."""

    def __init__(self, port: int, plan: list[str]) -> None:
        self.plan = plan
        self.seen: list[tuple[str, str, int]] = []  # method, path, the service's status
        self.times: list[float] = []  # when each request came, forwarded or not
        network = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                network.pass_on(self, port)

            def do_POST(self) -> None:
                network.pass_on(self, port)

            def log_message(self, *_: Any) -> None:
                """Logs nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/api/v1"

    def pass_on(self, handler: BaseHTTPRequestHandler, port: int) -> None:
        self.times.append(time.monotonic())
        word = self.plan.pop(0) if self.plan else "pass"
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        if word in UNFORWARDED:
            status, error = UNFORWARDED[word]
            self._answer(handler, status, json.dumps({"success": False, "error": error}).encode())
            return
        if word == "none":
            self._answer(handler, 200, b'{"success": true, "data": {"items": []}}')
            return
        if word == "move":
            self._answer(handler, 302, b"{}", location=f"{self.base_url}/ping")
            return
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as service:
            service.request(handler.command, handler.path, body, dict(handler.headers))
            response = service.getresponse()
            content = response.read()
        self.seen.append((handler.command, handler.path, response.status))
        if word in FOREIGN:
            status, text = FOREIGN[word]
            self._answer(handler, status, text.encode())
        elif word == "half":
            self._answer(handler, response.status, content, send=len(content) // 2)
        elif word == "pass":
            self._answer(handler, response.status, content)
        handler.close_connection = True

    def _answer(
        self,
        handler: BaseHTTPRequestHandler,
        status: int,
        content: bytes,
        send: int | None = None,
        location: str = "",
    ) -> None:
        handler.send_response(status)
        is_html = content.startswith(b"<")
        handler.send_header("Content-Type", "text/html" if is_html else "application/json")
        handler.send_header("Content-Length", str(len(content)))
        if location:
            handler.send_header("Location", location)
        handler.end_headers()
        handler.wfile.write(content[:send])


Network = TypeVar("Network", bound=BadNetwork)


@contextmanager
def bad_network(port: int, *plan: str) -> Iterator[BadNetwork]:
    """Runs the proxy until the block ends."""
    with running(BadNetwork(port, list(plan))) as network:
        yield network


@contextmanager
def running(network: Network) -> Iterator[Network]:
    """Runs this proxy until the block ends."""
    thread = threading.Thread(target=network.server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield network
    finally:
        network.server.shutdown()
        thread.join()
        network.server.server_close()
