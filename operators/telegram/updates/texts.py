"""Texts of people: commands, and replies to an order's message. All answers are Telegram's HTML.

No command changes an order: the buttons of its message do, and the answers link to that message.

A reply becomes a note in the order's timeline, which the merchant never sees. After a rejection or
a doubt, the operator replies to the message and says why.
"""

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from structlog.contextvars import bound_contextvars

from audit.models import AuditAction, AuditEntry
from audit.services import record_action
from core.database.columns import NOTE_LENGTH
from core.inputs import InputProblem
from operators.frame.desk_summary import age_in_words
from operators.telegram.chats import platform_settings, read_platform
from operators.telegram.messages.message import render
from operators.telegram.models import Announcement, AnnouncementRoute, PlatformSettings
from operators.telegram.staff_links import (
    NotAnOperator,
    consume_code,
    operator_of,
    record_refusal,
    void_code,
)
from operators.telegram.updates.bot_cache import may_answer_stranger, note_handled, was_handled
from topups.fulfilment.fulfilments import Operator
from topups.fulfilment.transitions import OPEN
from topups.models import Fulfilment, FulfilmentStatus

LISTED = 15  # keeps the list below the 4096 characters of a message, even with long names
MAX_REFERENCE = 64
MENU = {
    "queue": "Open orders, oldest first",
    "mine": "Orders you have claimed",
    "order": "Show one order: /order REFERENCE",
    "chat": "Show the id of this chat",
    "help": "Show the commands",
}
HELP = "\n".join(
    [
        "Orders are announced in the operators' chat. Work on an order with the buttons below it."
        " Reply to its message to add a note, such as why you rejected it.",
        *(f"/{name}: {escape(text)}" for name, text in MENU.items()),
        "/link CODE: Link your account (private chat only; get a code in the back office)",
    ]
)
UNLINKED = (
    "Hello. To use this bot, link your Telegram account: open the back office, choose Telegram"
    " below your name, get a code, and send it to me."
)
IN_PRIVATE = (
    "Send this in a private chat. Codes sent in a group stop working: get a new one in the back"
    " office."
)
STATES = {
    FulfilmentStatus.PENDING: "🟡 waiting",
    FulfilmentStatus.PROCESSING: "🔵 claimed by {}",
    FulfilmentStatus.PENDING_REVIEW: "🟠 in review",
}


@dataclass(frozen=True)
class Command:
    """A command as Telegram delivers it; `words` is the text after its name."""

    telegram_user_id: int
    chat_id: int
    private: bool
    name: str
    words: str
    topic_id: int | None = None


@dataclass(frozen=True)
class Added:
    """The addition of the bot to a group, and who added it."""

    telegram_user_id: int
    chat_id: int
    title: str


@dataclass(frozen=True)
class Reply:
    """A reply as Telegram delivers it. `to` is the message that it answers."""

    telegram_user_id: int
    chat_id: int
    message_id: int
    to: int
    text: str


def answer_command(command: Command) -> str | None:
    """The answer, in HTML; None for a group that is not the operators', where only staff who ask
    for its id are answered, and for a stranger in a chat where one was answered lately."""
    if not command.private and command.name in ("start", "link"):
        void_code(command.words)  # other members of the group have seen it
    if not command.private and command.chat_id not in _our_chats():
        return _id_of_new_chat(command)
    if command.name in ("start", "link"):
        return _link(command)
    try:
        operator = operator_of(command.telegram_user_id)
    except NotAnOperator as refused:
        _refuse(command, f"typed /{command.name}")
        return _answer_to_stranger(command.chat_id, str(refused))
    if command.name == "chat":
        return _id_of(command)
    return ANSWERS[command.name](operator, command.words)


def answer_added(added: Added) -> str | None:
    """The id of the group, for linked staff who added the bot; None for anybody else."""
    try:
        operator_of(added.telegram_user_id)
    except NotAnOperator:
        return None
    return (
        f"You added me to <b>{escape(added.title)}</b>. The id of that chat is"
        f" <code>{added.chat_id}</code>. Enter it in the back office, under Telegram settings, and"
        " send a test message from there."
    )


def add_note(reply: Reply) -> str | None:
    """Adds the text as a note of the order, and returns the answer.

    None for a reply to a message of no order, for a reply that was handled before, and for a
    stranger in a chat where one was answered lately: the bot answers none of these.
    """
    named = Q(message_id=reply.to) | Q(former_message_id=reply.to)
    row = Announcement.objects.filter(named, chat_id=reply.chat_id).first()
    name = f"reply-{reply.chat_id}-{reply.message_id}"
    if row is None or was_handled(name):
        return None
    fulfilment = row.fulfilment
    try:
        operator = operator_of(reply.telegram_user_id)
    except NotAnOperator as refused:
        record_refusal(
            telegram_user_id=reply.telegram_user_id,
            on=fulfilment,
            reference=fulfilment.order_reference,
            note="replied to an order's message",
        )
        return _answer_to_stranger(reply.chat_id, str(refused))
    note = reply.text.replace("\x00", "").strip()
    if len(note) > NOTE_LENGTH:
        return f"The note was not kept: it has more than {NOTE_LENGTH} characters."
    _add_once(reply, row, operator, note)
    if not note_handled(name):
        return None
    return f"Note kept for {fulfilment.order_reference}. The merchant does not see it."


