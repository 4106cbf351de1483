"""The buttons with which a message asks: to confirm a step, or what a senior operator decides.

Each question names who was asked. Only these buttons name an amount, and only for two minutes.
"""

from core.json_output import money_text
from operators.telegram.buttons import BUTTON_MOVES, Action, Press, encode
from operators.telegram.message import Button, Rows, button
from topups.models import Fulfilment
from topups.transitions import Move
from wallets.selectors import left_to_pay_back

LONGEST_NAME = 20  # of an operator, in a button
REASONS = {Action.WRONG_ID: "wrong ID: ", Action.NO_STOCK: "no stock: "}
DECISIONS = [[Action.WRONG_ID], [Action.NO_STOCK], [Action.FAILED, Action.UNREFUNDED]]


def confirmation(press: Press, fulfilment: Fulfilment, name: str) -> tuple[str, Rows]:
    """What the press will do, such as `Reject and refund 4.99 USD?`, and the buttons that ask the
    operator `name` to confirm it. Reads the order's ledger entries from the database."""
    question = f"{REASONS.get(press.action, '')}{_consequence(press.action, fulfilment)}?"
    yes = Press(press.action, press.fulfilment_id, press.version, sure=True)
    rows = [[Button(f"{_short(name)}: {question}", encode(yes))], [_back(press)]]
    return question[0].upper() + question[1:], rows


def decisions(press: Press) -> Rows:
    """The buttons of what only a senior operator may decide. Each asks for confirmation."""
    rows = [
        [button(Press(action, press.fulfilment_id, press.version)) for action in row]
        for row in DECISIONS
    ]
    return [*rows, [_back(press)]]


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
    return button(Press(Action.BACK, press.fulfilment_id, press.version))


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
