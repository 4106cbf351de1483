"""What is sold: categories, products, variations, and the shelves that hold codes and prices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from accounts.models import Account
from catalogue.reference_format import MAX_REFERENCE_LENGTH, validate_reference
from config.database.columns import (
    ACTOR_LENGTH,
    CURRENCY_CODE,
    CURRENCY_LENGTH,
    MONEY_DECIMALS,
    MONEY_DIGITS,
    NAME_LENGTH,
    validate_currency,
)

MAX_QUANTITY = 100
# Two digits fewer than a ledger entry's amount, which must hold the price of MAX_QUANTITY units.
PRICE_DIGITS = MONEY_DIGITS - 2
PRICE_LIMIT = 10 ** (PRICE_DIGITS - MONEY_DECIMALS)


class Category(models.Model):
    """Switching a category off takes all its products out of the catalogue."""

    name = models.CharField(max_length=NAME_LENGTH)
    active = models.BooleanField(default=True)

    class Meta:
        verbose_name_plural = "categories"

    def __str__(self) -> str:
        return self.name


class ProductType(models.TextChoices):
    """Contract, "Product", field `type`."""

    VOUCHER = "voucher"
    TOP_UP = "top_up"


class Product(models.Model):
    """A voucher product. Its id is a promise to merchants and never changes."""

    name = models.CharField(max_length=NAME_LENGTH)
    type = models.CharField(max_length=16, choices=ProductType, null=True, blank=True)
    category = models.ForeignKey(
        Category, on_delete=models.PROTECT, null=True, blank=True, related_name="products"
    )
    currency = models.CharField(max_length=CURRENCY_LENGTH, validators=[validate_currency])
    active = models.BooleanField(default=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="catalogue_product_currency_is_a_code",
                condition=Q(currency__regex=CURRENCY_CODE),
            ),
            models.CheckConstraint(
                name="catalogue_product_type_is_known",
                condition=Q(type=None) | Q(type__in=ProductType.values),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Variation(models.Model):
    """A version of a product with a shelf of its own."""

    product = models.ForeignKey(Product, on_delete=models.PROTECT, related_name="variations")
    name = models.CharField(max_length=NAME_LENGTH)
    active = models.BooleanField(default=True)

    class Meta:
        constraints = [
            # What a shelf's (product, variation) pair refers to, so that the two always agree.
            models.UniqueConstraint(
                name="catalogue_variation_product_and_id", fields=["product", "id"]
            ),
        ]

    def __str__(self) -> str:
        return f"{self.product} / {self.name}"


class Shelf(models.Model):
    """What is sold from: a product's own shelf (no variation) or one variation's.

    `available_stock` counts the unsold codes. Every transaction that adds or takes codes moves it
    by the same number; `reconcile` compares the two.
    """

    product = models.ForeignKey(Product, on_delete=models.PROTECT, related_name="shelves")
    variation = models.OneToOneField(
        Variation, on_delete=models.PROTECT, null=True, blank=True, related_name="shelf"
    )
    price = models.DecimalField(
        max_digits=MONEY_DIGITS,
        decimal_places=MONEY_DECIMALS,
        null=True,
        blank=True,
        help_text="Price of one unit; empty means not for sale.",
    )
    quantity_step = models.PositiveSmallIntegerField(
        default=1,
        validators=[MinValueValidator(1)],
        help_text="Number of codes making one unit.",
    )
    available_stock = models.PositiveIntegerField(default=0, editable=False)

    class Meta:
        verbose_name_plural = "shelves"
        constraints = [
            models.UniqueConstraint(
                name="catalogue_shelf_one_own_per_product",
                fields=["product"],
                condition=Q(variation=None),
            ),
            models.CheckConstraint(
                name="catalogue_shelf_price_is_positive", condition=Q(price=None) | Q(price__gt=0)
            ),
            models.CheckConstraint(
                name="catalogue_shelf_price_has_a_limit",
                condition=Q(price=None) | Q(price__lt=PRICE_LIMIT),
            ),
            models.CheckConstraint(
                name="catalogue_shelf_quantity_step_is_positive", condition=Q(quantity_step__gte=1)
            ),
        ]

    def __str__(self) -> str:
        return str(self.variation or self.product)

    def save(self, *, update_fields: Iterable[str] | None = None, **options: Any) -> None:
        """Never writes the stock that was read: codes may have come and gone since."""
        if update_fields is None and not self._state.adding:
            names = (field.name for field in self._meta.concrete_fields if not field.primary_key)
            update_fields = [name for name in names if name != "available_stock"]
        super().save(update_fields=update_fields, **options)


class PriceChange(models.Model):
    """One change of a shelf's price; written by a trigger, whoever changed it."""

    shelf = models.ForeignKey(Shelf, on_delete=models.CASCADE, related_name="price_changes")
    before = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS, null=True)
    after = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS, null=True)
    changed_at = models.DateTimeField(db_default=Now())
    changed_by = models.CharField(max_length=ACTOR_LENGTH, db_default="")

    def __str__(self) -> str:
        return f"price change {self.pk}"


class VoucherCode(models.Model):
    """One code. `sealed` holds code, serial and pin; `digest` refuses the same code twice.

    `position` orders a shelf's codes. Sales read it through an index that holds unsold codes only;
    ordering by the primary key would walk past every code ever sold.

    `order_id` names the order that took the code; `orders` adds the foreign key, since this app
    does not know orders. One column, so one code can never be on two orders.
    """

    shelf = models.ForeignKey(Shelf, on_delete=models.PROTECT, related_name="codes", db_index=False)
    position = models.BigIntegerField()
    sealed = models.BinaryField()
    digest = models.BinaryField(unique=True)
    order_id = models.BigIntegerField(null=True, editable=False)
    imported_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        permissions = [("reveal_vouchercode", "Can see a voucher code in clear text")]
        indexes = [
            models.Index(
                name="catalogue_code_unsold",
                fields=["shelf", "position"],
                condition=Q(order_id=None),
            ),
            models.Index(
                name="catalogue_code_of_order",
                fields=["order_id", "position"],
                condition=Q(order_id__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"code {self.pk}"


class SealedSecret(models.Model):
    """A secret of the service that must outlive the rotation of encryption keys, itself sealed."""

    name = models.CharField(max_length=50, unique=True)
    sealed = models.BinaryField()

    def __str__(self) -> str:
        return self.name


class ReferenceLink(models.Model):
    """A merchant's own name for a shelf: one name per shelf, one shelf per name."""

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="references")
    reference = models.CharField(max_length=MAX_REFERENCE_LENGTH, validators=[validate_reference])
    shelf = models.ForeignKey(Shelf, on_delete=models.PROTECT, related_name="references")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="catalogue_reference_names_one_shelf", fields=["account", "reference"]
            ),
            models.UniqueConstraint(
                name="catalogue_shelf_has_one_reference", fields=["account", "shelf"]
            ),
        ]

    def __str__(self) -> str:
        return self.reference
