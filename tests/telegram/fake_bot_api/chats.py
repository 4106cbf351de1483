"""People, chats, and the messages in them."""

import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.telegram.fake_bot_api.objects import PATIENCE, Chat, Message, Person


class Chats:
    """The chats that one bot is in. Safe to use from any thread."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.stopped = threading.Event()
        self._ids = itertools.count(1)
        self._chats: dict[int, Chat] = {}
        self._messages: dict[int, dict[int, Message]] = {}

    def add_user(self, first_name: str, username: str | None = None) -> Person:
        return Person(5_000_000_000 + next(self._ids), first_name, username)

    def add_group(self, title: str, *, forum: bool = False) -> Chat:
        return self._add(Chat(-1_001_000_000_000 - next(self._ids), "supergroup", title, forum))

    def add_topic(self, group: Chat) -> int:
        topic = next(self._ids) + 1
        group.topics.add(topic)
        return topic

    def private(self, person: Person) -> Chat:
        """Their chat with the bot. The bot may write there only after the person did."""
        if person.id not in self._chats:
            self._add(Chat(person.id, "private", person.first_name, silent=True))
        return self._chats[person.id]

    def migrate(self, group: Chat) -> Chat:
        """Gives the group another id, as when it becomes a supergroup."""
        new = self.add_group(group.title, forum=group.forum)
        group.moved_to = new.id
        return new

    def messages(self, chat: Chat) -> list[Message]:
        with self.changed:
            return list(self._messages[chat.id].values())

    def bot_messages(self, chat: Chat) -> list[Message]:
        return [message for message in self.messages(chat) if message.sender is None]

    def delete(self, message: Message) -> None:
        with self.changed:
            del self._messages[message.chat.id][message.id]
            self.changed.notify_all()

    def wait_for(
        self,
        true: Callable[[], Any],
        what: str,
        patience: float = PATIENCE,
        *,
        poll: bool = False,
    ) -> Any:
        """Waits until `true` returns something true, and returns it.

        `poll`: looks regularly, for changes that this server does not see.
        """
        deadline = time.monotonic() + patience
        with self.changed:
            while not (found := true()):
                left = deadline - time.monotonic()
                assert left > 0, f"not within {patience} s: {what}"
                self.changed.wait(min(left, 0.05 if poll else left))
        return found

    def pause(self, seconds: float) -> None:
        """Gives the bot time."""
        self.stopped.wait(seconds)

    def _add(self, chat: Chat) -> Chat:
        with self.changed:
            self._chats[chat.id] = chat
            self._messages[chat.id] = {}
        return chat

    def _keep(self, chat: Chat, sender: Person | None, text: str, **more: Any) -> Message:
        message = Message(chat, next(self._ids), sender, text, date=int(time.time()), **more)
        self._messages[chat.id][message.id] = message
        return message
