"""The buttons of an order's message: those of its state, and those of a question.

The callback data of a button names an action, an order, and a version of that order. Telegram
returns the bytes of the button, but other bytes could arrive too. The data is therefore signed with
a key derived from SECRET_KEY; SECRET_KEY_FALLBACKS are accepted too. The version is the order's
last event that the message showed. A late, repeated or reordered press names an old version and
changes nothing.

Each question names the operator whom it asks. Only the buttons of a question name an amount, and
only for two minutes.
"""

import base64
import binascii
import struct
from dataclasses import dataclass
from enum import IntEnum, unique

from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac

from core.json_output import money_text
from topups.fulfilment.transitions import ENDING, Move
from topups.models import Fulfilment, FulfilmentStatus, RejectReason
from wallets.selectors import left_to_pay_back

MAX_BYTES = 64  # the Bot API's limit for callback data
SALT = "operators.telegram.messages.buttons"
CONTENT = struct.Struct(">BBQQ")
SIGNATURE_BYTES = 12
LONGEST_NAME = 20  # of an operator, in a button


@unique
class Action(IntEnum):
    """The actions of buttons. Posted messages contain these numbers, so they must not change."""

    CLAIM = 1
    DONE = 2
    WRONG_ID = 3
    NO_STOCK = 4
    FAILED = 5
    UNREFUNDED = 6
    UNSURE = 7
    RELEASE = 8
    BACK = 9
    DECIDE = 10


@dataclass(frozen=True)
class ButtonMove:
    """The label of an action, and the move it makes. `cause` is a rejection's reason in short."""

    label: str
    move: Move
    reason: RejectReason = RejectReason.OTHER
    cause: str = ""

    @property
    def asks(self) -> bool:
        """Whether the action ends the order, and therefore needs a confirmation."""
        return self.move in ENDING


def _rejection(cause: str, reason: RejectReason) -> ButtonMove:
    return ButtonMove(f"{cause}: reject, refund", Move.REJECT, reason, cause)


BUTTON_MOVES = {
    Action.CLAIM: ButtonMove("Claim", Move.CLAIM),
    Action.DONE: ButtonMove("Delivered", Move.COMPLETE),
    Action.WRONG_ID: _rejection("Wrong ID", RejectReason.WRONG_ID),
    Action.NO_STOCK: _rejection("No stock", RejectReason.NO_STOCK),
    Action.FAILED: ButtonMove("Reject, refund", Move.REJECT),
    Action.UNREFUNDED: ButtonMove("Fail, no refund", Move.REJECT_UNREFUNDED),
    Action.UNSURE: ButtonMove("Not sure: review", Move.REVIEW),
    Action.RELEASE: ButtonMove("Release", Move.RELEASE),
}
# The actions that reject for a reason, each with a row of its own.
REJECTIONS = [action for action, made in BUTTON_MOVES.items() if made.cause]
# Buttons that move nothing by themselves.
OTHER_LABELS = {Action.BACK: "Go back", Action.DECIDE: "Senior: decide…"}
STATE_BUTTONS: dict[FulfilmentStatus, list[list[Action]]] = {
    FulfilmentStatus.PENDING: [[Action.CLAIM]],
    FulfilmentStatus.PROCESSING: [
        [Action.DONE],
        *([action] for action in REJECTIONS),
        [Action.FAILED, Action.UNSURE],
        [Action.RELEASE],
    ],
    FulfilmentStatus.PENDING_REVIEW: [[Action.DONE], [Action.DECIDE]],
    FulfilmentStatus.COMPLETED: [],
    FulfilmentStatus.FAILED: [],
}
DECISIONS = [*([action] for action in REJECTIONS), [Action.FAILED, Action.UNREFUNDED]]


def in_sentence(words: str) -> str:
    """The words as a part of a sentence: `wrong player ID`."""
    return words[:1].lower() + words[1:]


@dataclass(frozen=True)
class Press:
    """The meaning of a button. `version` is the order's last event that the message showed; `sure`
    marks the button that confirms an action."""

    action: Action
    fulfilment_id: int
    version: int
    sure: bool = False


@dataclass(frozen=True)
class Button:
    """A button's label and its callback data."""

    label: str
    data: str


Rows = list[list[Button]]


class Forged(Exception):
    """The data is not from a button of this service, or its secret key is no longer accepted."""


def encode(press: Press) -> str:
    """The callback data of a button: 40 ASCII characters."""
    content = CONTENT.pack(press.action, press.sure, press.fulfilment_id, press.version)
    signature = _sign(content, settings.SECRET_KEY)
    return base64.urlsafe_b64encode(content + signature).decode()


def decode(data: str | None) -> Press:
    """Reads callback data. Raises Forged for anything that `encode` did not make."""
    try:
        signed = base64.b64decode((data or "").encode("ascii"), b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error, ValueError):
        raise Forged from None
    content, signature = signed[: CONTENT.size], signed[CONTENT.size :]
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    if not any(constant_time_compare(signature, _sign(content, key)) for key in keys):
        raise Forged
    action, sure, fulfilment_id, version = CONTENT.unpack(content)
    return Press(Action(action), fulfilment_id, version, bool(sure))


def state_buttons(fulfilment: Fulfilment, version: int) -> Rows:
    """The buttons that the state of the order allows."""
    return _rows(STATE_BUTTONS[FulfilmentStatus(fulfilment.status)], fulfilment.pk, version)


def confirmation(press: Press, fulfilment: Fulfilment, name: str) -> tuple[str, Rows]:
    """The effect of the press, such as `Reject and refund 4.99 USD?`, and the buttons that ask the
    operator `name` to confirm it. Reads the order's ledger entries from the database."""
    cause = in_sentence(BUTTON_MOVES[press.action].cause)
    question = f"{cause}{': ' if cause else ''}{_consequence(press.action, fulfilment)}?"
    yes = Press(press.action, press.fulfilment_id, press.version, sure=True)
    rows = [[Button(f"{_short(name)}: {question}", encode(yes))], [_back(press)]]
    return question[0].upper() + question[1:], rows


def decisions(press: Press) -> Rows:
    """The buttons of what only a senior operator may decide. Each asks for confirmation."""
    return [*_rows(DECISIONS, press.fulfilment_id, press.version), [_back(press)]]


def _sign(content: bytes, secret_key: str) -> bytes:
    signature = salted_hmac(SALT, content, secret=secret_key, algorithm="sha256").digest()
    return signature[:SIGNATURE_BYTES]


def _rows(actions: list[list[Action]], fulfilment_id: int, version: int) -> Rows:
    return [[_button(action, fulfilment_id, version) for action in row] for row in actions]


def _button(action: Action, fulfilment_id: int, version: int) -> Button:
    """The button of an action, with its usual label."""
    move = BUTTON_MOVES.get(action)
    label = move.label if move else OTHER_LABELS[action]
    return Button(label, encode(Press(action, fulfilment_id, version)))


def _consequence(action: Action, fulfilment: Fulfilment) -> str:
    match BUTTON_MOVES[action].move:
        case Move.COMPLETE:
            return "mark as delivered"
        case Move.REJECT_UNREFUNDED:
            return "fail without refund"
        case _:
            left = left_to_pay_back(fulfilment.order_reference)
            if not left:
                return "reject, with nothing left to refund"
            return f"reject and refund {money_text(left)} {fulfilment.currency}"


def _back(press: Press) -> Button:
    return _button(Action.BACK, press.fulfilment_id, press.version)


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
