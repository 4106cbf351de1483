"""A real web server for tests: granian as `make run` starts it, over real HTTP.

    with live_server() as server:
        merchant = Merchant(make_client(account), http=server.http)

It serves the database of the running test, so the test needs `django_db(transaction=True)`: what
is never committed, no other process can see.
"""

import http.client
import json
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

from django.db import connection

from embedded.commands import services
from embedded.environment import FOR_TESTED_SERVICE, PROJECT
from embedded.processes import Process, free_port
from embedded.supervisor import STOP_TIMEOUT
from tests.answers import check_answer
from tests.quick_starts import start_in

HOST = "127.0.0.1"
START_PATIENCE = 180.0
ANSWER_PATIENCE = 60.0
# A process of production that serves only the API. It starts in half the time.
API = {"DJANGO_SETTINGS_MODULE": "config.settings_api"}
IDLE_SECONDS = 10.0  # granian closes a connection that is idle for 30 seconds


def with_settings(module: str = "config.settings", **changes: Any) -> dict[str, str]:
    """The environment of a process with other values than those of this settings module.

    A dict changes entries: `CELERY_BEAT_SCHEDULE={"sweep-refunds": {"schedule": 1}}`.
    """
    return {
        "DJANGO_SETTINGS_MODULE": "tests.changed_settings",
        "CHANGED_SETTINGS": json.dumps([module, changes]),
    }


@dataclass(frozen=True)
class Answer:
    """An HTTP answer, with what tests use of Django's test response."""

    status_code: int
    headers: http.client.HTTPMessage
    content: bytes

    def json(self) -> Any:
        return json.loads(self.content)

    def __getitem__(self, header: str) -> str:
        value = self.headers[header]
        if value is None:
            raise KeyError(header)
        return str(value)

    def __contains__(self, header: str) -> bool:
        return header in self.headers


class LiveHttp:
    """What tests use of Django's test client, over the network; each thread its own connection.

    A lost connection raises OSError or http.client.HTTPException, and nothing is sent twice.
    """

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._connections: dict[int, http.client.HTTPConnection] = {}
        self._last_used: dict[int, float] = {}

    def get(
        self,
        path: str,
        query: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        target = f"{path}?{urlencode(query)}" if query else path
        return self.request("GET", target, None, headers or {})

    def post(
        self,
        path: str,
        data: str | bytes,
        *,
        content_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        body = data.encode() if isinstance(data, str) else data
        return self.request("POST", path, body, {"Content-Type": content_type, **(headers or {})})

    def request(
        self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Answer:
        connection = self._connection()
        try:
            connection.request(
                method, quote(target, safe="/?&=%+:,.-_~"), body=body, headers=dict(headers)
            )
            response = connection.getresponse()
            answer = Answer(response.status, response.headers, response.read())
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        check_answer(
            method,
            unquote(target.partition("?")[0]),
            status=answer.status_code,
            headers=answer.headers,
            body=answer.content,
        )
        return answer

    def close(self) -> None:
        """Ends this thread's connection; the next request makes a new one."""
        if mine := self._connections.pop(threading.get_ident(), None):
            mine.close()

    def close_all(self) -> None:
        """Ends the connections of all threads, which must have finished."""
        while self._connections:
            self._connections.popitem()[1].close()

    def _connection(self) -> http.client.HTTPConnection:
        thread, now = threading.get_ident(), time.monotonic()
        if now - self._last_used.get(thread, now) > IDLE_SECONDS:
            self.close()
        self._last_used[thread] = now
        return self._connections.setdefault(
            thread, http.client.HTTPConnection(*self._address, timeout=ANSWER_PATIENCE)
        )


class LiveServer:
    """One granian, which can be killed and started again on the same port.

    `project` is the checkout whose code it runs.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        workers: int,
        folder: Path,
        project: Path = PROJECT,
    ) -> None:
        self.port = free_port()
        self.http = LiveHttp(HOST, self.port)
        self.metrics = folder / "metrics"
        self._environment = {
            **os.environ,
            "PUBLIC_URL": self.public_url,
            "METRICS_DIR": str(self.metrics),
            **environment,
            "GRANIAN_WORKERS": str(workers),
        }
        self._folder = folder
        self._project = project
        self._process: Process | None = None

    @property
    def base_url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def public_url(self) -> str:
        """The same server under a name: passkeys belong to names, not to addresses."""
        return f"http://localhost:{self.port}"

    @property
    def pid(self) -> int:
        """0 while it does not run."""
        return self._process.pid if self._process else 0

    @property
    def log(self) -> str:
        """All it and its workers have printed, one JSON object a line from the application."""
        return (self._folder / "web.log").read_text(errors="replace")

    def start(self) -> None:
        """Starts it and waits until it answers. From the main thread only."""
        web = next(
            service
            for service in services(host=HOST, port=self.port, var=self._folder)
            if service.name == "web"
        )
        self._process = start_in(
            self._project,
            web.name,
            web.command,
            environment=self._environment,
            log=self._folder / "web.log",
        )
        deadline = time.monotonic() + START_PATIENCE
        while not self._answers():
            code = self._process.exit_code()
            assert code is None, f"the web server ended ({code}):\n{self.log}"
            assert time.monotonic() < deadline, f"the web server does not answer:\n{self.log}"
            time.sleep(0.05)

    def kill(self) -> None:
        """kill -9 of the server and all its workers at once."""
        if self._process is not None:
            with suppress(ProcessLookupError):  # all of them have already ended
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def terminate(self) -> None:
        """SIGTERM, as a deployment does it; returns at once."""
        if self._process is not None:
            self._process.popen.terminate()

    def stop(self) -> None:
        """SIGTERM, and waits until it has ended."""
        self.http.close_all()
        if self._process is not None:
            self._process.stop(timeout=STOP_TIMEOUT)
            self._process = None

    def _answers(self) -> bool:
        probe = LiveHttp(HOST, self.port)
        try:
            return probe.get("/healthz").status_code == HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            probe.close()


@contextmanager
def live_server(
    environment: Mapping[str, str] | None = None, *, workers: int = 2
) -> Iterator[LiveServer]:
    """A running web server on the test's database; `environment` overrides settings."""
    with tempfile.TemporaryDirectory(prefix="voucher-web-") as folder:
        server = LiveServer(
            {"DATABASE_URL": database_url(), **(environment or {})},
            workers=workers,
            folder=Path(folder),
        )
        try:
            server.start()
            yield server
        finally:
            server.stop()


def database_url() -> str:
    """Where the present test's data is, for processes of the service: they have its role."""
    return as_service(owner_url())


def owner_url() -> str:
    """The same database for the test itself, which may damage what it likes: as its owner."""
    names = ("USER", "PASSWORD", "HOST", "PORT", "NAME")
    user, password, host, port, name = (
        quote(str(connection.settings_dict[name]), safe="") for name in names
    )
    return f"postgresql://{user}:{password}@{host}:{port}/{name}"


def as_service(url: str) -> str:
    """The URL with the role of the service, whose password is the same on all servers."""
    service = urlsplit(os.environ[FOR_TESTED_SERVICE]).netloc.rpartition("@")[0]
    at = urlsplit(url)
    return at._replace(netloc=f"{service}@{at.netloc.rpartition('@')[2]}").geturl()
