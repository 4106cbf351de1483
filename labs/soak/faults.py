"""The faults, and when they happen.

Each round has every fault once, in an order and with pauses drawn from the seed. A fault begins,
lasts for a moment and is healed: what was killed is started again. Now and then the next fault
begins at once, before the service has recovered.
"""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from labs.soak.service import WINDOW, Service
from labs.soak.watch import Happened


class Merchants(Protocol):
    """The part of the load generator that faults need."""

    def send_slowly(self, number: int, seconds: float) -> None: ...


@dataclass
class Faults:
    """Carries out faults. `ship_logs` is called before a log is lost with its server."""

    service: Service
    merchants: Merchants
    ship_logs: Callable[[], None]
    seed: int
    pause: float  # seconds between two faults, on average
    longest: float  # seconds that something stays dead; silence, clocks and a full disk take longer

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self.kinds: dict[str, Callable[[float], None]] = {
            "kill a web process": self._kill_web_process,
            "kill a web host": partial(self._restart, self.service.hosts[0].web),
            "kill a worker": partial(self._restart, self.service.hosts[0].worker),
            "kill the scheduler": partial(self._restart, self.service.beat),
            "kill the bot": partial(self._restart, self.service.bot, wait=False),
            "kill Valkey": self._kill_valkey,
            "silence Valkey": self._silence_valkey,
            "kill PostgreSQL": self._kill_postgres,
            "step the clock of PostgreSQL": self._step_database_clock,
            "step the clock of the hosts": self._step_host_clock,
            "fill the log disk": self._fill_log_disk,
            "slow clients": self._slow_clients,
        }
        if self.service.clock.library is None:
            self.kinds = {kind: do for kind, do in self.kinds.items() if "clock" not in kind}

    def happen(self) -> Iterator[Happened]:
        """Carries out one fault for each step of the iteration, without end."""
        while True:
            order = list(self.kinds)
            self._chance.shuffle(order)
            for kind in order:
                if self._chance.random() < 0.8:
                    time.sleep(min(self._chance.expovariate(1 / self.pause), 4 * self.pause))
                began = time.time()
                self.kinds[kind](self._chance.uniform(0.15, 1.0) * self.longest)
                yield Happened(kind, began, time.time())

    def heal(self) -> None:
        """Starts what is not running and sets all clocks right."""
        service = self.service
        service.clock.set(0)
        service.host_clock.set(0)
        for celery in (service.beat, *(host.worker for host in service.hosts)):
            if celery.exit_code() is not None or not celery.pid:
                celery.start()
        if service.bot.exit_code() is not None or not service.bot.pid:
            service.bot.start(wait=False)

    def _kill_web_process(self, seconds: float) -> None:
        """kill -9 of one process; granian starts another."""
        if processes := self.service.hosts[0].web_processes():
            with suppress(ProcessLookupError):
                os.kill(self._chance.choice(processes), signal.SIGKILL)
        time.sleep(seconds)

    def _restart(self, part: Any, seconds: float, **options: bool) -> None:
        part.kill()
        time.sleep(seconds)
        part.start(**options)

    def _kill_valkey(self, seconds: float) -> None:
        self.ship_logs()
        self._restart(self.service.broker, seconds)

    def _silence_valkey(self, seconds: float) -> None:
        """It accepts connections and never answers."""
        self.service.broker.freeze()
        time.sleep(2 * seconds)
        self.service.broker.thaw()

    def _kill_postgres(self, seconds: float) -> None:
        """All processes at once; what they had not given to the kernel is lost."""
        self.service.postgres.kill()
        self.ship_logs()
        time.sleep(seconds)
        self.service.start_postgres()

    def _step_database_clock(self, seconds: float) -> None:
        """Ahead: keys are taken over while their purchase runs. Back: keys wait longer."""
        self.service.clock.set(self._chance.choice((-1, 1)) * self._chance.randint(1, 4) * WINDOW)
        time.sleep(self.longest + seconds)
        self.service.clock.set(0)

    def _step_host_clock(self, seconds: float) -> None:
        """Up to a day ahead or back."""
        clock = self.service.host_clock
        clock.set(self._chance.choice((-1, 1)) * self._chance.randint(60, 86_400))
        time.sleep(self.longest + seconds)
        clock.set(0)

    def _fill_log_disk(self, seconds: float) -> None:
        self.service.disk.fill()
        time.sleep(0.5 * self.longest + seconds)
        self.service.disk.empty()

    def _slow_clients(self, seconds: float) -> None:
        arriving = 0.5 * self.longest + 2 * seconds
        self.merchants.send_slowly(self._chance.randint(1, 3), arriving)
        time.sleep(arriving)
