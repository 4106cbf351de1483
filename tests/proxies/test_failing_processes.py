"""What a proxy says when the processes behind it fail, and that it sends a purchase only once."""

import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from embedded.processes import free_port
from tests.live import HOST
from tests.proxies.running import NAME, PROXIES, Proxy, running_proxy

pytestmark = pytest.mark.nginx

KIB = 1024
ORDER = {"Content-Type": "application/json", "Idempotency-Key": "k"}


READY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
REFUSAL = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


class Upstream:
    """A process that reads requests, and closes the connection or never answers.

    With `refuses`, it responds with 401 to the head of a request. `unasked` is what it was sent of
    the body all the same. With `file_bytes`, it responds with a file of this size, and sets
    `is_free` when it is rid of the file.
    """

    def __init__(self) -> None:
        self.silent = self.refuses = False
        self.requests = self.file_bytes = 0
        self.unasked = b""
        self.is_free = threading.Event()
        self._listener = socket.create_server((HOST, 0))
        self._open: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def close(self) -> None:
        self._listener.close()
        for connection in self._open:
            connection.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                received = self._head(connection)
                if received.startswith(b"GET /readyz "):  # HAProxy asks every second
                    with connection, suppress(OSError):
                        connection.sendall(READY)
                    continue
                self.requests += 1
                if self.file_bytes:
                    self._send_file(connection)
                    continue
                if self.refuses:
                    time.sleep(0.3)
                    with suppress(BlockingIOError):
                        received += connection.recv(65536, socket.MSG_DONTWAIT)
                    self.unasked += received.partition(b"\r\n\r\n")[2]
                    connection.sendall(REFUSAL)
                elif b"100-continue" in received:
                    connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                while not self.refuses and not received.endswith(b"\r\n\r\n{}"):
                    received += connection.recv(65536)
                if self.silent:
                    self._open.append(connection)
                else:
                    connection.close()

    @staticmethod
    def _head(connection: socket.socket) -> bytes:
        received = b""
        with suppress(ConnectionResetError):  # HAProxy no longer waits
            while b"\r\n\r\n" not in received and (part := connection.recv(65536)):
                received += part
        return received

    def _send_file(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % self.file_bytes)
            connection.sendall(bytes(self.file_bytes))
        self.is_free.set()


@pytest.fixture
def upstreams() -> Iterator[list[Upstream]]:
    upstreams = [Upstream(), Upstream()]
    yield upstreams
    for upstream in upstreams:
        upstream.close()


@pytest.fixture(params=PROXIES)
def proxy(
    request: pytest.FixtureRequest, upstreams: list[Upstream], tmp_path: Path
) -> Iterator[Proxy]:
    """A proxy in front of two API processes that fail, and of no process for pages."""
    ports = [upstream.port for upstream in upstreams]
    with running_proxy(request.param, api=ports, pages=[free_port()], folder=tmp_path) as proxy:
        yield proxy


def test_a_failed_purchase_is_sent_once_and_answered_in_json(
    proxy: Proxy, upstreams: list[Upstream]
) -> None:
    for silent, status in ((False, 502), (True, 504)):
        for upstream in upstreams:
            upstream.silent, upstream.requests = silent, 0
        answer = proxy.ask("POST", "/api/v1/orders", ORDER, b"{}")

        assert (answer.status, answer.headers["Content-Type"]) == (status, "application/json")
        assert json.loads(answer.body).keys() == {"message"}
        assert "send the same request again" in answer.json()["message"]
        assert sum(upstream.requests for upstream in upstreams) == 1

    answer = proxy.ask("GET", "/merchant/?secret=canary")
    status = 503 if proxy.name == "haproxy" else 502  # it knows that no process is ready
    assert (answer.status, answer.headers["Content-Type"].partition(";")[0]) == (
        status,
        "text/plain",
    )
    assert b"does not respond" in answer.body