def _id_of_new_chat(command: Command) -> str | None:
    """The id, for staff who set up a new group. Nobody else there learns that the bot works."""
    if command.name != "chat":
        return None
    try:
        operator_of(command.telegram_user_id)
    except NotAnOperator:
        return None
    return _id_of(command)


def _id_of(command: Command) -> str:
    text = f"The id of this chat is <code>{command.chat_id}</code>."
    if command.topic_id is None:
        return text
    return f"{text} The id of this topic is <code>{command.topic_id}</code>."


def _our_chats() -> set[int]:
    routes = set(AnnouncementRoute.objects.values_list("chat_id", flat=True))
    default = platform_settings().chat_id
    return routes if default is None else routes | {default}


def _answer_to_stranger(chat_id: int, words: str) -> str | None:
    return escape(words) if may_answer_stranger(chat_id) else None


def _link(command: Command) -> str | None:
    """Links the sender of a valid code. Sending or delivering a code twice is not an error."""
    if not command.private:
        return _answer_to_stranger(command.chat_id, IN_PRIVATE)
    try:
        if command.words:
            consume_code(code=command.words, telegram_user_id=command.telegram_user_id)
        operator = operator_of(command.telegram_user_id)
    except InputProblem as problem:
        return _link_again(command, problem)
    except NotAnOperator:
        return UNLINKED
    return f"You are linked as <b>{escape(operator.user.get_username())}</b>.\n\n{HELP}"


def _link_again(command: Command, problem: InputProblem) -> str:
    try:
        operator = operator_of(command.telegram_user_id)
    except NotAnOperator:
        _refuse(command, "sent an invalid link code")
        return escape(str(problem))
    name = escape(operator.user.get_username())
    return f"{escape(str(problem))} You are linked as <b>{name}</b>."


def _queue(operator: Operator, words: str) -> str:
    return _list(Fulfilment.objects.filter(status__in=OPEN), "There are no open orders.")


def _mine(operator: Operator, words: str) -> str:
    return _list(Fulfilment.objects.filter(claimed_by=operator.user), "You have no claimed orders.")


def _order(operator: Operator, words: str) -> str:
    reference = words.strip()[:MAX_REFERENCE].replace("\x00", "")
    if not reference:
        return "Add the order's reference: /order REFERENCE."
    orders = Fulfilment.objects.select_related("product__category")
    fulfilment = orders.filter(order_reference__iexact=reference).first()
    if fulfilment is None:
        return f"There is no top-up order <code>{escape(reference)}</code>."
    text = render(fulfilment, now=timezone.now(), zone=read_platform().zone).text
    address = _address(Announcement.objects.filter(fulfilment=fulfilment).first())
    return f'{text}\n<a href="{address}">Open its message</a>' if address else text


def _help(operator: Operator, words: str) -> str:
    return HELP


ANSWERS: dict[str, Callable[[Operator, str], str]] = {
    "queue": _queue,
    "mine": _mine,
    "order": _order,
    "help": _help,
}


def _list(orders: QuerySet[Fulfilment], nothing: str) -> str:
    rows = orders.select_related("product", "claimed_by", "announcement")
    first = list(rows.order_by("created_at", "pk")[: LISTED + 1])
    if not first:
        return nothing
    lines = [_line(each) for each in first[:LISTED]]
    if len(first) > LISTED:
        lines.append(f"… and {orders.count() - LISTED} more.")
    return "\n".join(lines)


def _line(fulfilment: Fulfilment) -> str:
    state = STATES[FulfilmentStatus(fulfilment.status)].format(fulfilment.claimed_by)
    reference = f"<code>{fulfilment.order_reference}</code>"
    address = _address(getattr(fulfilment, "announcement", None))
    product = escape(fulfilment.product.name[:40])
    named = f'<a href="{address}">{product}</a>' if address else product
    age = age_in_words(timezone.now() - fulfilment.created_at)
    return f"{reference} {named}, {age}, {escape(state[:50])}"


def _address(announcement: Announcement | None) -> str:
    """The link to the order's message; empty outside supergroups, which alone have such links."""
    if announcement is None or announcement.message_id is None:
        return ""
    chat = str(announcement.chat_id)
    if not chat.startswith("-100"):
        return ""
    return f"https://t.me/c/{chat.removeprefix('-100')}/{announcement.message_id}"


def _refuse(command: Command, note: str) -> None:
    record_refusal(telegram_user_id=command.telegram_user_id, on=PlatformSettings(), note=note)


def _add_once(reply: Reply, row: Announcement, operator: Operator, note: str) -> None:
    """Adds the note, unless a process that crashed before its answer has added it already.

    The note carries the name of its reply as its request id. Under the announcement's lock, only
    one process at a time looks for it.
    """
    name = f"telegram-{reply.chat_id}-{reply.message_id}"
    fulfilment = row.fulfilment
    with transaction.atomic(), bound_contextvars(request_id=name):
        Announcement.objects.select_for_update(no_key=True).get(pk=row.pk)
        if not AuditEntry.objects.filter(action=AuditAction.NOTE_ADDED, request_id=name).exists():
            record_action(
                actor=operator.user,
                action=AuditAction.NOTE_ADDED,
                on=fulfilment,
                reference=fulfilment.order_reference,
                note=note,
            )
