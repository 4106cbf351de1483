"""Updates: what people do becomes one, and the bot fetches it."""

import itertools
import secrets
import time
from typing import Any

from tests.telegram.fake_bot_api.chats import Chats
from tests.telegram.fake_bot_api.faults import Disorder
from tests.telegram.fake_bot_api.markup import units
from tests.telegram.fake_bot_api.objects import BOT, PATIENCE, Chat, Message, Person, Press
from tests.telegram.fake_bot_api.parameters import Params, Refusal, read_structure

NOT_BY_DEFAULT = {"chat_member", "message_reaction", "message_reaction_count"}


class Updates(Chats):
    """The queue of updates, in the order of their ids."""

    def __init__(self) -> None:
        super().__init__()
        self.presses: dict[str, Press] = {}
        self.disorder = Disorder()
        self.confirmed = 0  # every update up to this one
        self.polls = 0
        self._update_ids = itertools.count(800_000_001)
        self._updates: list[dict[str, Any]] = []  # every update so far, by its id
        self._late: list[tuple[int, dict[str, Any]]] = []
        self._allowed: list[str] | None = None
        self._ended_polls = 0

    # What people do.

    def press(self, person: Person, message: Message, label: str) -> Press:
        return self.press_data(person, message, message.data(label))

    def press_data(self, person: Person, message: Message, data: str) -> Press:
        """Presses a button with any data, also one that is gone or never existed."""
        with self.changed:
            press = Press(
                self.changed,
                str(secrets.randbits(62)),  # unique beyond this server, as Telegram's are
                person,
                message,
                data,
                time.monotonic(),
            )
            self.presses[press.id] = press
            payload = {
                "callback_query": {
                    "id": press.id,
                    "from": person.json(),
                    "message": message.json(),
                    "chat_instance": f"-{abs(message.chat.id)}77",
                    "data": data,
                }
            }
            self._push_in_disorder(payload)
        return press

    def type(
        self,
        person: Person,
        chat: Chat,
        text: str,
        *,
        thread: int | None = None,
        reply_to: Message | None = None,
    ) -> Message:
        with self.changed:
            chat.silent = False
            message = self._keep(chat, person, text, thread=thread, reply_to=reply_to)
            word = text.split(maxsplit=1)[0] if text.strip() else ""
            if word.startswith("/"):
                message.entities = [{"type": "bot_command", "offset": 0, "length": units(word)}]
            self.push({"message": message.json()})
        return message

    def add_bot(self, person: Person, chat: Chat, *, before: str = "left") -> None:
        """The person adds the bot to the group, or changes it from another status."""

        def member(status: str) -> dict[str, Any]:
            # Telegram says until when somebody is banned; 0 is for ever.
            return {
                "user": BOT,
                "status": status,
                **({"until_date": 0} if status == "kicked" else {}),
            }

        change = {
            "chat": chat.json(),
            "from": person.json(),
            "date": int(time.time()),
            "old_chat_member": member(before),
            "new_chat_member": member("member"),
        }
        self.push({"my_chat_member": change})

    # The queue.

    def push(self, payload: dict[str, Any]) -> int:
        """Adds any update at all; returns its id."""
        with self.changed:
            update_id = next(self._update_ids)
            self._updates.append({"update_id": update_id, **payload})
            self.changed.notify_all()
        return update_id

    def replay(self, number: int) -> list[int]:
        """Delivers the last `number` confirmed updates once more; returns their ids."""
        with self.changed:
            old = [one["update_id"] for one in self._updates if one["update_id"] <= self.confirmed]
            again = old[-number:]
            self.confirmed = again[0] - 1
            self.changed.notify_all()
        return again

    def pending(self) -> list[dict[str, Any]]:
        """The updates that the bot has not confirmed."""
        with self.changed:
            return [one for one in self._updates if one["update_id"] > self.confirmed]

    def settle(self, patience: float = PATIENCE) -> None:
        """Releases the updates held back, and waits until every update is confirmed."""
        with self.changed:
            for _, payload in self._late:
                self.push(payload)
            self._late.clear()
            assert self.changed.wait_for(lambda: not self.pending(), patience), self.pending()[:3]

    def drop_updates(self) -> None:
        """Empties the queue."""
        with self.changed:
            self._late.clear()
            self.confirmed = max([self.confirmed, *(one["update_id"] for one in self._updates)])

    def end_polls(self) -> None:
        """Ends the present long poll without updates, so that the next one meets the faults."""
        with self.changed:
            self._ended_polls = self.polls
            self.changed.notify_all()

    def _push_in_disorder(self, payload: dict[str, Any]) -> None:
        self._late = [(left - 1, late) for left, late in self._late]
        fate = self.disorder.fate()
        if fate == "reordered":
            self._late.append((self.disorder.behind, payload))
        elif fate != "lost":
            for _ in range(2 if fate == "duplicated" else 1):
                self.push(payload)
        for left, late in list(self._late):
            if left <= 0:
                self._late.remove((left, late))
                self.push(late)

    # The bot fetches.

    def do_getupdates(self, params: Params) -> list[dict[str, Any]]:
        offset = int(params.get("offset", 0))
        limit = min(max(int(params.get("limit", 100)), 1), 100)
        deadline = time.monotonic() + float(params.get("timeout", 0))
        with self.changed:
            if "allowed_updates" in params:
                self._allowed = read_structure(params, "allowed_updates") or None
            self.polls += 1
            mine = self.polls
            self.changed.notify_all()
            if offset > 0:
                self.confirmed = max(self.confirmed, offset - 1)
            elif offset < 0:
                ids = [one["update_id"] for one in self._updates]
                self.confirmed = max([self.confirmed, *(i - 1 for i in ids[offset:][:1])])
            while True:
                if mine != self.polls:
                    raise Refusal(
                        409,
                        "Conflict: terminated by other getUpdates request;"
                        " make sure that only one bot instance is running",
                    )
                waiting = [one for one in self.pending() if self._is_allowed(one)]
                left = deadline - time.monotonic()
                if waiting or left <= 0 or self.stopped.is_set() or mine <= self._ended_polls:
                    return waiting[:limit]
                self.changed.wait(left)

    def _is_allowed(self, update: dict[str, Any]) -> bool:
        kinds = update.keys() - {"update_id"}
        if self._allowed is None:
            return not kinds <= NOT_BY_DEFAULT
        return bool(kinds & set(self._allowed))
