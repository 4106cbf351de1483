"""Lists, shows and moves fulfilments for the `fulfilment` command."""

from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from core.inputs import InputProblem
from topups.fulfilment.fulfilments import AlreadyDone, MoveRefused, Operator, move_fulfilment
from topups.fulfilment.transitions import OPEN, Move
from topups.fulfilment.versions import with_versions
from topups.models import Channel, Fulfilment, RejectReason


def list_open() -> list[dict[str, Any]]:
    """The open fulfilments, oldest first."""
    return [_show(row) for row in _rows().filter(status__in=OPEN).order_by("created_at", "pk")]


def show_one(reference: str) -> dict[str, Any]:
    """One fulfilment, open or ended. Raises InputProblem."""
    fulfilment = _rows().filter(order_reference=reference).first()
    if fulfilment is None:
        raise InputProblem(_("There is no top-up order with this reference."))
    return _show(fulfilment)


def move_by_command(
    *,
    reference: str,
    version: int,
    move: Move,
    username: str,
    reason: RejectReason,
    note: str,
    message: str,
) -> dict[str, Any]:
    """Carries out one move for a member of staff; returns the fulfilment.

    A repeated command is not an error. Raises InputProblem.
    """
    user = User.objects.filter(username=username).first()
    if user is None:
        raise InputProblem(_("There is no user %(username)s.") % {"username": f"{username!r}"})
    operator = Operator(user=user, channel=Channel.COMMAND)
    try:
        move_fulfilment(
            reference=reference,
            version=version,
            move=move,
            operator=operator,
            reason=reason,
            note=note,
            message=message,
        )
    except AlreadyDone:
        pass
    except MoveRefused as refused:
        raise InputProblem(str(refused)) from None
    return show_one(reference)


def _rows() -> QuerySet[Fulfilment]:
    return with_versions(Fulfilment.objects.select_related("product", "account", "claimed_by"))


def _show(fulfilment: Any) -> dict[str, Any]:
    """The fulfilment, read by `_rows`, as the command prints it."""
    return {
        "reference": fulfilment.order_reference,
        "version": fulfilment.version,
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
