"""The bot's answers to commands: the queue, the sender's claims, one order, and linking.

All texts are Telegram's HTML. No command changes an order: the buttons of its message do, and the
answers link to that message.
"""

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from django.db.models import QuerySet
from django.utils import timezone

from core.inputs import InputProblem
from operators.desk_summary import age_in_words
from operators.models import Announcement, AnnouncementRoute, PlatformSettings
from operators.telegram.message import render
from operators.telegram.platform_settings import platform_settings, read_platform
from operators.telegram.staff_links import (
    NotAnOperator,
    consume_code,
    operator_of,
    record_refusal,
    void_code,
)
from topups.fulfilments import Operator
from topups.models import Fulfilment, FulfilmentStatus
from topups.transitions import OPEN

SHOWN = 15  # keeps the list below the 4096 characters of a message, even with long names
MAX_REFERENCE = 64
MENU = {
    "queue": "Open orders, oldest first",
    "mine": "Orders you have claimed",
    "order": "Show one order: /order REFERENCE",
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
class Typed:
    """A command as Telegram delivers it; `words` is the text after its name."""

    telegram_user_id: int
    chat_id: int
    private: bool
    name: str
    words: str


def answer(typed: Typed) -> str | None:
    """The answer, in HTML; None for groups that are not the operators': the bot ignores those."""
    if not typed.private and typed.name in ("start", "link"):
        void_code(typed.words)  # other people have seen it
    if not typed.private and typed.chat_id not in _our_chats():
        return None
    if typed.name in ("start", "link"):
        return _link(typed)
    try:
        operator = operator_of(typed.telegram_user_id)
    except NotAnOperator as refused:
        _refuse(typed, f"typed /{typed.name}")
        return escape(str(refused))
    return ANSWERS[typed.name](operator, typed.words)


def _our_chats() -> set[int]:
    routes = set(AnnouncementRoute.objects.values_list("chat_id", flat=True))
    default = platform_settings().chat_id
    return routes if default is None else routes | {default}


def _link(typed: Typed) -> str:
    """Links the sender of a valid code. Sending or delivering a code twice is not an error."""
    if not typed.private:
        return IN_PRIVATE
    try:
        if typed.words:
            consume_code(code=typed.words, telegram_user_id=typed.telegram_user_id)
        operator = operator_of(typed.telegram_user_id)
    except InputProblem as problem:
        return _link_again(typed, problem)
    except NotAnOperator:
        return UNLINKED
    return f"You are linked as <b>{escape(operator.user.get_username())}</b>.\n\n{HELP}"


def _link_again(typed: Typed, problem: InputProblem) -> str:
    try:
        operator = operator_of(typed.telegram_user_id)
    except NotAnOperator:
        _refuse(typed, "sent an invalid link code")
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
    found = Fulfilment.objects.select_related("product__category").filter(
        order_reference__iexact=reference
    )
    fulfilment = found.first()
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
    shown = list(rows.order_by("created_at", "pk")[: SHOWN + 1])
    if not shown:
        return nothing
    lines = [_line(each) for each in shown[:SHOWN]]
    if len(shown) > SHOWN:
        lines.append(f"… and {orders.count() - SHOWN} more.")
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


def _refuse(typed: Typed, note: str) -> None:
    record_refusal(telegram_user_id=typed.telegram_user_id, on=PlatformSettings(), note=note)
