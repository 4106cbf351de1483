from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import CommandError

from core.command_line import ServiceCommand
from core.json_output import dumps
from core.version import log_start
from operators.frame.limits import ALIVE_SECONDS
from operators.telegram.updates.bot_cache import seconds_since_beat


class Command(ServiceCommand):
    """Runs the operators' Telegram bot until SIGTERM."""

    help = (
        "Runs the operators' Telegram bot with long polling. On SIGTERM it finishes the current"
        " updates and exits."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--check",
            action="store_true",
            help="only report whether a running bot reaches Telegram",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["check"]:
            self._check()
            return
        if not settings.TELEGRAM_BOT_TOKEN:
            raise CommandError("TELEGRAM_BOT_TOKEN is not set. Get a token from @BotFather.")
        from operators.telegram.updates import bot  # noqa: PLC0415  45 MB that --check does not need

        log_start("bot")
        try:
            bot.run_bot()
        except bot.Rejected as error:
            raise CommandError(str(error)) from None

    def _check(self) -> None:
        seconds_ago = seconds_since_beat()
        if seconds_ago is None:
            raise CommandError(f"No bot has reached Telegram in the last {ALIVE_SECONDS} seconds.")
        self.stdout.write(dumps({"status": "ok", "seconds_ago": seconds_ago}).decode())
