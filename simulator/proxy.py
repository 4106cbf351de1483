"""The proxy before the service. It carries out and records the fault of each request.

It serves `/simulator/`, a page that chooses faults, and passes everything else on.
"""

import html
import http.client
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from django.db import connection

from accounts.api_access.keys import find_client
from accounts.models import ApiClient
from core.api.envelope import failure
from core.api.errors import ApiError, ErrorCode
from core.json_output import dumps
from simulator.faults import HEADER, MEANINGS, Choices, Fault
from simulator.situations import abandon, has_claimed, hold_wallet, pass_time, situation

PAGE = "/simulator/"
API = "/api/"
RUN = re.compile(r"/run-(\d+)(?=/api/)")  # before the path: which run of a program sent it
AGAIN_SECONDS = 10.0
MOST_REQUESTS = 1000  # that one choice on the page damages
SLOW_PIECES, SLOW_SECONDS = 10, 5.0
HTML, JSON = "text/html", "application/json"
# What the program receives in place of what the service answered.
FOREIGN = {
    Fault.ERROR_BEFORE: (502, HTML, b"<html><h1>502 Bad Gateway</h1></html>"),
    Fault.ERROR_AFTER: (502, HTML, b"<html><h1>502 Bad Gateway</h1></html>"),
    Fault.TIMEOUT: (408, HTML, b"<html><h1>408 Request Time-out</h1></html>"),
    Fault.CROWD: (429, HTML, b"<html><h1>Too many requests</h1></html>"),
    Fault.PORTAL: (201, HTML, b"<html><h1>Sign in to this network</h1></html>"),
    Fault.UNAVAILABLE: (503, JSON, b'{"message":"The service does not respond."}'),
    Fault.SERVER_ERROR: (500, JSON, dumps(failure(ApiError(ErrorCode.SERVER_ERROR)))),
}
LATER = {
    # A moment more than the times that the service waits and remembers.
    Fault.MINUTES_LATER: timedelta(minutes=5, seconds=1),
    Fault.A_DAY_LATER: timedelta(days=1, seconds=1),
    Fault.A_WEEK_LATER: timedelta(days=7, seconds=1),
}
HOURS_LATER = timedelta(hours=6)
UNFORWARDED = frozenset({Fault.LOST_BEFORE, Fault.ERROR_BEFORE, Fault.CROWD, Fault.UNAVAILABLE})
UNANSWERED = frozenset(
    {Fault.LOST_BEFORE, Fault.LOST_AFTER, Fault.LATE, Fault.IN_PROGRESS, Fault.ABANDONED}
)


@dataclass(frozen=True)
class Exchange:
    """One request, what the service answered, and what the program received (0: nothing).

    `answered` is before the program can receive anything, so its own wait begins later.
    """

    run: int
    at: float
    answered: float
    method: str
    path: str
    key: str
    body: bytes
    fault: Fault
    status: int
    content: bytes
    received: int


