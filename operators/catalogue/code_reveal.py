"""Show voucher codes to staff."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from audit.models import AuditAction, AuditEntry
from audit.services import record_action
from catalogue.models import VoucherCode
from catalogue.stock.codes import Code, open_code
from core.database.sealing import CannotOpen
from core.inputs import InputProblem
from orders.codes import has_codes
from orders.models import Order

MOST, WITHIN = 20, timedelta(hours=1)  # codes that one person reveals


@dataclass(frozen=True)
class Revealed:
    """A code and the row it came from."""

    pk: int
    code: Code


def reveal_codes(
    *, codes: Sequence[VoucherCode], order: Order | None, actor: User, note: str
) -> list[Revealed]:
    """Opens the codes and writes one audit entry for each.

    The entries are committed before this returns, so every code that is shown is in the audit
    trail. Raises CannotOpen, and writes no entry, if any code cannot be opened or the order was not
    sold with exactly the codes that it has now. Raises InputProblem beyond MOST codes an hour.
    """
    with transaction.atomic(durable=True):
        _check_limit(actor, len(codes))
        if order:
            _check_codes(order)
        for code in codes:
            record_action(
                actor=actor,
                action=AuditAction.CODE_REVEALED,
                on=code,
                reference=order.reference if order else "",
                note=note,
            )
        return [Revealed(code.pk, open_code(code.sealed, code.digest)) for code in codes]


def _check_limit(actor: User, number: int) -> None:
    """Locks the person, so that two requests do not both reveal the last code of the hour."""
    User.objects.select_for_update(no_key=True).get(pk=actor.pk)
    revealed = AuditEntry.objects.filter(
        actor=actor, action=AuditAction.CODE_REVEALED, created_at__gt=timezone.now() - WITHIN
    ).count()
    if revealed + number > MOST:
        raise InputProblem(
            _(
                "Nothing was revealed: one person reveals at most %(most)s codes an hour, and you"
                " have revealed %(revealed)s."
            )
            % {"most": MOST, "revealed": revealed}
        )


def _check_codes(order: Order) -> None:
    stored = VoucherCode.objects.filter(order_id=order.pk).order_by("position")
    digests = b"".join(bytes(digest) for digest in stored.values_list("digest", flat=True))
    mac = bytes(order.codes_mac or b"")
    if not has_codes(order.client_id, order.reference, mac, digests):
        raise CannotOpen("the order was not sold with these codes")
