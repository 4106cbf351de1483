"""The state machine of a fulfilment: every legal move (contract, "States and transitions")."""

from dataclasses import dataclass

from django.db import models

from core.texts import lazy
from topups.models import FulfilmentStatus

PENDING = FulfilmentStatus.PENDING
PROCESSING = FulfilmentStatus.PROCESSING
PENDING_REVIEW = FulfilmentStatus.PENDING_REVIEW
COMPLETED = FulfilmentStatus.COMPLETED
FAILED = FulfilmentStatus.FAILED

OPEN = frozenset({PENDING, PROCESSING, PENDING_REVIEW})
FULFIL = "topups.fulfil"
DECIDE_REVIEW = "topups.decide_review"


class Move(models.TextChoices):
    """A step that an operator can take with a fulfilment."""

    CLAIM = "claim", lazy("Claim")
    RELEASE = "release", lazy("Release")
    COMPLETE = "complete", lazy("Complete")
    REVIEW = "review", lazy("Review")
    REJECT = "reject", lazy("Reject")
    REJECT_UNREFUNDED = "reject_unrefunded", lazy("Reject Unrefunded")


@dataclass(frozen=True)
class Rule:
    """The states a move may start from, where it leads, and whether it makes a refund due."""

    sources: frozenset[FulfilmentStatus]
    target: FulfilmentStatus
    refund: bool = False


RULES = {
    Move.CLAIM: Rule(frozenset({PENDING}), PROCESSING),
    Move.RELEASE: Rule(frozenset({PROCESSING}), PENDING),
    Move.COMPLETE: Rule(OPEN, COMPLETED),
    Move.REVIEW: Rule(frozenset({PROCESSING}), PENDING_REVIEW),
    Move.REJECT: Rule(OPEN, FAILED, refund=True),
    Move.REJECT_UNREFUNDED: Rule(frozenset({PENDING_REVIEW}), FAILED),
}

ENDING = frozenset(move for move, rule in RULES.items() if rule.target not in OPEN)


def needs_senior(move: Move, status: FulfilmentStatus) -> bool:
    """Whether only a senior operator may make the move: a move that fails an order in review."""
    return status == PENDING_REVIEW and RULES[move].target == FAILED


def moves_from(status: FulfilmentStatus) -> list[Move]:
    """The moves that are legal from a state, in the order in which they are offered."""
    return [move for move, rule in RULES.items() if status in rule.sources]