class Simulator(ThreadingHTTPServer):
    """Passes requests to the service at `service_port`. `second` is how long one is for faults."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        service_port: int,
        choices: Choices,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        second: float = 1.0,
    ) -> None:
        super().__init__((host, port), _Handler)
        self.service_port = service_port
        self.choices = choices
        self.exchanges: list[Exchange] = []
        self._again_after = AGAIN_SECONDS * second
        self._late: list[threading.Timer] = []

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/api/v1"

    def base_url_of(self, run: int) -> str:
        """The base URL for one run of a program. Its requests are recorded as those of this run,
        even if they arrive after the program was killed and the next run has begun."""
        return f"http://127.0.0.1:{self.server_port}/run-{run}/api/v1"

    def forward(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        service = http.client.HTTPConnection("127.0.0.1", self.service_port, timeout=60)
        try:
            service.request(method, path, body or None, headers)
            response = service.getresponse()
            return response.status, response.getheaders(), response.read()
        finally:
            service.close()

    def forward_later(self, *request: Any) -> None:
        timer = threading.Timer(self._again_after, self.forward, request)
        timer.daemon = True
        timer.start()
        self._late.append(timer)

    def wait_for_late_requests(self) -> None:
        for timer in self._late:
            timer.join()


def is_up(port: int) -> bool:
    """Whether a service answers at this port."""
    service = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        service.request("GET", "/healthz")
        return service.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        service.close()


@contextmanager
def running(simulator: Simulator) -> Iterator[Simulator]:
    thread = threading.Thread(target=simulator.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield simulator
    finally:
        simulator.shutdown()
        thread.join()
        simulator.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Simulator

    def do_GET(self) -> None:
        if self.path == PAGE:
            self._answer(200, [("Content-Type", "text/html; charset=utf-8")], self._page())
        else:
            self._pass_on()

    def do_POST(self) -> None:
        if self.path == PAGE:
            try:
                form = parse_qs(self._body().decode())
                fault, requests = Fault(form["fault"][0]), int(form.get("requests", ["1"])[0])
            except (ValueError, KeyError):
                text = f"Choose a fault of the list at {PAGE}, and a whole number of requests.\n"
                self._answer(400, [], text.encode())
                return
            self.server.choices.add(fault, min(requests, MOST_REQUESTS))
            self._answer(303, [("Location", PAGE)], b"")
        else:
            self._pass_on()

    def log_message(self, *_: Any) -> None:
        """Logs nothing."""

    def _pass_on(self) -> None:
        self.close_connection = True
        at, body = time.monotonic(), self._body()
        run = 0
        if prefix := RUN.match(self.path):
            run, self.path = int(prefix[1]), self.path[prefix.end() :]
        fault = Fault.NONE
        if self.path.startswith(API):
            try:
                fault = self.server.choices.choose(self.headers.get(HEADER), body)
            except ValueError:
                self._answer(400, [], f"{HEADER} names no fault of {PAGE}\n".encode())
                return
        try:
            status, headers, content = self._forward(fault, body)
        except (OSError, http.client.HTTPException):
            status, headers, content = 0, [], b""
        finally:
            connection.close()
        received = self._received_status(fault, status)
        key = self.headers.get("Idempotency-Key", "")
        self.server.exchanges.append(
            Exchange(
                run=run,
                at=at,
                answered=time.monotonic(),
                method=self.command,
                path=self.path,
                key=key,
                body=body,
                fault=fault,
                status=status,
                content=content,
                received=received,
            )
        )
        self._send(fault, status, headers, content)

    def _forward(self, fault: Fault, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        if fault in UNFORWARDED:
            return 0, [], b""
        headers = {
            name: value
            for name, value in self.headers.items()
            if name.lower() not in ("connection", HEADER.lower())
        }
        request = (self.command, self.path, body, headers)
        key = self.headers.get("Idempotency-Key", "")
        client = self._client()
        if client is None:
            return self.server.forward(*request)
        if fault is Fault.LATE:
            self.server.forward_later(*request)
            return 0, [], b""
        if fault in LATER:
            pass_time(client, LATER[fault])
        if fault is Fault.RATE_LIMITED:
            with situation(fault, client):
                self.server.forward("GET", "/api/v1/ping", b"", headers)
                return self.server.forward(*request)
        if fault is Fault.TWICE:
            threading.Thread(target=self.server.forward, args=request).start()
        elif fault is Fault.AGAIN_LATER:
            self.server.forward_later(*request)
        elif fault is Fault.IN_PROGRESS:
            locked = threading.Event()
            threading.Thread(target=hold_wallet, args=(client, locked)).start()
            locked.wait()
            purchase = threading.Thread(target=self.server.forward, args=request)
            purchase.start()
            while purchase.is_alive() and not has_claimed(client, key):
                time.sleep(0.02)  # the next request must meet this purchase in progress
            return 0, [], b""
        with situation(fault, client):
            answer = self.server.forward(*request)
        if fault in (Fault.ABANDONED, Fault.SERVER_ERROR):
            abandon(client, key)
        if fault is Fault.AGAIN_HOURS_LATER:
            pass_time(client, HOURS_LATER)
            self.server.forward(*request)
        return answer

    def _client(self) -> ApiClient | None:
        return find_client(self.headers.get("Authorization", "").removeprefix("Bearer "))

    def _received_status(self, fault: Fault, status: int) -> int:
        if fault in FOREIGN:
            return FOREIGN[fault][0]
        return 0 if fault in UNANSWERED or fault is Fault.CUT else status

    def _send(
        self, fault: Fault, status: int, headers: list[tuple[str, str]], content: bytes
    ) -> None:
        try:
            if fault in FOREIGN:
                status, kind, content = FOREIGN[fault]
                self._answer(status, [("Content-Type", kind)], content)
            elif fault in UNANSWERED or not status:
                return
            elif fault is Fault.CUT:
                self._answer(status, headers, content, send=len(content) // 2)
            elif fault is Fault.SLOW:
                self._answer(status, headers, content, send=0)
                size = -(-len(content) // SLOW_PIECES)
                for start in range(0, len(content), size):
                    time.sleep(SLOW_SECONDS / SLOW_PIECES)
                    self.wfile.write(content[start : start + size])
                    self.wfile.flush()
            else:
                self._answer(status, headers, content)
        except OSError:
            """The program has ended."""

    def _answer(
        self,
        status: int,
        headers: list[tuple[str, str]],
        content: bytes,
        send: int | None = None,
    ) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content[:send])

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _page(self) -> bytes:
        options = "".join(
            f'<option value="{fault}">{fault}: {html.escape(meaning)}</option>'
            for fault, meaning in MEANINGS.items()
        )
        rows = "".join(
            f"<tr><td>{each.method}</td><td>{html.escape(each.path)}</td><td>{each.fault}</td>"
            f"<td>{each.status or '-'}</td><td>{each.received or '-'}</td></tr>"
            for each in self.server.exchanges[:-21:-1]
        )
        return _PAGE.format(options=options, rows=rows, header=HEADER).encode()


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Simulator</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 1rem }}
select, input, button {{ font: inherit; padding: .3rem; max-width: 100% }}
table {{ border-collapse: collapse }} td, th {{ padding: .2rem .8rem .2rem 0; text-align: left }}
div {{ overflow-x: auto }}
</style></head><body><main>
<h1>Simulator</h1>
<p>No money and no code here is real.</p>
<form method="post">
<p><label>Fault<br><select name="fault">{options}</select></label></p>
<p><label>of the next requests<br><input name="requests" type="number" min="1" max="1000"
 value="1" required></label> <button>Add the fault</button></p>
</form>
<p>Or send the header <code>{header}: lost_after</code>, or buy for the player id
 <code>fault-lost_after</code>. Operators reject an order for <code>reject-…</code>, review one for
 <code>review-…</code>, fail one without a refund for <code>unrefunded-…</code>, leave one for
 <code>wait-…</code>, and deliver one after ten seconds for <code>slow-…</code>; they deliver all
 others within seconds.</p>
<h2>Last requests</h2>
<div tabindex="0" role="region" aria-label="Last requests"><table>
<tr><th scope="col">Method</th><th scope="col">Path</th><th scope="col">Fault</th>
<th scope="col">Service</th><th scope="col">Program received</th></tr>{rows}</table></div>
</main></body></html>
"""
