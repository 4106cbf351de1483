"""Reading the parameters of a call, and refusing the bad ones in the Bot API's words."""

import itertools
import json
from typing import Any

from tests.telegram.fake_bot_api.markup import BadMarkup, read_html, units
from tests.telegram.fake_bot_api.objects import Entity, Keyboard

MAX_TEXT = 4096
MAX_DATA = 64

Params = dict[str, Any]


class Refusal(Exception):
    """An answer with `ok` false."""

    def __init__(self, status: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.parameters = parameters

    def answer(self) -> tuple[int, dict[str, Any]]:
        """Status and body."""
        body = {"ok": False, "error_code": self.status, "description": self.description}
        return self.status, body | ({"parameters": self.parameters} if self.parameters else {})


def read_structure(params: Params, name: str) -> Any:
    """A parameter that may arrive as JSON text; None if it is absent."""
    value = params.get(name)
    try:
        return json.loads(value) if isinstance(value, str) and value else value
    except ValueError:
        raise Refusal(400, f"Bad Request: can't parse {name} JSON object") from None


def read_flag(params: Params, name: str) -> bool:
    return str(params.get(name, "")).lower() == "true"


def read_text(params: Params) -> tuple[str, list[Entity]]:
    """The text of a message, and its entities."""
    source = str(params.get("text", ""))
    text, entities = source, list[Entity]()
    if params.get("parse_mode") == "HTML":
        try:
            text, entities = read_html(source)
        except BadMarkup as bad:
            raise Refusal(400, f"Bad Request: can't parse entities: {bad}") from None
    elif params.get("parse_mode"):
        raise Refusal(400, "Bad Request: unsupported parse_mode")
    text = text.strip()
    if not text:
        raise Refusal(400, "Bad Request: message text is empty")
    if units(text) > MAX_TEXT:
        raise Refusal(400, "Bad Request: message is too long")
    return text, entities


def read_keyboard(params: Params) -> Keyboard:
    """The rows of buttons."""
    markup = read_structure(params, "reply_markup") or {}
    rows: Keyboard = markup.get("inline_keyboard", [])
    for button in itertools.chain.from_iterable(rows):
        if not button.get("text") or set(button) - {"text", "url"} not in (
            set(),
            {"callback_data"},
        ):
            raise Refusal(400, "Bad Request: can't parse inline keyboard button")
        if "callback_data" in button and not 1 <= len(button["callback_data"].encode()) <= MAX_DATA:
            raise Refusal(400, "Bad Request: BUTTON_DATA_INVALID")
    return [row for row in rows if row]
