"""What Telegram knows: people, chats, messages, presses, and the calls of the bot."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

BOT: dict[str, Any] = {
    "id": 4711,
    "is_bot": True,
    "first_name": "Top-ups",
    "username": "topups_test_bot",
}
PATIENCE = 180.0  # seconds

Entity = dict[str, Any]
Keyboard = list[list[dict[str, Any]]]


@dataclass(eq=False)
class Person:
    id: int
    first_name: str
    username: str | None = None

    def json(self) -> dict[str, Any]:
        name = {"username": self.username} if self.username else {}
        return {"id": self.id, "is_bot": False, "first_name": self.first_name, **name}


@dataclass(eq=False)
class Chat:
    id: int
    type: str
    title: str = ""
    forum: bool = False
    kicked: bool = False
    silent: bool = False  # private, and the person has not written to the bot
    moved_to: int | None = None
    topics: set[int] = field(default_factory=set)

    def json(self) -> dict[str, Any]:
        if self.type == "private":
            return {"id": self.id, "type": "private", "first_name": self.title}
        return {"id": self.id, "type": self.type, "title": self.title, "is_forum": self.forum}


@dataclass(eq=False)
class Message:
    chat: Chat
    id: int
    sender: Person | None  # None: the bot
    text: str
    source: str = ""  # as it was sent, with its tags
    entities: list[Entity] = field(default_factory=list)
    keyboard: Keyboard = field(default_factory=list)
    thread: int | None = None
    reply_to: Message | None = None
    date: int = 0
    edited: int | None = None
    edits: list[tuple[str, Keyboard]] = field(default_factory=list)

    @property
    def buttons(self) -> list[str]:
        return [button["text"] for row in self.keyboard for button in row]

    def data(self, label: str) -> str:
        """The present callback data of the button. Raises AssertionError if it has none."""
        for row in self.keyboard:
            for button in row:
                if button["text"] == label:
                    return str(button["callback_data"])
        raise AssertionError(f"no button {label!r}, only {self.buttons}, in:\n{self.text}")

    def json(self, *, nested: bool = False) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "message_id": self.id,
            "from": self.sender.json() if self.sender else BOT,
            "chat": self.chat.json(),
            "date": self.date,
            "text": self.text,
        }
        if self.entities:
            shown["entities"] = self.entities
        if self.keyboard:
            shown["reply_markup"] = {"inline_keyboard": self.keyboard}
        if self.thread is not None:
            shown |= {"message_thread_id": self.thread, "is_topic_message": True}
        if self.edited is not None:
            shown["edit_date"] = self.edited
        if self.reply_to is not None and not nested:
            shown["reply_to_message"] = self.reply_to.json(nested=True)
        return shown


@dataclass(frozen=True)
class Answer:
    """What the person who pressed a button was shown."""

    text: str
    alert: bool


@dataclass(eq=False)
class Press:
    """One press of a button, and the bot's answer to it."""

    changed: threading.Condition
    id: str
    person: Person
    message: Message
    data: str
    at: float
    answer: Answer | None = None
    tries: int = 0

    def wait(self, patience: float = PATIENCE) -> Answer:
        """Waits until the bot has answered the press."""
        with self.changed:
            if not self.changed.wait_for(lambda: self.answer, patience):
                raise AssertionError(f"nobody answered the press {self.id} in {patience} s")
        assert self.answer is not None
        return self.answer


@dataclass(frozen=True)
class Call:
    """One call of the bot."""

    method: str
    params: dict[str, Any]
    status: int  # 0: the connection was dropped
    at: float
