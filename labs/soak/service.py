"""The whole service on this machine, every part of which can be killed and started again.

Two hosts have web processes and a Celery worker each. Host 0 is killed in every way. Host 1 is the
witness: it sees everything else, and lives from the beginning to the end, so its memory can be
compared over time.
"""

import os
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from embedded.locks import FileLock
from labs.installation.postgres import DurablePostgres, children_of
from tests.clock import Clock, build_clock
from tests.live import LiveServer, as_service, with_settings
from tests.quick_starts import start_server
from tests.tasks.running import Broker, Celery
from tests.telegram.fake_bot_api.server import BotApi, running_bot_api
from tests.telegram.running import Bot

WITNESS = 1
SPARE = 1 << 20  # bytes that logs may grow by while the disk is being filled
WINDOW = 5  # seconds: keys are taken over often
CHANGES: dict[str, Any] = {
    "IDEMPOTENCY_IN_PROGRESS_SECONDS": WINDOW,
    "CELERY_BROKER_TRANSPORT_OPTIONS": {"visibility_timeout": 31},
    "CELERY_BEAT_SCHEDULE": {"sweep-refunds": {"schedule": 5}},
    "TELEGRAM_MESSAGES_PER_MINUTE": 100_000,
}


class LogDisk:
    """A tmpfs with all logs, in a mount namespace of this run. It can be filled."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"
        self._size = f"{megabytes}m"
        folder.mkdir()
        self._mount("tmpfs", "-t", "tmpfs", "-o", f"size={self._size}")

    def fill(self) -> None:
        """Leaves no free page. What still fits are the ends of the last pages of each file."""
        used = os.statvfs(self.folder)
        size = (used.f_blocks - used.f_bfree) * used.f_bsize + SPARE
        self._mount("tmpfs", "-o", f"remount,size={size}")
        with suppress(OSError), self._ballast.open("wb", buffering=0) as file:
            while file.write(bytes(4096)):  # until there is no space left
                pass

    def empty(self) -> None:
        self._mount("tmpfs", "-o", f"remount,size={self._size}")
        self._ballast.unlink()

    def link(self, name: str, log: Path) -> None:
        """Lets a process that opens `log` write to the disk."""
        (self.folder / name).touch()
        log.symlink_to(self.folder / name)

    def _mount(self, what: str, *options: str) -> None:
        subprocess.run(["mount", *options, what, self.folder], check=True)


class Host:
    """Web processes and a worker that share one machine."""

    def __init__(
        self,
        number: int,
        *,
        folder: Path,
        disk: LogDisk,
        environment: Mapping[str, str],
        workers: int,
    ) -> None:
        self.number = number
        web, worker = folder / f"web{number}", folder / f"worker{number}"
        web.mkdir()
        worker.mkdir()
        disk.link(f"web{number}.log", web / "web.log")
        disk.link(f"worker{number}.log", worker / "log")
        self.web = LiveServer(
            {**environment, **with_settings("config.settings_api", **CHANGES)},
            workers=workers,
            folder=web,
        )
        self.worker = Celery("worker", folder=worker, environment={**os.environ, **environment})

    def web_processes(self) -> list[int]:
        """The ids of granian's workers."""
        return children_of(self.web.pid)


class Service:
    """Everything. Start and restart its parts from the main thread only."""

    def __init__(self, stack: ExitStack, folder: Path, disk: LogDisk, *, workers: int) -> None:
        self.folder, self.disk = folder, disk
        lock = stack.enter_context(FileLock(folder / "servers.lock"))
        assert lock.acquire()
        self.clock = Clock(folder / "clock", build_clock(folder))
        self.host_clock = Clock(folder / "clock-of-hosts", self.clock.library)
        with _set(self.host_clock.environment):
            start_server()  # all programs of the hosts are forks of it, and read its clock
        self.postgres = DurablePostgres(folder, lock)
        stack.callback(self.postgres.stop)
        self.start_postgres()
        self.postgres.prepare()
        self.broker = Broker(folder, lock)
        stack.callback(self.broker.stop)
        self.broker.start()
        self.telegram: BotApi = stack.enter_context(running_bot_api())
        self.environment = self._environment()
        os.environ.update(self.environment)
        self._make(stack, workers)

    def _environment(self) -> dict[str, str]:
        return {
            "DATABASE_URL": as_service(self.postgres.url),
            "REDIS_URL": self.broker.url.removesuffix("1") + "0",
            "CELERY_BROKER_URL": self.broker.url,
            **with_settings(**CHANGES),
            "METRICS_DIR": str(self.folder / "metrics"),
            "LOG_LEVEL": "INFO",
            "TELEGRAM_BOT_TOKEN": self.telegram.token,
            "TELEGRAM_API_URL": self.telegram.url,
        }

    def _make(self, stack: ExitStack, workers: int) -> None:
        self.hosts = [
            Host(
                number,
                folder=self.folder,
                disk=self.disk,
                environment=self.environment,
                workers=workers,
            )
            for number in (0, 1)
        ]
        beat, bot = self.folder / "beat", self.folder / "bot"
        beat.mkdir()
        bot.mkdir()
        self.disk.link("beat.log", beat / "log")
        self.disk.link("bot.log", bot / "bot.log")
        everything = {**os.environ, **self.environment}
        self.beat = Celery("beat", folder=beat, environment=everything)
        self.bot = Bot(self.telegram, bot, everything)
        for host in self.hosts:
            stack.callback(host.web.kill)
            stack.callback(host.worker.kill)
        stack.callback(self.beat.kill)
        stack.callback(self.bot.kill)

    def start(self) -> None:
        """Starts all processes but the servers."""
        self.beat.start()
        self.bot.start(wait=False)
        for host in self.hosts:
            host.worker.start()
        for host in self.hosts:
            host.web.start()

    def start_postgres(self) -> None:
        """The server's processes read the database's clock."""
        with _set(self.clock.environment):
            self.postgres.start()

    def stop(self) -> None:
        """Ends everything but the servers, as an administrator does."""
        self.bot.kill()
        ending = [self.beat.stop]
        for host in self.hosts:
            ending += [host.web.stop, host.worker.stop]
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda stop: stop(), ending))

    def processes(self) -> dict[str, list[int]]:
        """The ids of all processes by kind; those of the witness have a kind of their own."""
        found: dict[str, list[int]] = {
            "postgres": family_of(self.postgres.pid),
            "valkey": family_of(self.broker.pid),
            "beat": family_of(self.beat.pid),
            "bot": family_of(self.bot.pid),
        }
        for host in self.hosts:
            witness = "witness " if host.number == WITNESS else ""
            found[f"{witness}web"] = children_of(host.web.pid)
            found[f"{witness}worker"] = family_of(host.worker.pid)
        return found


@contextmanager
def log_disk(folder: Path, *, megabytes: int) -> Iterator[LogDisk]:
    """A log disk below `folder`. The mount ends with the namespace of this process."""
    yield LogDisk(folder / "logs", megabytes)


@contextmanager
def _set(environment: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def family_of(pid: int) -> list[int]:
    """The process and its children; nothing for 0, a process that does not run."""
    return [pid, *children_of(pid)] if pid else []
