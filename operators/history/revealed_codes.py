"""The audit entries of codes that staff revealed."""

from collections.abc import Sequence
from dataclasses import replace

from django.db.models import BigIntegerField, Case, Exists, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Cast
from django.db.models.lookups import GreaterThanOrEqual, IsNull, LessThanOrEqual

from accounts.models import ApiClient
from audit.models import AuditEntry
from catalogue.models import Batch, VoucherCode
from operators.history.audit_trail import Entry, entry_of
from orders.models import Order

# The id of the code that an entry is about; null for entries about anything else.
CODE = Case(
    When(object_type=VoucherCode._meta.label_lower, then=Cast("object_id", BigIntegerField()))
)
ITS_CODE = VoucherCode.objects.filter(pk=Cast(OuterRef("object_id"), BigIntegerField()))
BY_SHELF = {"catalogue.shelf": "shelf", "catalogue.product": "shelf__product"}
BY_BUYER = {"accounts.account": "account", "accounts.apiclient": "pk"}


def condition_of_codes(label: str, pk: str) -> Q | None:
    """The condition for entries about codes of a batch, a shelf or a product, or about codes that
    an account or a client bought. None for objects of other models."""
    if label == "catalogue.batch":
        # Codes of an import that was taken back are deleted; their range is still known.
        batch = Batch.objects.filter(pk=pk).first()
        if batch is None:
            return Q(pk=None)
        return Q(GreaterThanOrEqual(CODE, batch.first_code), LessThanOrEqual(CODE, batch.last_code))
    if field := BY_SHELF.get(label):
        return Q(Exists(ITS_CODE.filter(**{field: pk})))
    if field := BY_BUYER.get(label):
        # Their ids: a join would read all clients for each code.
        clients = list(ApiClient.objects.filter(**{field: pk}).values_list("pk", flat=True))
        return condition_of_orders(Order.objects.filter(client__in=clients))
    return None


def condition_of_orders(orders: QuerySet[Order]) -> Q:
    """The condition for entries about codes of these orders, also those seen before the sale."""
    code = Cast(OuterRef(OuterRef("object_id")), BigIntegerField())
    sale = VoucherCode.objects.filter(pk=code).values("order_id")[:1]
    found = (orders.filter(reference=OuterRef("reference")), orders.filter(pk=Subquery(sale)))
    # Not Exists: PostgreSQL would read all of these orders, which may be millions, into a hash.
    named, sold = (IsNull(Subquery(one.values("pk")[:1]), False) for one in found)
    return Q(named) | Q(sold)


def name_codes(entries: Sequence[AuditEntry]) -> list[Entry]:
    """The entries as the page shows them: each names its code, the shelf and the order."""
    codes = VoucherCode.objects.select_related("shelf__product", "shelf__variation__product")
    found = codes.in_bulk({int(entry.object_id) for entry in entries})
    named = []
    for entry in entries:
        code = found.get(int(entry.object_id))  # None if its import was taken back
        parts = [entry.object_id, str(code.shelf) if code else "", entry.reference]
        named.append(replace(entry_of(entry), name=", ".join(filter(None, parts))))
    return named
