"""The real bot, a real worker and the fake Bot API server, and staff working in a chat."""

import json
import os
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from core import queue
from embedded.commands import services
from embedded.environment import PROJECT
from embedded.processes import Process
from operators.telegram.models import PlatformSettings, TelegramLink
from tests.factories import Merchant, buy_topup, make_merchant, make_operator, make_topup_product
from tests.live import HOST, database_url, with_settings
from tests.quick_starts import QuickProcess
from tests.tasks.running import Broker, Crew, running_broker, running_crew
from tests.telegram.fake_bot_api.faults import Disorder
from tests.telegram.fake_bot_api.objects import Answer, Chat, Message, Person, Press
from tests.telegram.fake_bot_api.server import BotApi, running_bot_api
from topups.fulfilment.fulfilments import Operator
from topups.models import Channel, Fulfilment

STOP_PATIENCE = 60.0


class Bot:
    """`manage.py run_bot` as `make run` starts it."""

    def __init__(self, api: BotApi, folder: Path, environment: Mapping[str, str]) -> None:
        self._api = api
        self._command = next(
            one.command for one in services(host=HOST, port=0, var=folder) if one.name == "bot"
        )
        self._environment = {**os.environ, **environment}
        self._log = folder / "bot.log"
        self._log.touch()
        self._process: Process | None = None

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def events(self, name: str) -> list[dict[str, Any]]:
        """The lines of the log with this `event`."""
        lines = (json.loads(line) for line in self.log.splitlines() if line.startswith("{"))
        return [line for line in lines if line.get("event") == name]

    def start(self, *, wait: bool = True) -> None:
        """Starts it and waits until it listens."""
        before = len(self.events("telegram_bot_started"))
        self._process = QuickProcess(
            "bot",
            self._command,
            environment=self._environment,
            folder=PROJECT,
            log=self._log,
        )
        if wait:
            self._api.wait_for(
                lambda: (
                    len(self.events("telegram_bot_started")) > before
                    or self.exit_code() is not None
                ),
                "the bot starts",
                poll=True,
            )
            assert self.exit_code() is None, self.log

    @property
    def pid(self) -> int:
        """0 while it does not run."""
        return self._process.pid if self._process else 0

    @property
    def started(self) -> bool:
        return self._process is not None

    def exit_code(self) -> int | None:
        return self._process.exit_code() if self._process else None

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def terminate(self) -> None:
        """SIGTERM, without waiting."""
        assert self._process is not None
        self._process.popen.terminate()

    def stop(self) -> int | None:
        """SIGTERM, and waits; returns the exit code, or None if it was not running."""
        if self._process is None:
            return None
        self.terminate()
        code = self._process.popen.wait(STOP_PATIENCE)
        self._process = None
        return code


@dataclass
class Telegram:
    """The processes of all tests with a bot. The bot runs only if a test starts it."""

    api: BotApi
    broker: Broker
    crew: Crew
    environment: dict[str, str]
    bot: Bot


@contextmanager
def running_telegram() -> Iterator[Telegram]:
    """A Bot API server, a broker, a worker, and a bot that is not started yet."""
    with running_bot_api() as api, running_broker() as broker:
        environment = {
            "DATABASE_URL": database_url(),
            "CELERY_BROKER_URL": broker.url,
            "TELEGRAM_BOT_TOKEN": api.token,
            "TELEGRAM_API_URL": api.url,
            **with_settings(TELEGRAM_MESSAGES_PER_MINUTE=100_000),
        }
        with (
            running_crew(broker.url, LOG_LEVEL="WARNING", **environment) as crew,
            a_bot(api, environment) as bot,
        ):
            crew.worker()
            yield Telegram(api, broker, crew, environment, bot)


@contextmanager
def a_bot(api: BotApi, environment: Mapping[str, str]) -> Iterator[Bot]:
    """A bot. Its log is printed for pytest to show after a failure, and must not hold the token."""
    with tempfile.TemporaryDirectory(prefix="voucher-bot-") as folder:
        bot = Bot(api, Path(folder), environment)
        try:
            yield bot
        finally:
            bot.kill()
            print(bot.log)  # noqa: T201
            assert api.token.partition(":")[2] not in bot.log


@dataclass
class Desk:
    """The operators' chat of one test, and its staff."""

    telegram: Telegram
    group: Chat

    @property
    def bot(self) -> Bot:
        return self.telegram.bot

    @property
    def api(self) -> BotApi:
        return self.telegram.api

    def staff(self, name: str, *, senior: bool = False) -> tuple[Person, Operator]:
        """A linked member of staff, with the name as username."""
        person = self.api.add_user(name)
        operator = make_operator(senior=senior, channel=Channel.TELEGRAM, username=name)
        TelegramLink.objects.create(user=operator.user, telegram_user_id=person.id)
        return person, operator

    def order(self, merchant: Merchant | None = None, **fields: Any) -> tuple[Fulfilment, Message]:
        """A new order and its announcement."""
        product = make_topup_product(announce=True, **fields)
        reference = buy_topup(merchant or make_merchant(), product)
        return Fulfilment.objects.get(order_reference=reference), self.announcement(reference)

    def announcement(self, reference: str) -> Message:
        """Waits for the message of this order."""

        def find() -> Message | None:
            messages = self.api.bot_messages(self.group)
            return next((one for one in messages if reference in one.text), None)

        found: Message = self.api.wait_for(find, f"{reference} is announced")
        return found

    def press(self, person: Person, message: Message, label: str) -> Answer:
        """Presses as soon as the message has the button, and waits for the answer."""
        return self.begin(person, message, label).wait()

    def begin(self, person: Person, message: Message, label: str) -> Press:
        """Presses as soon as the message has the button."""
        self.api.wait_for(lambda: label in message.buttons, f"{label!r} in {message.buttons}")
        return self.api.press(person, message, label)

    def ask(
        self, person: Person, chat: Chat, text: str, *, reply_to: Message | None = None
    ) -> Message:
        """Types, and waits for the bot's answer."""
        before = len(self.api.bot_messages(chat))
        self.api.type(person, chat, text, reply_to=reply_to)
        self.api.wait_for(lambda: len(self.api.bot_messages(chat)) > before, f"answer to {text}")
        return self.api.bot_messages(chat)[before]

    def shows(self, message: Message, words: str) -> None:
        """Waits until the message says so."""
        self.api.wait_for(lambda: words in message.text, f"{words!r} in {message.text!r}")


@contextmanager
def open_desk(telegram: Telegram, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """Switches announcing on, and lets this process queue tasks for the worker."""
    api = telegram.api
    api.clear_faults()
    api.disorder, api.query_seconds = Disorder(), 15.0
    settings.TELEGRAM_BOT_TOKEN, settings.TELEGRAM_API_URL = api.token, api.url
    monkeypatch.setenv("CELERY_BROKER_URL", telegram.broker.url)
    monkeypatch.setattr(queue, "pause", queue.Pause())
    group = api.add_group("Operators")
    PlatformSettings.objects.create(announcing=True, chat_id=group.id)
    yield Desk(telegram, group)
    api.clear_faults()
    api.drop_updates()
