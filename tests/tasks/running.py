"""Runs real workers, a real scheduler and a broker, which a test may kill.

Start them from the main thread (embedded/processes.py says why). They use the database of the
running test, so the test needs `django_db(transaction=True)`.
"""

import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import redis
from celery import Task
from kombu import Connection

from embedded.commands import services
from embedded.environment import PROJECT, Addresses
from embedded.locks import FileLock
from embedded.processes import Process
from embedded.valkey import running_valkey
from tests.live import HOST, database_url, with_settings
from tests.quick_starts import start_in

TIMEOUT = 150.0  # seconds: a worker reconnects to its broker with growing pauses


def wait_until(condition: Callable[[], object], what: str, timeout: float = TIMEOUT) -> None:
    """Waits for a condition. `what` describes it in the message of the failure."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout} s: {what}"
        time.sleep(0.05)


class Broker:
    """A Valkey that a test can kill, restart with the same data and port, or freeze."""

    def __init__(self, folder: Path, lock: FileLock) -> None:
        self._folder = folder
        self._lock = lock
        self._addresses = Addresses.fresh()
        self._running = ExitStack()
        self._process: Process | None = None

    @property
    def url(self) -> str:
        return self._addresses.urls()["CELERY_BROKER_URL"]

    @property
    def pid(self) -> int:
        """0 while it does not run."""
        return self._process.pid if self._process else 0

    @property
    def password(self) -> str:
        return self._addresses.valkey_password

    def start(self) -> None:
        self._process = self._running.enter_context(
            running_valkey(
                self._folder / "valkey",
                port=self._addresses.valkey_port,
                password=self.password,
                lock=self._lock,
            )
        )

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        self._running.close()

    def freeze(self) -> None:
        """Stops the process. Its connections stay open and the kernel accepts new ones."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        if self._process is not None and self._process.exit_code() is None:
            self.thaw()
        self._running.close()

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url, socket_timeout=5)

    def waiting(self) -> int:
        """The number of messages that no worker has received."""
        with self.client() as client:
            return sum(int(client.llen(name)) for name in ("celery", "imports", "files"))

    def unacknowledged(self) -> int:
        """The number of messages that a worker has received and not acknowledged."""
        with self.client() as client:
            return int(client.hlen("unacked"))

    def send(self, task: "Task[Any, Any]", *arguments: object, times: int = 1) -> None:
        """Sends messages to this broker, whatever the broker of the test process is."""
        with Connection(self.url) as connection:
            for _ in range(times):
                task.apply_async(arguments, producer=connection.Producer())

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.popen.send_signal(number)


def every_second(*entries: str) -> dict[str, str]:
    """The environment of a scheduler that queues these entries of the schedule every second."""
    return with_settings(CELERY_BEAT_SCHEDULE={name: {"schedule": 1} for name in entries})


class Celery:
    """One worker or scheduler with the command of `make run`, and its log.

    `project` is the checkout whose code it runs.
    """

    def __init__(
        self,
        name: str,
        *,
        folder: Path,
        environment: Mapping[str, str],
        app: str = "config",
        project: Path = PROJECT,
    ) -> None:
        service = next(one for one in services(host=HOST, port=0, var=folder) if one.name == name)
        self.command = [app if word == "config" else str(word) for word in service.command]
        if name != "beat":
            self.command.append(f"--hostname={folder.name}@%h")
        self._folder = folder
        self._log = folder / "log"
        self._environment = environment
        self._project = project
        self._process: Process | None = None

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def events(self, name: str) -> list[dict[str, Any]]:
        """The log lines with this `event`."""
        lines = (json.loads(line) for line in self.log.splitlines() if line.startswith("{"))
        return [line for line in lines if line.get("event") == name]

    @property
    def pid(self) -> int:
        """0 while it does not run."""
        return self._process.pid if self._process else 0

    def schedule_files(self) -> list[Path]:
        """The files of a scheduler's state. Their names depend on the machine."""
        return list(self._folder.glob("celerybeat-schedule*"))

    def children(self) -> list[int]:
        """The ids of the child processes that run the tasks."""
        return [
            int(pid)
            for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        ]

    def start(self) -> None:
        self._process = start_in(
            self._project, "celery", self.command, environment=self._environment, log=self._log
        )

    def exit_code(self) -> int | None:
        return self._process.exit_code() if self._process else None

    def kill(self) -> None:
        """Kills the worker and its children at once, like a machine that crashes."""
        if self._process is not None:
            with suppress(ProcessLookupError):  # the process has already ended
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None


class Crew:
    """Starts workers and schedulers on one broker."""

    def __init__(self, broker_url: str, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = {
            **os.environ,
            "DATABASE_URL": database_url(),
            "CELERY_BROKER_URL": broker_url,
            "METRICS_DIR": str(folder / "metrics"),
            # Django's checks load every page, which takes a third of a start. `make run` has them.
            "CELERY_SKIP_CHECKS": "1",
            **environment,
        }
        self.all: list[Celery] = []

    def worker(self, *, app: str = "config", **environment: str) -> Celery:
        return self._start("worker", environment, app)

    def impatient_worker(self) -> Celery:
        """A worker that takes over the message of a dead one after three seconds. RabbitMQ gives
        it away at once, and has no such option."""
        if self._environment["CELERY_BROKER_URL"].startswith("amqp"):
            return self.worker()
        timeout = {"visibility_timeout": 3}
        return self._start("worker", with_settings(CELERY_BROKER_TRANSPORT_OPTIONS=timeout))

    def imports_worker(self, *, app: str = "config", **environment: str) -> Celery:
        """A worker that reads the files that staff upload."""
        return self._start("imports", environment, app)

    def beat(self, *often: str, **environment: str) -> Celery:
        """A scheduler that queues these entries of the schedule every second."""
        return self._start("beat", {**every_second(*often), **environment})

    def _start(self, name: str, environment: Mapping[str, str], app: str = "config") -> Celery:
        folder = self._folder / f"{name}{len(self.all)}"
        folder.mkdir()
        celery = Celery(
            name, folder=folder, environment={**self._environment, **environment}, app=app
        )
        self.all.append(celery)
        celery.start()
        return celery

    def stop(self) -> None:
        for celery in self.all:
            celery.kill()

    @property
    def logs(self) -> str:
        return "".join(celery.log for celery in self.all)


@contextmanager
def running_broker() -> Iterator[Broker]:
    with (
        tempfile.TemporaryDirectory(prefix="voucher-broker-") as place,
        FileLock(Path(place) / "servers.lock") as lock,
    ):
        broker = Broker(Path(place), lock)
        broker.start()
        try:
            yield broker
        finally:
            broker.stop()


@contextmanager
def running_crew(broker_url: str, **environment: str) -> Iterator[Crew]:
    """Kills every worker at the end and prints the logs, which pytest shows for a failed test."""
    with tempfile.TemporaryDirectory(prefix="voucher-celery-") as place:
        crew = Crew(broker_url, Path(place), environment)
        try:
            yield crew
        finally:
            crew.stop()
            print(crew.logs)  # noqa: T201
