"""The server: HTTP in front of the methods, a record of every call, and the faults."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.telegram.fake_bot_api.faults import Fault
from tests.telegram.fake_bot_api.methods import Methods
from tests.telegram.fake_bot_api.objects import PATIENCE, Call
from tests.telegram.fake_bot_api.parameters import Params, Refusal

# A bot of its own in each test process, because the cache with the heartbeats is shared.
TOKEN = f"{os.getpid()}:AAF-a-token-that-only-tests-know"


class BotApi(Methods):
    """Telegram as one bot sees it. Safe to use from any thread."""

    def __init__(self) -> None:
        super().__init__()
        self.token = TOKEN
        self.url = ""
        self.calls: list[Call] = []
        self._faults: dict[str, deque[Fault]] = {}

    def fault(self, method: str, fault: Fault, *, times: int = 1) -> None:
        """Makes the next `times` calls of the method go wrong."""
        with self.changed:
            self._faults.setdefault(method.lower(), deque()).extend([fault] * times)

    def clear_faults(self) -> None:
        with self.changed:
            self._faults.clear()

    def count(self, method: str) -> int:
        with self.changed:
            return sum(call.method.lower() == method.lower() for call in self.calls)

    def answer(self, token: str, method: str, params: Params) -> tuple[int, dict[str, Any]] | None:
        """Status and body; None: the connection ends without an answer."""
        fault = self._next_fault(method)
        if fault and not fault.after:
            self.stopped.wait(fault.seconds)
            if fault.drop:
                self._record(method, params, 0)
                return None
            answer = Refusal(fault.status, fault.description, **fault.parameters).answer()
        else:
            answer = self._carry_out(token, method, params)
            if fault:
                self.stopped.wait(fault.seconds)
        dropped = fault is not None and fault.drop
        self._record(method, params, 0 if dropped else answer[0])
        return None if dropped else answer

    def _carry_out(self, token: str, method: str, params: Params) -> tuple[int, dict[str, Any]]:
        carry_out = getattr(self, f"do_{method.lower()}", None)
        if token != self.token:
            return Refusal(401, "Unauthorized").answer()
        if carry_out is None:
            return Refusal(404, "Not Found").answer()
        try:
            return 200, {"ok": True, "result": carry_out(params)}
        except Refusal as refusal:
            return refusal.answer()

    def _next_fault(self, method: str) -> Fault | None:
        with self.changed:
            waiting = self._faults.get(method.lower())
            return waiting.popleft() if waiting else None

    def _record(self, method: str, params: Params, status: int) -> None:
        with self.changed:
            self.calls.append(Call(method, params, status, time.monotonic()))
            self.changed.notify_all()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    api: BotApi

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _serve(self) -> None:
        address = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        params: Params = dict(parse_qsl(address.query, keep_blank_values=True))
        if "json" in (self.headers.get("Content-Type") or ""):
            params |= json.loads(body)
        else:
            params |= dict(parse_qsl(body.decode(), keep_blank_values=True))
        bot, _, method = address.path.removeprefix("/bot").partition("/")
        answer = self.api.answer(bot, method, params)
        if answer is None:
            self.close_connection = True
            return
        status, content = answer
        text = json.dumps(content).encode()
        with suppress(ConnectionError):  # the bot has closed the connection
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Prints nothing: connections end often here."""


@contextmanager
def running_bot_api() -> Iterator[BotApi]:
    """A server for one test, on a port of its own."""
    api = BotApi()
    handler = type("Handler", (_Handler,), {"api": api})
    with _Server(("127.0.0.1", 0), handler) as server:
        api.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=[0.05], daemon=True)
        thread.start()
        try:
            yield api
        finally:
            api.stopped.set()
            with api.changed:
                api.changed.notify_all()
            server.shutdown()
            thread.join(PATIENCE)
