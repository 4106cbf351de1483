"""Show voucher codes to staff."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction

from audit.models import AuditAction
from audit.services import record_action
from catalogue.models import VoucherCode
from catalogue.stock.codes import Code, open_code
from core.database.sealing import CannotOpen
from orders.codes import has_codes
from orders.models import Order


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
    sold with exactly the codes that it has now.
    """
    with transaction.atomic(durable=True):
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


def _check_codes(order: Order) -> None:
    stored = VoucherCode.objects.filter(order_id=order.pk).order_by("position")
    digests = b"".join(bytes(digest) for digest in stored.values_list("digest", flat=True))
    mac = bytes(order.codes_mac or b"")
    if not has_codes(order.client_id, order.reference, mac, digests):
        raise CannotOpen("the order was not sold with these codes")
