"""The whole service with DEBUG logs, and everything that it writes to."""

import io
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiosmtpd.controller import Controller
from django.conf import settings
from django.core.management import CommandError, call_command

from core import queue
from embedded.binaries import postgres_binary
from embedded.processes import free_port
from labs.canaries.canaries import Canaries
from labs.soak.verdict import dump_cache
from tests.live import HOST, LiveServer, database_url, live_server, owner_url
from tests.merchants.sign_in.test_emails_are_sent import MailServer
from tests.metrics.scraping import read
from tests.tasks.running import Broker, Celery, running_broker, running_crew
from tests.telegram.fake_bot_api.server import BotApi, running_bot_api
from tests.telegram.running import Bot, a_bot
from tests.telemetry.receiver import Receiver, running_receiver


@dataclass
class Running:
    """The processes, and what they have written."""

    server: LiveServer
    worker: Celery
    imports: Celery
    bot: Bot
    broker: Broker
    telegram: BotApi
    mail: MailServer
    receiver: Receiver
    canaries: Canaries
    error_pages: list[bytes] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)  # by commands, on both streams

    def command(self, *words: object) -> None:
        """Runs a command of manage.py in this process, and keeps what it prints."""
        out, errors = io.StringIO(), io.StringIO()
        with redirect_stderr(errors):
            try:
                call_command(*map(str, words), stdout=out, stderr=errors)
            except (CommandError, SystemExit) as error:  # a refusal, which manage.py prints
                errors.write(str(error))
        self.printed += [out.getvalue(), errors.getvalue()]

    def sinks(self) -> dict[str, bytes]:
        """Everything that was written, by where."""
        return {
            "log of the web process": self.server.log.encode(),
            "log of the worker": self.worker.log.encode(),
            "log of the imports worker": self.imports.log.encode(),
            "log of the bot": self.bot.log.encode(),
            "output of commands": "\n".join(self.printed).encode(),
            "error pages": b"\n".join(self.error_pages),
            "traces": b"\n".join(self.receiver.traces),
            "error reports": b"\n".join(self.receiver.envelopes),
            "metrics": self._metrics(),
            "cache and broker": dump_cache(self.broker.url),
            "emails": b"\n".join(message.as_bytes() for message in self.mail.messages)
            + b"\n".join(text_of(message) for message in self.mail.messages),
            "Telegram": self._telegram(),
            "database": dump_database(),
        }

    def _metrics(self) -> bytes:
        files = b"".join(path.read_bytes() for path in self.server.metrics.glob("*"))
        return files + read("/metrics").encode() + read("/metrics/service").encode()

    def _telegram(self) -> bytes:
        with self.telegram.changed:
            return "\n".join(
                f"{call.method} {call.params}" for call in self.telegram.calls
            ).encode()


def dump_database() -> bytes:
    """All tables as `pg_dump` writes them, with sealed columns in hexadecimal."""
    dumped = subprocess.run(
        [
            postgres_binary("pg_dump"),
            "--schema=public",
            "--data-only",
            f"--dbname={owner_url()}",
        ],
        capture_output=True,
        check=True,
    )
    assert b"COPY public.orders_order " in dumped.stdout
    return dumped.stdout


@contextmanager
def running_service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """Everything with its logs at DEBUG, its cache and broker of its own, and all its receivers."""
    canaries = Canaries()
    mail = MailServer()
    with ExitStack() as stack:
        broker = stack.enter_context(running_broker())
        telegram = stack.enter_context(running_bot_api())
        receiver = stack.enter_context(running_receiver())
        controller = Controller(mail, hostname=HOST, port=free_port())
        controller.start()
        stack.callback(controller.stop)
        environment = {
            **receiver.environment,
            "REDIS_URL": broker.url.removesuffix("1") + "0",
            "CELERY_BROKER_URL": broker.url,
            "LOG_LEVEL": "DEBUG",
            "TELEGRAM_BOT_TOKEN": telegram.token,
            "TELEGRAM_API_URL": telegram.url,
            "EMAIL_URL": f"smtp://{HOST}:{controller.port}",
            "DATABASE_URL": database_url(),
        }
        monkeypatch.setenv("CELERY_BROKER_URL", broker.url)
        monkeypatch.setattr(queue, "pause", queue.Pause())
        crew = stack.enter_context(running_crew(broker.url, **environment))
        worker, imports = crew.worker(), crew.imports_worker()
        bot = stack.enter_context(a_bot(telegram, {**os.environ, **environment}))
        server = stack.enter_context(live_server(environment, workers=1))
        bot.start()
        monkeypatch.setattr(settings, "METRICS_DIR", Path(server.metrics))
        canaries.add("the bot's token", telegram.token.partition(":")[2])
        canaries.add("the secret key", settings.SECRET_KEY)
        canaries.add("an encryption key", settings.CODE_ENCRYPTION_KEYS[0].partition(":")[2])
        for url in (database_url(), broker.url):
            canaries.add("a password of a server", str(urlsplit(url).password))
        yield Running(server, worker, imports, bot, broker, telegram, mail, receiver, canaries)


def text_of(message: Message) -> bytes:
    """All parts of an email: its text, its page and its files."""
    parts = (part.get_payload(decode=True) for part in message.walk())
    return b"\n".join(part for part in parts if isinstance(part, bytes))
