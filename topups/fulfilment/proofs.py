"""Proofs of delivery: a transaction number, a picture or a PDF, added to a delivered top-up.

A proof is never changed. A wrong one is corrected by adding another
(docs/decisions/0107-proofs-of-delivery.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import Account
from audit.models import AuditAction
from audit.services import record_action
from core.files.uploads import check_file, fits
from core.inputs import InputProblem, clean_text
from topups.fulfilment.fulfilments import Operator, check_operator, move_fulfilment
from topups.fulfilment.transitions import Move
from topups.models import (
    TRANSACTION_NUMBER_LENGTH,
    DeliveryFile,
    DeliveryProof,
    Fulfilment,
    FulfilmentStatus,
)

MAX_PROOFS = 20  # of one order
MAX_STORED = 2_000_000_000  # bytes of the files of one account


@dataclass(frozen=True)
class NewProof:
    """A transaction number, or the name and content of a file, or both, as an operator adds them.

    `token` is that of the form. A form that is sent twice adds one proof.
    """

    transaction_number: str = ""
    file: tuple[str, bytes] | None = None
    token: UUID = field(default_factory=uuid4)

    @property
    def is_empty(self) -> bool:
        return not self.transaction_number.strip() and self.file is None


@transaction.atomic
def deliver(
    *, reference: str, version: int, operator: Operator, note: str, proof: NewProof
) -> Fulfilment:
    """Marks an order delivered, with a proof: both or neither.

    Raises what `move_fulfilment` and `add_proof` raise.
    """
    fulfilment = move_fulfilment(
        reference=reference, version=version, move=Move.COMPLETE, operator=operator, note=note
    )
    add_proof(fulfilment=fulfilment, operator=operator, proof=proof)
    return fulfilment


@transaction.atomic
def add_proof(*, fulfilment: Fulfilment, operator: Operator, proof: NewProof) -> DeliveryProof:
    """Adds a proof to a delivered order; returns the first one if the form was sent before.

    Raises MoveRefused if the operator may not work on orders, and InputProblem if the order is not
    delivered, for a text or file that cannot be used, or if the form was sent with another one.
    """
    check_operator(operator)
    # Forms of one order take turns, so the second one finds the proof of the first.
    order = Fulfilment.objects.select_for_update(no_key=True).get(pk=fulfilment.pk)
    before = DeliveryProof.objects.filter(fulfilment=order)
    if added := before.filter(token=proof.token).first():
        if not _is_same(added, proof):
            raise InputProblem(
                _("This form was sent before, with another proof. Open it again to add one more.")
            )
        return added
    if order.status != FulfilmentStatus.COMPLETED:
        raise InputProblem(_("Only a delivered order has a proof of delivery."))
    if proof.is_empty:
        raise InputProblem(_("Enter a transaction number, or choose a file."))
    if before.count() >= MAX_PROOFS:
        raise InputProblem(_("An order has at most %(most)s proofs.") % {"most": MAX_PROOFS})
    row = DeliveryProof.objects.create(
        fulfilment=order,
        token=proof.token,
        transaction_number=clean_number(proof.transaction_number),
        added_by=operator.user,
    )
    file = _store(row, proof.file) if proof.file else None
    _record(row, file, operator.user)
    return row


def clean_number(text: str) -> str:
    """The transaction number, which may be empty. Raises InputProblem if it cannot be shown."""
    return text.strip() and clean_text(
        text, what=gettext_noop("transaction number"), max_length=TRANSACTION_NUMBER_LENGTH
    )


def _is_same(added: DeliveryProof, proof: NewProof) -> bool:
    file = DeliveryFile.objects.filter(proof=added).first()
    stored = (file.name, file.content()) if file else None
    sent = (check_file(*proof.file)[0], proof.file[1]) if proof.file else None
    return (added.transaction_number, stored) == (clean_number(proof.transaction_number), sent)


def proofs_of(fulfilment: Fulfilment | int) -> QuerySet[DeliveryProof]:
    """The proofs of an order, oldest first, with their files but without the files' contents.

    A proof without a transaction number is left out once its file is deleted.
    """
    rows = DeliveryProof.objects.filter(
        ~Q(transaction_number="") | Q(file__isnull=False), fulfilment=fulfilment
    )
    return rows.select_related("file", "added_by").defer("file__sealed").order_by("pk")


def _store(row: DeliveryProof, content: tuple[str, bytes]) -> DeliveryFile:
    file = DeliveryFile.of(*content)
    # Files of one account take turns, so none is added beside the sum of another.
    Account.objects.select_for_update(no_key=True).get(pk=row.fulfilment.account_id)
    of_account = DeliveryFile.objects.filter(proof__fulfilment__account=row.fulfilment.account_id)
    if not fits([file], beside=of_account, limit=MAX_STORED):
        raise InputProblem(
            _("The proofs of this account take up %(limit)s MB, the most they may.")
            % {"limit": MAX_STORED // 1_000_000}
        )
    file.proof = row
    file.save()
    return file


def _record(row: DeliveryProof, file: DeliveryFile | None, actor: User) -> None:
    facts: Iterable[tuple[str, str]] = (
        ("transaction number", row.transaction_number),
        ("file", file.content_type if file else ""),
    )
    record_action(
        actor=actor,
        action=AuditAction.PROOF_ADDED,
        on=row.fulfilment,
        reference=row.fulfilment.order_reference,
        changes={name: (None, fact) for name, fact in facts if fact},
    )
