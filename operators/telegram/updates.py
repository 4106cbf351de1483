"""Parsing updates. Updates that cannot be parsed are logged and skipped.

Telegram sends an update again until it is confirmed, so an unparsable one would block the bot.
"""

from typing import Any

import structlog
from telegram import Bot, Update
from telegram.error import TelegramError
from telegram.request import HTTPXRequest

logger = structlog.get_logger(__name__)


def read_update(content: Any, bot: Bot | None = None) -> Update | None:
    """The update in decoded JSON; None, with a line in the log, if it cannot be parsed."""
    try:
        return Update.de_json(content, bot)
    except Exception as error:  # python-telegram-bot lets errors of any kind through
        logger.warning("telegram_update_unreadable", cause=type(error).__name__)
        return None


class UpdatesRequest(HTTPXRequest):
    """Fetches updates. One that cannot be parsed is replaced with an empty one, so that it is
    confirmed with the others."""

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        """Raises TelegramError if the payload is not an answer of the Bot API."""
        try:
            answer = dict(HTTPXRequest.parse_json_payload(payload))
            if "result" in answer:
                answer["result"] = [_readable(update) for update in answer["result"]]
        except (KeyError, RecursionError, TypeError, ValueError):
            raise TelegramError("This is not an answer of the Bot API.") from None
        return answer


def _readable(update: Any) -> Any:
    number = update["update_id"]
    if type(number) is not int:
        raise TypeError(number)
    return update if read_update(update) is not None else {"update_id": number}
