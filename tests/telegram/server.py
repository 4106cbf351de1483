"""A Bot API server for tests: real HTTP, long polling and webhooks, people who type and press.

It keeps to the public description of the Bot API: what it takes, what it refuses and in which
words, when an update counts as confirmed. `BotApi` is also how a test is a member of staff, and
faults.py has what a bad day at Telegram's brings.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.telegram.faults import Disorder, Fault
from tests.telegram.markup import BadMarkup, read_html, units

# Of a bot of its own in each process: bots leave signs of life where others see them.
TOKEN = f"{os.getpid()}:AAF-a-token-that-only-tests-know"
BOT_ID = 4711
MAX_TEXT = 4096
MAX_ANSWER = 200
MAX_DATA = 64
PATIENCE = 60.0
RETRY_WEBHOOK = 0.2
NOT_BY_DEFAULT = {"chat_member", "message_reaction", "message_reaction_count"}

Params = dict[str, Any]


class Refusal(Exception):
    """An answer with `ok` false."""

    def __init__(self, status: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.parameters = parameters


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
    entities: list[dict[str, Any]] = field(default_factory=list)
    keyboard: list[list[dict[str, Any]]] = field(default_factory=list)
    thread: int | None = None
    reply_to: Message | None = None
    date: int = 0
    edited: int | None = None
    edits: list[tuple[str, list[list[dict[str, Any]]]]] = field(default_factory=list)

    @property
    def buttons(self) -> list[str]:
        return [button["text"] for row in self.keyboard for button in row]

    def data(self, label: str) -> str:
        """The callback data of the button as it is now."""
        for row in self.keyboard:
            for button in row:
                if button["text"] == label:
                    return str(button["callback_data"])
        raise AssertionError(f"no button {label!r}, only {self.buttons}, in:\n{self.text}")

    def json(self, bot: dict[str, Any], *, nested: bool = False) -> dict[str, Any]:
        shown = {
            "message_id": self.id,
            "from": self.sender.json() if self.sender else bot,
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
            shown["reply_to_message"] = self.reply_to.json(bot, nested=True)
        return shown


@dataclass(frozen=True)
class Answer:
    """What somebody who pressed was shown."""

    text: str
    alert: bool


@dataclass(eq=False)
class Press:
    """One press of a button, and what became of it."""

    api: BotApi
    id: str
    person: Person
    message: Message
    data: str
    at: float
    answer: Answer | None = None
    tries: int = 0

    def wait(self, patience: float = PATIENCE) -> Answer:
        """Until the bot has answered it."""
        with self.api.changed:
            if not self.api.changed.wait_for(lambda: self.answer, patience):
                raise AssertionError(f"nobody answered the press {self.id} in {patience} s")
        assert self.answer is not None
        return self.answer


@dataclass(frozen=True)
class Call:
    method: str
    params: Params
    status: int  # 0: the connection was dropped
    at: float


@dataclass(frozen=True)
class Webhook:
    url: str
    secret: str


class BotApi:
    """The state of Telegram as one bot meets it; safe to use from any thread."""

    def __init__(self) -> None:
        self.token = TOKEN
        self.url = ""
        self.changed = threading.Condition(threading.RLock())
        self.calls: list[Call] = []
        self.presses: dict[str, Press] = {}
        self.query_seconds = 15.0
        self.disorder = Disorder()
        self.commands: list[dict[str, str]] = []
        self.confirmed = 0  # every update up to this one
        self.webhook: Webhook | None = None
        self.webhook_answers: list[int] = []
        self.stopped = threading.Event()
        self._allowed: list[str] | None = None
        self._chats: dict[int, Chat] = {}
        self._messages: dict[int, dict[int, Message]] = {}
        self._people: dict[int, Person] = {}
        self._updates: list[dict[str, Any]] = []  # every one that ever was, by its id
        self._late: list[tuple[int, dict[str, Any]]] = []
        self._faults: dict[str, deque[Fault]] = {}
        self._ids = itertools.count(1)
        self._update_ids = itertools.count(800_000_001)
        self.polls = 0
        self._ended_polls = 0

    # People and chats.

    def add_user(self, first_name: str, username: str | None = None) -> Person:
        person = Person(5_000_000_000 + next(self._ids), first_name, username)
        self._people[person.id] = person
        return person

    def add_group(self, title: str, *, forum: bool = False) -> Chat:
        return self._add(Chat(-1_001_000_000_000 - next(self._ids), "supergroup", title, forum))

    def add_topic(self, group: Chat) -> int:
        topic = next(self._ids) + 1
        group.topics.add(topic)
        return topic

    def private(self, person: Person) -> Chat:
        """Their chat with the bot, who may write there only after they did."""
        if person.id not in self._chats:
            self._add(Chat(person.id, "private", person.first_name, silent=True))
        return self._chats[person.id]

    def migrate(self, group: Chat) -> Chat:
        """The group gets another id, as when it becomes a supergroup."""
        new = self.add_group(group.title, forum=group.forum)
        group.moved_to = new.id
        return new

    def _add(self, chat: Chat) -> Chat:
        with self.changed:
            self._chats[chat.id] = chat
            self._messages[chat.id] = {}
        return chat

    # What a chat shows.

    def messages(self, chat: Chat) -> list[Message]:
        with self.changed:
            return list(self._messages[chat.id].values())

    def bot_messages(self, chat: Chat) -> list[Message]:
        return [message for message in self.messages(chat) if message.sender is None]

    def delete(self, message: Message) -> None:
        with self.changed:
            del self._messages[message.chat.id][message.id]
            self.changed.notify_all()

    # What people do.

    def press(self, person: Person, message: Message, label: str) -> Press:
        return self.press_data(person, message, message.data(label))

    def press_data(self, person: Person, message: Message, data: str) -> Press:
        """Whatever the button says: also one that is not there any more, or never was."""
        with self.changed:
            press = Press(
                self, f"{9_000_000_000 + next(self._ids)}", person, message, data, time.monotonic()
            )
            self.presses[press.id] = press
            payload = {
                "callback_query": {
                    "id": press.id,
                    "from": person.json(),
                    "message": message.json(self.me()),
                    "chat_instance": f"-{abs(message.chat.id)}77",
                    "data": data,
                }
            }
            self._post_astray(payload)
        return press

    def type(self, person: Person, chat: Chat, text: str, *, thread: int | None = None) -> Message:
        with self.changed:
            chat.silent = False
            message = self._keep(chat, person, text, thread=thread)
            word = text.split(maxsplit=1)[0] if text.strip() else ""
            if word.startswith("/"):
                message.entities = [{"type": "bot_command", "offset": 0, "length": units(word)}]
            self.push({"message": message.json(self.me())})
        return message

    def push(self, payload: dict[str, Any]) -> int:
        """Any update at all; returns its id."""
        with self.changed:
            update_id = next(self._update_ids)
            self._updates.append({"update_id": update_id, **payload})
            self.changed.notify_all()
        return update_id

    def replay(self, number: int) -> list[int]:
        """The last `number` confirmed updates are delivered once more, under their own ids."""
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
        """Waits until every update there is was confirmed; what is held back is let go."""
        with self.changed:
            for _, payload in self._late:
                self.push(payload)
            self._late.clear()
            assert self.changed.wait_for(lambda: not self.pending(), patience), self.pending()[:3]

    def drop_updates(self) -> None:
        """Nothing waits for the bot any more."""
        with self.changed:
            self._late.clear()
            self.confirmed = max([self.confirmed, *(one["update_id"] for one in self._updates)])

    def wait_for(
        self,
        true: Callable[[], Any],
        what: str,
        patience: float = PATIENCE,
        *,
        poll: bool = False,
    ) -> Any:
        """Waits for something about chats, presses or calls; returns what it is. `poll` is for
        what this server does not hear of."""
        deadline = time.monotonic() + patience
        with self.changed:
            while not (found := true()):
                left = deadline - time.monotonic()
                assert left > 0, f"not within {patience} s: {what}"
                self.changed.wait(min(left, 0.05 if poll else left))
        return found

    def pause(self, seconds: float) -> None:
        """Lets the bot have its turn."""
        self.stopped.wait(seconds)

    def _post_astray(self, payload: dict[str, Any]) -> None:
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

    # A bad day.

    def fault(self, method: str, fault: Fault, *, times: int = 1) -> None:
        with self.changed:
            self._faults.setdefault(method.lower(), deque()).extend([fault] * times)

    def clear_faults(self) -> None:
        with self.changed:
            self._faults.clear()

    def end_polls(self) -> None:
        """The long poll that is under way ends empty, and the next one meets the faults."""
        with self.changed:
            self._ended_polls = self.polls
            self.changed.notify_all()

    def count(self, method: str) -> int:
        with self.changed:
            return sum(call.method.lower() == method.lower() for call in self.calls)

    # The Bot API.

    def me(self) -> dict[str, Any]:
        return {
            "id": BOT_ID,
            "is_bot": True,
            "first_name": "Top-ups",
            "username": "topups_test_bot",
        }

    def answer(self, token: str, method: str, params: Params) -> tuple[int, dict[str, Any]] | None:
        """Status and body; None: the connection is to end without a word."""
        fault = self._next_fault(method)
        if fault and not fault.after:
            self.stopped.wait(fault.seconds)
            if fault.drop:
                self._record(method, params, 0)
                return None
            answer = _refusal(Refusal(fault.status, fault.description, **fault.parameters))
        else:
            answer = self._carry_out(token, method, params)
            if fault:
                self.stopped.wait(fault.seconds)
        dropped = fault is not None and fault.drop
        self._record(method, params, 0 if dropped else answer[0])
        return None if dropped else answer

    def _carry_out(self, token: str, method: str, params: Params) -> tuple[int, dict[str, Any]]:
        carry_out = getattr(self, f"do_{method.lower()}", None)
        if token != self.token:
            return _refusal(Refusal(401, "Unauthorized"))
        if carry_out is None:
            return _refusal(Refusal(404, "Not Found"))
        try:
            return 200, {"ok": True, "result": carry_out(params)}
        except Refusal as refusal:
            return _refusal(refusal)

    def _next_fault(self, method: str) -> Fault | None:
        with self.changed:
            waiting = self._faults.get(method.lower())
            return waiting.popleft() if waiting else None

    def _record(self, method: str, params: Params, status: int) -> None:
        with self.changed:
            self.calls.append(Call(method, params, status, time.monotonic()))
            self.changed.notify_all()

    def do_getme(self, params: Params) -> dict[str, Any]:
        return self.me() | {
            "can_join_groups": True,
            "can_read_all_group_messages": False,
            "supports_inline_queries": False,
        }

    def do_getupdates(self, params: Params) -> list[dict[str, Any]]:
        offset = int(params.get("offset", 0))
        limit = min(max(int(params.get("limit", 100)), 1), 100)
        deadline = time.monotonic() + float(params.get("timeout", 0))
        with self.changed:
            if self.webhook:
                raise Refusal(
                    409,
                    "Conflict: can't use getUpdates method while webhook is active;"
                    " use deleteWebhook to delete the webhook first",
                )
            self._allow(params)
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

    def do_sendmessage(self, params: Params) -> dict[str, Any]:
        with self.changed:
            chat = self._chat(params)
            text, entities = self._text(params)
            keyboard = _keyboard(params)
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
            return message.json(self.me())

    def do_editmessagetext(self, params: Params) -> dict[str, Any]:
        with self.changed:
            message = self._editable(params)
            text, entities = self._text(params)
            return self._edit(message, text, entities, _keyboard(params), str(params["text"]))

    def do_editmessagereplymarkup(self, params: Params) -> dict[str, Any]:
        with self.changed:
            message = self._editable(params)
            return self._edit(
                message, message.text, message.entities, _keyboard(params), message.source
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
            press.answer = Answer(text, str(params.get("show_alert", "")).lower() == "true")
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
        self.commands = _structure(params, "commands")
        return True

    def do_setwebhook(self, params: Params) -> bool:
        url, secret = str(params.get("url", "")), str(params.get("secret_token", ""))
        if url and urlsplit(url).scheme not in ("http", "https"):  # http: as a server of one's own
            raise Refusal(
                400, "Bad Request: bad webhook: An HTTPS URL must be provided for webhook"
            )
        with self.changed:
            self._allow(params)
            self.webhook = Webhook(url, secret) if url else None
            if str(params.get("drop_pending_updates", "")).lower() == "true":
                self.confirmed = max([self.confirmed, *(o["update_id"] for o in self._updates)])
            self.polls += 1
            self.changed.notify_all()
        return True

    def do_deletewebhook(self, params: Params) -> bool:
        return self.do_setwebhook({**params, "url": ""})

    def do_getwebhookinfo(self, params: Params) -> dict[str, Any]:
        with self.changed:
            return {
                "url": self.webhook.url if self.webhook else "",
                "has_custom_certificate": False,
                "pending_update_count": len(self.pending()),
            }

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

    def _text(self, params: Params) -> tuple[str, list[dict[str, Any]]]:
        source = str(params.get("text", ""))
        text, entities = source, list[dict[str, Any]]()
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

    def _replied(self, params: Params, chat: Chat) -> Message | None:
        reply = _structure(params, "reply_parameters")
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
        entities: list[dict[str, Any]],
        keyboard: list[list[dict[str, Any]]],
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
        return message.json(self.me())

    def _keep(self, chat: Chat, sender: Person | None, text: str, **more: Any) -> Message:
        message = Message(chat, next(self._ids), sender, text, date=int(time.time()), **more)
        self._messages[chat.id][message.id] = message
        return message

    def _allow(self, params: Params) -> None:
        if "allowed_updates" in params:
            self._allowed = _structure(params, "allowed_updates") or None

    def _is_allowed(self, update: dict[str, Any]) -> bool:
        kinds = update.keys() - {"update_id"}
        if self._allowed is None:
            return not kinds <= NOT_BY_DEFAULT
        return bool(kinds & set(self._allowed))

    # Webhooks.

    def deliver(self) -> None:
        """Posts updates to the webhook, one after the other, each until it is taken."""
        while not self.stopped.is_set():
            with self.changed:
                update = next(iter(self.pending()), None)
                hook = self.webhook
                if hook is None or update is None:
                    self.changed.wait(0.5)
                    continue
            status = post_update(hook.url, update, secret=hook.secret)
            with self.changed:
                self.webhook_answers.append(status)
                if 200 <= status < 300:
                    self.confirmed = max(self.confirmed, update["update_id"])
                self.changed.notify_all()
            if not 200 <= status < 300:
                self.stopped.wait(RETRY_WEBHOOK)


def post_update(url: str, update: dict[str, Any] | bytes, *, secret: str | None) -> int:
    """Delivers one update as Telegram does; returns the status, 0 where there was none."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=PATIENCE)
    body = update if isinstance(update, bytes) else json.dumps(update).encode()
    headers = {"Content-Type": "application/json"}
    if secret:
        headers["X-Telegram-Bot-Api-Secret-Token"] = secret
    try:
        connection.request("POST", address.path, body=body, headers=headers)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


