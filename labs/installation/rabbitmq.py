"""Runs Debian's RabbitMQ as a child process, with its files in a temporary folder.

Tests that use it have the marker `rabbitmq` (tests/programs.py). Tests with a parameter `broker` of
BROKERS run with Valkey and with RabbitMQ.
"""

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from celery import current_app
from kombu import Connection
from kombu.exceptions import OperationalError

from embedded.processes import Process, free_port
from tests.live import HOST
from tests.programs import RABBITMQ
from tests.tasks.running import wait_until

BROKERS = ("valkey", pytest.param("rabbitmq", marks=pytest.mark.rabbitmq))


class Rabbit:
    """A RabbitMQ that a test can kill and restart with the same data and port."""

    def __init__(self, folder: Path, *, patience: float | None = None) -> None:
        """patience: seconds in which a worker must acknowledge a message; 30 minutes if None."""
        self._folder = folder
        self._port, self._names_port = free_port(), free_port()
        self._environment = {
            **os.environ,
            "HOME": str(folder),  # for the Erlang cookie
            "ERL_EPMD_PORT": str(self._names_port),
            "ERL_EPMD_ADDRESS": HOST,
            "RABBITMQ_NODENAME": f"voucher{self._port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": HOST,
            "RABBITMQ_NODE_PORT": str(self._port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_CONFIG_FILE": str(folder / "none"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        }
        if patience is not None:
            self._environment["RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"] = (
                f"-rabbit consumer_timeout {patience * 1000:.0f} -rabbit channel_tick_interval 1000"
            )
        self._process: Process | None = None
        names = ["epmd", "-port", str(self._names_port), "-address", HOST]
        with (folder / "names.log").open("wb") as output:
            self._names = Process("epmd", names, output=output)

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@{HOST}:{self._port}//"

    def start(self) -> None:
        """Starts the server and waits until it accepts connections. Main thread only."""
        with (self._folder / "rabbitmq.log").open("ab") as output:
            self._process = Process(
                "rabbitmq", [RABBITMQ], environment=self._environment, output=output
            )
        wait_until(self._answers, "RabbitMQ has started")

    def kill(self) -> None:
        """Kills the server and its child processes."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
            time.sleep(0.1)

    def stop(self) -> None:
        self.kill()
        self._names.stop()

    def waiting(self) -> int:
        """The number of messages that no worker has received, with those of dead workers."""
        with Connection(self.url) as connection, connection.channel() as channel:
            name = current_app.conf.task_default_queue
            queue = channel.queue_declare(queue=name, passive=True)  # type: ignore[attr-defined]
            return int(queue.message_count)

    def unacknowledged(self) -> int:
        """None: the messages of dead workers wait again at once."""
        return 0

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.exit_code() is None, (self._folder / "rabbitmq.log").read_text()
        try:
            with Connection(self.url, connect_timeout=5) as connection:
                connection.ensure_connection(max_retries=1, interval_start=0)
        except (OperationalError, OSError):
            return False
        return True


@contextmanager
def running_rabbitmq(*, patience: float | None = None) -> Iterator[Rabbit]:
    with tempfile.TemporaryDirectory(
        prefix="voucher-rabbitmq-", ignore_cleanup_errors=True
    ) as folder:
        rabbit = Rabbit(Path(folder), patience=patience)
        try:
            rabbit.start()
            yield rabbit
        finally:
            rabbit.stop()
