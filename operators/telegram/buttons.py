"""What the buttons of a message carry: which act, on which order, in which version of it.

Telegram hands back the bytes that a button was made with, and anybody could send us others. So
they are signed with a key that comes from SECRET_KEY. A button acts on the order as its message
showed it: a press that comes late, twice or out of turn names a version that is past, and is told
what is true now.
"""

import base64
import binascii
import struct
from dataclasses import dataclass
from enum import IntEnum, unique

from django.utils.crypto import constant_time_compare, salted_hmac

from topups.fulfilments import RejectReason
from topups.transitions import ENDING, Move

MAX_BYTES = 64  # of callback data, says the Bot API
SALT = "operators.telegram.buttons"
CONTENT = struct.Struct(">BBQQ")
SIGNATURE_BYTES = 12


@unique
class Act(IntEnum):
    """What a button does. The numbers are in messages that are out there: they stay."""

    CLAIM = 1
    DONE = 2
    WRONG_ID = 3
    NO_STOCK = 4
    FAILED = 5
    UNREFUNDED = 6
    UNSURE = 7
    RELEASE = 8
    BACK = 9


@dataclass(frozen=True)
class Step:
    """How an act is called, and the move that it makes."""

    label: str
    move: Move
    reason: RejectReason = RejectReason.OTHER

    @property
    def asks(self) -> bool:
        """Whether it ends the order, and so is asked once more."""
        return self.move in ENDING


STEPS = {
    Act.CLAIM: Step("Claim", Move.CLAIM),
    Act.DONE: Step("Done", Move.COMPLETE),
    Act.WRONG_ID: Step("Wrong ID", Move.REJECT, RejectReason.WRONG_ID),
    Act.NO_STOCK: Step("No stock", Move.REJECT, RejectReason.NO_STOCK),
    Act.FAILED: Step("Failed", Move.REJECT),
    Act.UNREFUNDED: Step("Failed, no refund", Move.REJECT_UNREFUNDED),
    Act.UNSURE: Step("Unsure", Move.REVIEW),
    Act.RELEASE: Step("Release", Move.RELEASE),
}


@dataclass(frozen=True)
class Press:
    """A button. `version` is the last event of the order that the message showed; `sure` is the
    second word on an act that asks."""

    act: Act
    fulfilment_id: int
    version: int
    sure: bool = False


class Forged(Exception):
    """This was never a button of ours, or SECRET_KEY has changed since."""


def encode(press: Press) -> str:
    """The callback data of a button: 40 ASCII characters."""
    content = CONTENT.pack(press.act, press.sure, press.fulfilment_id, press.version)
    return base64.urlsafe_b64encode(content + _sign(content)).decode()


def decode(data: str | None) -> Press:
    """The button behind callback data. Raises Forged, whatever the data is."""
    try:
        signed = base64.b64decode((data or "").encode("ascii"), b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error, ValueError):
        raise Forged from None
    content, signature = signed[: CONTENT.size], signed[CONTENT.size :]
    if not constant_time_compare(signature, _sign(content)):
        raise Forged
    act, sure, fulfilment_id, version = CONTENT.unpack(content)
    return Press(Act(act), fulfilment_id, version, bool(sure))


def _sign(content: bytes) -> bytes:
    return salted_hmac(SALT, content, algorithm="sha256").digest()[:SIGNATURE_BYTES]