def _refusal(refusal: Refusal) -> tuple[int, dict[str, Any]]:
    body = {"ok": False, "error_code": refusal.status, "description": refusal.description}
    return refusal.status, body | ({"parameters": refusal.parameters} if refusal.parameters else {})


def _structure(params: Params, name: str) -> Any:
    value = params.get(name)
    try:
        return json.loads(value) if isinstance(value, str) and value else value
    except ValueError:
        raise Refusal(400, f"Bad Request: can't parse {name} JSON object") from None


def _keyboard(params: Params) -> list[list[dict[str, Any]]]:
    markup = _structure(params, "reply_markup") or {}
    rows: list[list[dict[str, Any]]] = markup.get("inline_keyboard", [])
    for button in itertools.chain.from_iterable(rows):
        if not button.get("text") or set(button) - {"text", "url"} not in (
            set(),
            {"callback_data"},
        ):
            raise Refusal(400, "Bad Request: can't parse inline keyboard button")
        if "callback_data" in button and not 1 <= len(button["callback_data"].encode()) <= MAX_DATA:
            raise Refusal(400, "Bad Request: BUTTON_DATA_INVALID")
    return [row for row in rows if row]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    api: BotApi

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _serve(self) -> None:
        address = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        params: Params = dict(parse_qsl(address.query, keep_blank_values=True))
        if "json" in (self.headers.get("Content-Type") or ""):
            params |= json.loads(body)
        else:
            params |= dict(parse_qsl(body.decode(), keep_blank_values=True))
        bot, _, method = address.path.removeprefix("/bot").partition("/")
        answer = self.api.answer(bot, method, params)
        if answer is None:
            self.close_connection = True
            return
        status, content = answer
        text = json.dumps(content).encode()
        with suppress(ConnectionError):  # the bot has gone
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that ends is nothing to print."""


@contextmanager
def running_bot_api() -> Iterator[BotApi]:
    """A server of its own for each test, on a port of its own."""
    api = BotApi()
    handler = type("Handler", (_Handler,), {"api": api})
    with _Server(("127.0.0.1", 0), handler) as server:
        api.url = f"http://127.0.0.1:{server.server_address[1]}"
        threads: Sequence[threading.Thread] = [
            threading.Thread(target=server.serve_forever, args=[0.05], daemon=True),
            threading.Thread(target=api.deliver, daemon=True),
        ]
        for thread in threads:
            thread.start()
        try:
            yield api
        finally:
            api.stopped.set()
            with api.changed:
                api.changed.notify_all()
            server.shutdown()
            for thread in threads:
                thread.join(PATIENCE)
