"""Updates as Telegram sends them. What is none is left out, or the bot would stop at it for good:
an update comes again until it is confirmed."""

from typing import Any

import structlog
from telegram import Bot, Update
from telegram.error import TelegramError
from telegram.request import HTTPXRequest

logger = structlog.get_logger(__name__)

# What python-telegram-bot raises at content that is not what it expects.
_UNREADABLE = (
    ArithmeticError,
    AttributeError,
    KeyError,
    RecursionError,
    TypeError,
    ValueError,
)


def read_update(content: Any, bot: Bot | None = None) -> Update | None:
    """The update in decoded JSON; None, and a line in the log, where there is none."""
    try:
        return Update.de_json(content, bot)
    except _UNREADABLE:
        logger.warning("telegram_update_unreadable")
        return None


class UpdatesRequest(HTTPXRequest):
    """Fetches updates. One that cannot be read arrives as one that says nothing, so that it is
    confirmed with the others."""

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        answer = HTTPXRequest.parse_json_payload(payload)
        if isinstance(answer.get("result"), list):
            answer["result"] = [_readable(update) for update in answer["result"]]
        return answer


def _readable(update: Any) -> Any:
    if read_update(update) is not None:
        return update
    try:
        return {"update_id": int(update["update_id"])}
    except _UNREADABLE:
        raise TelegramError("The answer holds something that is no update.") from None
