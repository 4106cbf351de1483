"""The desk for the `fulfilment` command."""

from typing import Any

from django.contrib.auth.models import User

from config.inputs import InputProblem
from topups.fulfilments import MoveRefused, Operator, RejectReason, move_fulfilment
from topups.models import Channel, Fulfilment
from topups.transitions import OPEN, Move


def list_open() -> list[dict[str, Any]]:
    """The open fulfilments, oldest first."""
    rows = Fulfilment.objects.filter(status__in=OPEN).order_by("created_at", "pk")
    return [show(row) for row in rows.select_related("product", "account", "claimed_by")]


def move_by_command(
    *, reference: str, move: Move, username: str, reason: RejectReason, note: str
) -> dict[str, Any]:
    """Carries out one move for a member of staff; returns the fulfilment. Raises InputProblem."""
    user = User.objects.filter(username=username).first()
    if user is None:
        raise InputProblem(f"There is no user {username!r}.")
    operator = Operator(user=user, channel=Channel.COMMAND)
    try:
        moved = move_fulfilment(
            reference=reference, move=move, operator=operator, reason=reason, note=note
        )
    except MoveRefused as refused:
        raise InputProblem(str(refused)) from None
    return show(moved)


def show(fulfilment: Fulfilment) -> dict[str, Any]:
    """The fulfilment as the command prints it."""
    return {
        "reference": fulfilment.order_reference,
        "status": fulfilment.status,
        "product": fulfilment.product.name,
        "player_id": fulfilment.player_id,
        "fields": {field["label"]: field["value"] for field in fulfilment.fields},
        "merchant": fulfilment.account.name,
        "claimed_by": fulfilment.claimed_by.username if fulfilment.claimed_by else None,
        "failure_reason": fulfilment.failure_reason,
        "refund_due": fulfilment.refund_due_at is not None and not fulfilment.refunded,
        "refunded": fulfilment.refunded,
        "created_at": fulfilment.created_at,
    }