def test_caddy_sends_few_sign_ins_at_once(upstreams: list[Upstream], tmp_path: Path) -> None:
    ports = [upstream.port for upstream in upstreams]
    for upstream in upstreams:
        upstream.silent = True
    with (
        running_proxy("caddy", api=[free_port()], pages=ports, folder=tmp_path) as proxy,
        ThreadPoolExecutor(13) as threads,
    ):
        sent = []
        for _ in range(12):
            sent.append(threads.submit(proxy.ask, "POST", "/merchant/sign-in/", ORDER, b"{}"))
            time.sleep(0.02)  # two at the same moment may both count as the fourth
        another = threads.submit(proxy.ask, "POST", "/merchant/people/invite/", ORDER, b"{}")
        answers = sorted((each.result().status, each.result().body) for each in sent)

        assert [status for status, _ in answers] == [503] * 4 + [504] * 8
        assert answers[0][1].startswith(b"Too many people are signing in.")
        assert another.result().status == 504  # other pages are not limited
        assert sum(upstream.requests for upstream in upstreams) == 8 + 1


@pytest.mark.parametrize("proxy", ["caddy"], indirect=True)
def test_caddy_sends_a_body_when_a_process_asks_for_it(
    proxy: Proxy, upstreams: list[Upstream]
) -> None:
    """A process that refuses a request closes the connection, which would be a 502 of Caddy if it
    were still sending."""
    for upstream in upstreams:
        upstream.refuses = True

    answer = proxy.ask("POST", "/api/v1/orders", ORDER, b" " * 100_000)

    assert (answer.status, answer.body) == (401, b"{}")
    assert [upstream.unasked for upstream in upstreams] == [b"", b""]


STATEMENT, ORDERS = "/merchant/wallet/statement.csv", "/api/v1/orders"
LIST = "/admin/orders/order/export.csv"
FILE_BYTES = 50_000_000


@contextmanager
def reader_of_a_file(
    name: str, upstream: Upstream, folder: Path, path: str
) -> Iterator[tuple[Proxy, ssl.SSLSocket]]:
    """A proxy in front of one process, and a reader who asked for a large file and reads none."""
    upstream.file_bytes, ports = FILE_BYTES, [upstream.port]
    with (
        running_proxy(name, api=ports, pages=ports, folder=folder) as proxy,
        proxy.wire() as reader,
    ):
        reader.sendall(f"GET {path} HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
        yield proxy, reader


@pytest.mark.parametrize("name", PROXIES)
def test_a_reader_who_stops_reading_a_file_holds_no_process(
    name: str, upstreams: list[Upstream], tmp_path: Path
) -> None:
    """Each proxy gives up the reader after a time."""
    with reader_of_a_file(name, upstreams[0], tmp_path, STATEMENT):
        assert upstreams[0].is_free.wait(20)


@pytest.mark.parametrize("path", [STATEMENT, LIST])
@pytest.mark.parametrize("name", PROXIES)
def test_a_steady_reader_gets_the_whole_file(
    name: str, path: str, upstreams: list[Upstream], tmp_path: Path
) -> None:
    """The file takes longer than each limit of time that a test proxy has."""
    with reader_of_a_file(name, upstreams[0], tmp_path, path) as (_, reader):
        began, received = time.monotonic(), 0
        while received < FILE_BYTES and (part := reader.recv(16 * KIB)):
            received += len(part)
            time.sleep(max(0, began + 8 * received / FILE_BYTES - time.monotonic()))

        assert received >= FILE_BYTES
        assert time.monotonic() - began > 7


@pytest.mark.parametrize("path", [STATEMENT, ORDERS])
def test_nginx_writes_no_response_to_its_disk(
    path: str, upstreams: list[Upstream], tmp_path: Path
) -> None:
    with reader_of_a_file("nginx", upstreams[0], tmp_path, path) as (proxy, _):
        upstreams[0].is_free.wait(1)
        assert "buffered to a temporary file" not in proxy.log
