"""The callback data of a button: an action, an order, and a version of that order.

Telegram returns the bytes of the button, but other bytes could arrive too. The data is therefore
signed with a key derived from SECRET_KEY; SECRET_KEY_FALLBACKS are accepted too. The version is the
order's last event that the message showed. A late, repeated or reordered press names an old version
and changes nothing.
"""

import base64
import binascii
import struct
from dataclasses import dataclass
from enum import IntEnum, unique

from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac

from topups.fulfilments import RejectReason
from topups.transitions import ENDING, Move

MAX_BYTES = 64  # the Bot API's limit for callback data
SALT = "operators.telegram.buttons"
CONTENT = struct.Struct(">BBQQ")
SIGNATURE_BYTES = 12


@unique
class Action(IntEnum):
    """What a button does. Posted messages contain these numbers, so they must not change."""

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
    """The label of an action, and the move it makes."""

    label: str
    move: Move
    reason: RejectReason = RejectReason.OTHER

    @property
    def asks(self) -> bool:
        """Whether the action ends the order, and therefore needs a confirmation."""
        return self.move in ENDING


BUTTON_MOVES = {
    Action.CLAIM: ButtonMove("Claim", Move.CLAIM),
    Action.DONE: ButtonMove("Delivered", Move.COMPLETE),
    Action.WRONG_ID: ButtonMove("Wrong ID: reject, refund", Move.REJECT, RejectReason.WRONG_ID),
    Action.NO_STOCK: ButtonMove("No stock: reject, refund", Move.REJECT, RejectReason.NO_STOCK),
    Action.FAILED: ButtonMove("Reject, refund", Move.REJECT),
    Action.UNREFUNDED: ButtonMove("Fail, no refund", Move.REJECT_UNREFUNDED),
    Action.UNSURE: ButtonMove("Not sure: review", Move.REVIEW),
    Action.RELEASE: ButtonMove("Release", Move.RELEASE),
}
# Buttons that move nothing by themselves.
OTHER_LABELS = {Action.BACK: "Go back", Action.DECIDE: "Senior: decide…"}


def label_of(action: Action) -> str:
    """What the button of an action says."""
    move = BUTTON_MOVES.get(action)
    return move.label if move else OTHER_LABELS[action]


@dataclass(frozen=True)
class Press:
    """A button. `version` is the order's last event that the message showed; `sure` marks the
    button that confirms an action."""

    action: Action
    fulfilment_id: int
    version: int
    sure: bool = False


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


def _sign(content: bytes, secret_key: str) -> bytes:
    signature = salted_hmac(SALT, content, secret=secret_key, algorithm="sha256").digest()
    return signature[:SIGNATURE_BYTES]
