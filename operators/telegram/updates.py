"""Updates as Telegram sends them. What is none is passed over, or the bot would stop at it for
good: an update comes again until it is confirmed."""

from typing import Any

import structlog
from telegram import Bot, Update
from telegram.error import TelegramError
from telegram.request import HTTPXRequest

logger = structlog.get_logger(__name__)


def read_update(content: Any, bot: Bot | None = None) -> Update | None:
    """The update in decoded JSON; None, and a line in the log, where there is none."""
    try:
        return Update.de_json(content, bot)
    except Exception as error:  # python-telegram-bot raises whatever it comes across
        logger.warning("telegram_update_unreadable", cause=type(error).__name__)
        return None


class UpdatesRequest(HTTPXRequest):
    """Fetches updates. One that cannot be read arrives as one that says nothing, so that it is
    confirmed with the others."""

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        """Raises TelegramError for what is no answer of Telegram's."""
        try:
            answer = dict(HTTPXRequest.parse_json_payload(payload))
            if "result" in answer:
                answer["result"] = [_readable(update) for update in answer["result"]]
        except (KeyError, RecursionError, TypeError, ValueError):
            raise TelegramError("This is no answer of Telegram's.") from None
        return answer


def _readable(update: Any) -> Any:
    number = update["update_id"]
    if type(number) is not int:
        raise TypeError(number)
    return update if read_update(update) is not None else {"update_id": number}
