"""Orders: the records of purchases (contract, "Order")."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Mod, Now
from django.db.models.lookups import Exact
from django.utils.translation import ngettext

from accounts.models import ApiClient
from catalogue.models import MAX_QUANTITY, CodeHold, Shelf
from core.database.columns import (
    ACTOR_LENGTH,
    CURRENCY_LENGTH,
    MONEY_DECIMALS,
    MONEY_DIGITS,
    NOTE_LENGTH,
    ORDER_REFERENCE_LENGTH,
)
from core.texts import lazy
from idempotency.models import MAX_KEY_BYTES
from topups.models import Fulfilment, FulfilmentStatus
from wallets.models import LedgerEntry


class OrderStatus(models.TextChoices):
    """Contract, "Order", field `status`. A fulfilment has its own FulfilmentStatus."""

    PENDING = "pending", lazy("Pending")
    COMPLETED = "completed", lazy("Completed")
    FAILED = "failed", lazy("Failed")


STATUS_OF_TOPUP = {
    FulfilmentStatus.COMPLETED: OrderStatus.COMPLETED,
    FulfilmentStatus.FAILED: OrderStatus.FAILED,
}


class LostPurchase(models.Model):
    """A purchase that the purchase log names and that a restore of the database lost.

    The merchant may have its codes, and no debit is booked. The command `hold_codes` records it
    (orders/recovery/lost_purchases.py).
    """

    reference = models.CharField(max_length=ORDER_REFERENCE_LENGTH, unique=True)
    client = models.ForeignKey(ApiClient, on_delete=models.PROTECT, related_name="+")
    total_price = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS)
    currency = models.CharField(max_length=CURRENCY_LENGTH)
    sold_at = models.DateTimeField()
    hold = models.ForeignKey(CodeHold, on_delete=models.PROTECT, null=True, related_name="+")
    found_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.reference


class Settlement(models.Model):
    """The end of a lost purchase: its price was debited after all, or, without `debit`, it was not.

    It never changes (orders/recovery/settlements.py).
    """

    lost_purchase = models.OneToOneField(LostPurchase, on_delete=models.PROTECT, primary_key=True)
    debit = models.OneToOneField(LedgerEntry, on_delete=models.PROTECT, null=True, related_name="+")
    note = models.CharField(max_length=NOTE_LENGTH)
    settled_by = models.CharField(max_length=ACTOR_LENGTH)
    settled_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"settlement of {self.pk}"


class Order(models.Model):
    """The record of one accepted purchase: product, client and price. It never changes.

    A voucher order names the shelf it was sold from, a top-up order its fulfilment.

    `codes_mac` binds a voucher order to its codes (orders/codes.py).

    `number` counts the orders of a client from 1 without gaps. The total of a list is the last
    number and a page is a range of numbers, so neither takes longer as orders accumulate.

    `case_id` names the case whose outcome is this order: one code at no price, which replaces a
    code of another order. Every other order was paid. The app above adds the foreign key.
    """

    reference = models.CharField(max_length=ORDER_REFERENCE_LENGTH, unique=True)
    client = models.ForeignKey(
        ApiClient, on_delete=models.PROTECT, related_name="orders", db_index=False
    )
    number = models.PositiveBigIntegerField()
    shelf = models.ForeignKey(
        Shelf, on_delete=models.PROTECT, related_name="orders", db_index=False, null=True
    )
    fulfilment = models.OneToOneField(
        Fulfilment, on_delete=models.PROTECT, related_name="order", null=True
    )
    quantity = models.PositiveSmallIntegerField()
    units_per_sale = models.PositiveSmallIntegerField()
    unit_price = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS)
    total_price = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS)
    currency = models.CharField(max_length=CURRENCY_LENGTH)
    idempotency_key = models.CharField(max_length=MAX_KEY_BYTES, null=True, editable=False)
    codes_mac = models.BinaryField(null=True)
    case_id = models.BigIntegerField(null=True, editable=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="orders_order_is_paid_or_replaces",
                condition=Q(case_id=None, total_price__gt=0)
                | Q(case_id__isnull=False, total_price=0, shelf__isnull=False, quantity=1),
            ),
            # Partial: purchases have no case.
            models.UniqueConstraint(
                name="orders_order_once_per_case",
                fields=["case_id"],
                condition=Q(case_id__isnull=False),
            ),
            models.CheckConstraint(
                name="orders_order_sells_codes_or_a_topup",
                condition=Q(shelf__isnull=False, fulfilment=None)
                | Q(shelf=None, fulfilment__isnull=False, quantity=1, units_per_sale=1),
            ),
            models.CheckConstraint(
                name="orders_order_is_bound_to_its_codes",
                condition=Q(shelf__isnull=False, codes_mac__isnull=False)
                | Q(shelf=None, codes_mac=None),
            ),
            models.UniqueConstraint(name="orders_order_number", fields=["client", "number"]),
            models.CheckConstraint(
                name="orders_order_quantity_is_whole_units",
                condition=Q(quantity__gte=1, quantity__lte=MAX_QUANTITY, units_per_sale__gte=1)
                & Q(Exact(Mod(F("quantity"), F("units_per_sale")), 0)),
            ),
            models.CheckConstraint(
                name="orders_order_total_is_exact",
                condition=Exact(
                    F("total_price") * F("units_per_sale"), F("unit_price") * F("quantity")
                ),
            ),
        ]

    def __str__(self) -> str:
        return self.reference

    @property
    def quantity_in_words(self) -> str:
        """The quantity beside the goods in lists: times three, or `3 codes` of what is sold in
        packs; empty for one code."""
        if self.units_per_sale != 1:
            words = ngettext("%(quantity)s code", "%(quantity)s codes", self.quantity)
            return words % {"quantity": self.quantity}
        times = f"\N{MULTIPLICATION SIGN}\N{NO-BREAK SPACE}{self.quantity}"
        return times if self.quantity > 1 else ""

    @property
    def goods(self) -> str:
        """The name of what was sold."""
        return str(self.shelf if self.fulfilment is None else self.fulfilment.product)

    @property
    def units(self) -> int:
        """The number of units bought. `quantity` counts codes."""
        return self.quantity // self.units_per_sale

    @property
    def status(self) -> OrderStatus:
        """Derived, never stored. A voucher order exists only if its codes were handed over; a
        top-up order follows its fulfilment."""
        if self.fulfilment is None:
            return OrderStatus.COMPLETED
        return status_of_topup(self.fulfilment.status)


def status_of_topup(status: str) -> OrderStatus:
    """The order status for a fulfilment status: pending until the fulfilment has ended."""
    return STATUS_OF_TOPUP.get(FulfilmentStatus(status), OrderStatus.PENDING)


class ClientCounter(models.Model):
    """The number of orders of a client, which is also its last `Order.number`."""

    client = models.OneToOneField(ApiClient, on_delete=models.PROTECT, primary_key=True)
    orders = models.PositiveBigIntegerField()
    # Whether there is a SpendingLimit. Purchases of other clients do not look for one.
    limited = models.BooleanField(db_default=False)

    def __str__(self) -> str:
        return f"orders of client {self.pk}"


class SpendingLimit(models.Model):
    """The most that a client may spend in a day and in a month (UTC), and what it has spent.

    Purchases after the order with the number `counted_after` count (orders/sql/spend.sql). Refunds
    and credits give no room back. `refused_on` is the last day on which a purchase was refused, and
    `reported_on` the last day on which the owners received an email about that.
    """

    client = models.OneToOneField(
        ApiClient, on_delete=models.PROTECT, primary_key=True, related_name="spending_limit"
    )
    per_day = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS, null=True)
    per_month = models.DecimalField(
        max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS, null=True
    )
    counted_after = models.PositiveBigIntegerField()
    day = models.DateField(null=True)
    spent_today = models.DecimalField(
        max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS, db_default=0
    )
    month = models.DateField(null=True)
    spent_this_month = models.DecimalField(
        max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS, db_default=0
    )
    refused_on = models.DateField(null=True)
    reported_on = models.DateField(null=True)

    class Meta:
        default_permissions = ()
        constraints = [
            models.CheckConstraint(
                name="orders_spending_limit_is_positive",
                condition=(Q(per_day__gt=0) | Q(per_day=None))
                & (Q(per_month__gt=0) | Q(per_month=None)),
            ),
            models.CheckConstraint(
                name="orders_spending_limit_is_given",
                condition=Q(per_day__isnull=False) | Q(per_month__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"spending limit of client {self.pk}"
