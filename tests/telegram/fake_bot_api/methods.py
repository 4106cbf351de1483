"""The methods of the Bot API that concern messages, chats and presses."""

import time
from typing import Any

from tests.telegram.fake_bot_api.markup import units
from tests.telegram.fake_bot_api.objects import BOT, Answer, Chat, Entity, Keyboard, Message
from tests.telegram.fake_bot_api.parameters import (
    Params,
    Refusal,
    read_flag,
    read_keyboard,
    read_structure,
    read_text,
)
from tests.telegram.fake_bot_api.updates import Updates

MAX_ANSWER = 200


class Methods(Updates):
    """Each `do_` function is one method, its name in lower case."""

    def __init__(self) -> None:
        super().__init__()
        self.query_seconds = 15.0  # how long a press can be answered
        self.commands: list[dict[str, str]] = []

    def do_getme(self, params: Params) -> dict[str, Any]:
        return BOT | {
            "can_join_groups": True,
            "can_read_all_group_messages": False,
            "supports_inline_queries": False,
        }

    def do_sendmessage(self, params: Params) -> dict[str, Any]:
        with self.changed:
            chat = self._chat(params)
            text, entities = read_text(params)
            keyboard = read_keyboard(params)
            thread = params.get("message_thread_id")
            if thread is not None and int(thread) not in chat.topics:
                raise Refusal(400, "Bad Request: message thread not found")
            message = self._keep(
                chat,
                None,
                text,
                source=str(params["text"]),
                entities=entities,
                keyboard=keyboard,
                thread=int(thread) if thread is not None else None,
                reply_to=self._replied(params, chat),
            )
            self.changed.notify_all()
            return message.json()

    def do_editmessagetext(self, params: Params) -> dict[str, Any]:
        with self.changed:
            message = self._editable(params)
            text, entities = read_text(params)
            return self._edit(message, text, entities, read_keyboard(params), str(params["text"]))

    def do_editmessagereplymarkup(self, params: Params) -> dict[str, Any]:
        with self.changed:
            message = self._editable(params)
            return self._edit(
                message, message.text, message.entities, read_keyboard(params), message.source
            )

    def do_deletemessage(self, params: Params) -> bool:
        with self.changed:
            found = self._messages[self._chat(params).id].get(int(params["message_id"]))
            if found is None:
                raise Refusal(400, "Bad Request: message to delete not found")
            self.delete(found)
            return True

    def do_answercallbackquery(self, params: Params) -> bool:
        text = str(params.get("text", ""))
        if units(text) > MAX_ANSWER:
            raise Refusal(400, "Bad Request: MESSAGE_TOO_LONG")
        with self.changed:
            press = self.presses.get(str(params.get("callback_query_id")))
            if press is not None:
                press.tries += 1
            if (
                press is None
                or press.answer is not None
                or time.monotonic() - press.at > self.query_seconds
            ):
                raise Refusal(
                    400,
                    "Bad Request: query is too old and response timeout expired"
                    " or query ID is invalid",
                )
            press.answer = Answer(text, read_flag(params, "show_alert"))
            self.changed.notify_all()
            return True

    def do_getchat(self, params: Params) -> dict[str, Any]:
        with self.changed:
            chat = self._chat(params)
            return chat.json() | {
                "accent_color_id": 1,
                "max_reaction_count": 11,
                "accepted_gift_types": {
                    "unlimited_gifts": False,
                    "limited_gifts": False,
                    "unique_gifts": False,
                    "premium_subscription": False,
                    "gifts_from_channels": False,
                },
            }

    def do_setmycommands(self, params: Params) -> bool:
        self.commands = read_structure(params, "commands")
        return True

    def _chat(self, params: Params) -> Chat:
        chat = self._chats.get(int(params.get("chat_id", 0)))
        if chat is None:
            raise Refusal(400, "Bad Request: chat not found")
        if chat.kicked:
            raise Refusal(403, "Forbidden: bot was kicked from the supergroup chat")
        if chat.silent:
            raise Refusal(403, "Forbidden: bot can't initiate conversation with a user")
        if chat.moved_to is not None:
            raise Refusal(
                400,
                "Bad Request: group chat was upgraded to a supergroup chat",
                migrate_to_chat_id=chat.moved_to,
            )
        return chat

    def _replied(self, params: Params, chat: Chat) -> Message | None:
        reply = read_structure(params, "reply_parameters")
        if not reply:
            return None
        found = self._messages[chat.id].get(int(reply["message_id"]))
        if found is None and not reply.get("allow_sending_without_reply"):
            raise Refusal(400, "Bad Request: message to be replied not found")
        return found

    def _editable(self, params: Params) -> Message:
        found = self._messages[self._chat(params).id].get(int(params.get("message_id", 0)))
        if found is None:
            raise Refusal(400, "Bad Request: message to edit not found")
        if found.sender is not None:
            raise Refusal(400, "Bad Request: message can't be edited")
        return found

    def _edit(
        self,
        message: Message,
        text: str,
        entities: list[Entity],
        keyboard: Keyboard,
        source: str,
    ) -> dict[str, Any]:
        if (text, entities, keyboard) == (message.text, message.entities, message.keyboard):
            raise Refusal(
                400,
                "Bad Request: message is not modified: specified new message content and reply"
                " markup are exactly the same as a current content and reply markup of the message",
            )
        message.edits.append((message.text, message.keyboard))
        message.text, message.entities, message.keyboard = text, entities, keyboard
        message.source = source
        message.edited = int(time.time())
        self.changed.notify_all()
        return message.json()
