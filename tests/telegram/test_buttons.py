"""Callback data is signed: only this service can make it."""

import base64
import itertools

import pytest

from operators.telegram.messages.buttons import (
    BUTTON_MOVES,
    CONTENT,
    MAX_BYTES,
    SIGNATURE_BYTES,
    Action,
    Forged,
    Press,
    decode,
    encode,
)
from tests.generating import given, st
from topups.fulfilment.transitions import Move
from topups.models import RejectReason

LARGE = 2**63 - 1


def test_decode_returns_what_was_encoded() -> None:
    for action, sure, order in itertools.product(Action, (False, True), (1, LARGE)):
        press = Press(action, order, LARGE, sure)

        assert decode(encode(press)) == press
        assert len(encode(press).encode()) <= MAX_BYTES


def test_only_actions_that_end_an_order_ask() -> None:
    assert {action for action in BUTTON_MOVES if not BUTTON_MOVES[action].asks} == {
        Action.CLAIM,
        Action.UNSURE,
        Action.RELEASE,
    }


def test_each_reason_to_reject_has_a_button() -> None:
    rejections = [made.reason for made in BUTTON_MOVES.values() if made.move == Move.REJECT]

    assert sorted(rejections) == sorted(RejectReason)


@given(st.one_of(st.none(), st.text(max_size=80)))
def test_any_other_data_is_forged(data: str | None) -> None:
    with pytest.raises(Forged):
        decode(data)


def test_changed_bit_is_forged() -> None:
    signed = base64.urlsafe_b64decode(encode(Press(Action.CLAIM, 7, 9)))
    for bit in range(len(signed) * 8):
        changed = bytearray(signed)
        changed[bit // 8] ^= 1 << bit % 8

        with pytest.raises(Forged):
            decode(base64.urlsafe_b64encode(changed).decode())


def test_signature_is_valid_for_one_button_only() -> None:
    done = base64.urlsafe_b64decode(encode(Press(Action.DONE, 7, 9)))
    claim = base64.urlsafe_b64decode(encode(Press(Action.CLAIM, 7, 9)))
    assert len(claim) == CONTENT.size + SIGNATURE_BYTES

    mixed = done[: CONTENT.size] + claim[CONTENT.size :]

    with pytest.raises(Forged):
        decode(base64.urlsafe_b64encode(mixed).decode())


def test_secret_key_change_makes_buttons_invalid(settings: object) -> None:
    data = encode(Press(Action.CLAIM, 7, 9))
    settings.SECRET_KEY = "another"  # type: ignore[attr-defined]

    with pytest.raises(Forged):
        decode(data)
