"""Batches: what is known of an import of codes (supplier, invoice, cost)."""

import hmac
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from hashlib import sha256
from typing import Any

from django.core.exceptions import ValidationError
from django.db import connection
from django.db.models import Count, Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from catalogue.models import Batch, Shelf, VoucherCode
from catalogue.stock.expiry import first_sellable_day
from core.database.columns import NAME_LENGTH, validate_currency
from core.database.key_ring import key_ring
from core.inputs import InputProblem, clean_text

TEXTS = {"supplier": gettext_noop("supplier"), "invoice": gettext_noop("invoice")}
# The condition of each state of a code.
STATES = {
    "in-stock": Q(order_id=None, hold=None),
    "sold": Q(order_id__isnull=False),
    "held": Q(hold__isnull=False, hold__voided_at=None),
    "void": Q(hold__voided_at__isnull=False),
}


@dataclass(frozen=True)
class BatchDetails:
    """The details that staff enter for an import. `unit_cost` is the cost of one code, in
    `cost_currency`; `expires_on` is the last day of sale, in UTC."""

    supplier: str = ""
    invoice: str = ""
    unit_cost: Decimal | None = None
    cost_currency: str = ""
    expires_on: date | None = None

    @classmethod
    def read(cls, values: dict[str, Any]) -> "BatchDetails":
        """The details of a form or command. Raises InputProblem."""
        texts = {
            name: clean_text(values[name], what=what, max_length=NAME_LENGTH)
            for name, what in TEXTS.items()
            if values.get(name)
        }
        cost, currency = values.get("unit_cost"), values.get("cost_currency") or ""
        if (cost is None) != (not currency):
            raise InputProblem(_("A unit cost needs a currency, and a currency a unit cost."))
        try:
            unit_cost = None if cost is None else Decimal(cost)
            if currency:
                validate_currency(currency)
        except (InvalidOperation, ValidationError):
            raise InputProblem(
                _("The cost is not a number, or its currency not like USD.")
            ) from None
        if unit_cost is not None and not (unit_cost.is_finite() and 0 <= unit_cost < 10**16):
            raise InputProblem(_("The cost must be a number of at least 0."))
        return cls(
            **texts,
            unit_cost=unit_cost,
            cost_currency=currency,
            expires_on=_read_expiry(values.get("expires_on")),
        )

    def as_json(self) -> dict[str, str]:
        """The details that were given, to be stored and read again."""
        return {name: str(value) for name, value in vars(self).items() if value not in (None, "")}


def _read_expiry(day: date | str | None) -> date | None:
    """The last day of sale. Raises InputProblem if it is no day, or has passed."""
    if not day:
        return None
    try:
        last = date.fromisoformat(str(day))
    except ValueError:
        raise InputProblem(_("The expiry is not a day like 2027-12-31.")) from None
    if last < first_sellable_day():
        raise InputProblem(_("Codes that expire on %(day)s can no longer be sold.") % {"day": last})
    return last


class FileDigest:
    """The digest of a file, computed while it is read. It is keyed: a plain digest of a file with a
    single code would let others guess the code."""

    def begin(self) -> None:
        """The file is read from its start."""
        self._plain = sha256()

    def add(self, part: bytes) -> None:
        self._plain.update(part)

    def keyed(self) -> bytes:
        """The digest of what was read."""
        return hmac.digest(key_ring().derive(b"import-file"), self._plain.digest(), "sha256")


def total_cost(unit_cost: Decimal | str | None, codes: int) -> Decimal | None:
    """The cost of this number of codes; None if the cost of one is not known."""
    return None if unit_cost is None else Decimal(unit_cost) * codes


def add_batch(
    *, shelf: Shelf, number: int, details: BatchDetails, digest: FileDigest, imported_by: str
) -> Batch:
    """Records the `number` codes that this transaction has just added, and nobody else since."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT currval('catalogue_vouchercode_id_seq')")
        last: int = cursor.fetchone()[0]
    return Batch.objects.create(
        shelf=shelf,
        first_code=last - number + 1,
        last_code=last,
        file_digest=digest.keyed(),
        imported_by=imported_by,
        **vars(details),
    )


def count_codes(batch: Batch) -> dict[str, int]:
    """The number of its codes in each state."""
    counts: dict[str, int] = VoucherCode.objects.filter(batch.its_codes).aggregate(
        **{state: Count("pk", filter=condition) for state, condition in STATES.items()}
    )
    return counts


def batch_of(code: VoucherCode) -> Batch | None:
    """The batch of a code; None if it was imported before there were batches."""
    before = Batch.objects.filter(first_code__lte=code.pk).order_by("-first_code").first()
    return before if before and code.pk <= before.last_code else None
