"""The catalogue: categories, products, variations, and shelves with their codes and prices."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Self

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import BigIntegerRangeField, DateTimeRangeField, RangeOperators
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models, transaction
from django.db.models import F, Func, Q, Value
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from accounts.models import Account
from catalogue.reference_format import MAX_REFERENCE_LENGTH, validate_reference
from core.database.columns import (
    ACTOR_LENGTH,
    CURRENCY_CODE,
    CURRENCY_LENGTH,
    MONEY_DECIMALS,
    MONEY_DIGITS,
    NAME_LENGTH,
    NOTE_LENGTH,
    validate_currency,
)
from core.texts import lazy

MAX_QUANTITY = 100
# Two digits fewer than a ledger entry's amount, which must hold the price of MAX_QUANTITY units.
PRICE_DIGITS = MONEY_DIGITS - 2
PRICE_LIMIT = 10 ** (PRICE_DIGITS - MONEY_DECIMALS)


class Category(models.Model):
    """A group of products. Switching it off removes all its products from the catalogue."""

    name = models.CharField(max_length=NAME_LENGTH)
    active = models.BooleanField(default=True)

    class Meta:
        verbose_name_plural = "categories"

    def __str__(self) -> str:
        return self.name


class ProductType(models.TextChoices):
    """Contract, "Product", field `type`."""

    VOUCHER = "voucher", lazy("Voucher")
    TOP_UP = "top_up", lazy("Top-up")


class Product(models.Model):
    """A voucher product. Merchants rely on its id, which never changes (contract, "Versioning")."""

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
    """A version of a product, with its own shelf."""

    product = models.ForeignKey(Product, on_delete=models.PROTECT, related_name="variations")
    name = models.CharField(max_length=NAME_LENGTH)
    active = models.BooleanField(default=True)

    class Meta:
        constraints = [
            # A shelf's foreign key (product, variation) refers to it.
            models.UniqueConstraint(
                name="catalogue_variation_product_and_id", fields=["product", "id"]
            ),
        ]

    def __str__(self) -> str:
        return f"{self.product} / {self.name}"


class Shelf(models.Model):
    """A stock of codes with its price: a product's own shelf (no variation) or a variation's shelf.

    `available_stock` counts the codes in stock. Every transaction that adds, takes or holds codes
    changes it by the same number; `reconcile` compares the two.

    `next_price` replaces `price` at `next_price_from`, without a task: whatever reads the price
    compares the time (catalogue/sql/regular_price.sql). A row that was read has the price of that
    moment in `price`.
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
        help_text=lazy("Price of one unit. Empty means not for sale."),
    )
    next_price = models.DecimalField(
        max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS, null=True, editable=False
    )
    next_price_from = models.DateTimeField(null=True, editable=False)
    quantity_step = models.PositiveSmallIntegerField(
        default=1,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_QUANTITY)],
        help_text=lazy("Number of codes in one unit."),
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
                name="catalogue_shelf_next_price_has_limits_and_a_time",
                condition=Q(next_price=None, next_price_from=None)
                | Q(next_price__gt=0, next_price__lt=PRICE_LIMIT, next_price_from__isnull=False),
            ),
            models.CheckConstraint(
                name="catalogue_shelf_quantity_step_is_positive", condition=Q(quantity_step__gte=1)
            ),
            models.CheckConstraint(  # an order has at most as many codes
                name="catalogue_shelf_quantity_step_has_a_limit",
                condition=Q(quantity_step__lte=MAX_QUANTITY),
            ),
        ]

    def __str__(self) -> str:
        return str(self.variation or self.product)

    def save(self, *, update_fields: Iterable[str] | None = None, **options: Any) -> None:
        """Saves every column but `available_stock`: purchases and imports may have changed it since
        it was read."""
        if update_fields is None and not self._state.adding:
            names = (field.name for field in self._meta.concrete_fields if not field.primary_key)
            update_fields = [name for name in names if name != "available_stock"]
        with transaction.atomic():
            store_begun_price(self)
            super().save(update_fields=update_fields, **options)

    @classmethod
    def from_db(
        cls, db: str | None, field_names: Collection[str], values: Collection[Any], **options: Any
    ) -> Self:
        row = super().from_db(db, field_names, values, **options)
        begin_next_price(row, field_names)
        return row


def begin_next_price(row: Any, loaded: Collection[str]) -> None:
    """Puts the price of this moment into `price` of a shelf or top-up product."""
    if {"price", "next_price", "next_price_from"} <= set(loaded):
        begins = row.next_price_from
        if begins is not None and begins <= timezone.now():
            row.price, row.next_price, row.next_price_from = row.next_price, None, None


def store_begun_price(row: Any) -> None:
    """Puts a next price that has begun into the stored `price`, before `row` is saved.

    The triggers cannot tell a save of the price before it from a save without a price.
    """
    begun = type(row).objects.filter(pk=row.pk, next_price_from__lte=Now())
    begun.exclude(next_price_from=row.next_price_from).update(
        price=F("next_price"), next_price=None, next_price_from=None
    )


class ShelfPriceChange(models.Model):
    """One price change of a shelf, recorded by catalogue/sql/price_history.sql.

    `starts_at` is the time from which `after` holds, if that is later than the change.
    """

    shelf = models.ForeignKey(
        Shelf, on_delete=models.CASCADE, related_name="price_changes", db_index=False
    )
    before = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS, null=True)
    after = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS, null=True)
    starts_at = models.DateTimeField(null=True)
    changed_at = models.DateTimeField(db_default=Now())
    changed_by = models.CharField(max_length=ACTOR_LENGTH)
    asked_by = models.CharField(max_length=150, db_default="")  # who asked for a low price before

    class Meta:
        indexes = [
            models.Index(name="catalogue_price_change_shelf", fields=["shelf", "id"]),
            models.Index(name="catalogue_price_change_time", fields=["changed_at"]),
        ]

    def __str__(self) -> str:
        return f"price change {self.pk}"


class Batch(models.Model):
    """One import of codes: what it is known by, and what each code cost.

    Imports run one at a time, so the ids of its codes are a range without gaps. A purchase writes
    nothing here, and a code needs no column for its batch. Codes that were imported before there
    were batches have none.

    `unit_cost` is the cost of one code in units of `cost_currency`. `file_digest` is keyed: it
    shows whether two files are the same, and tells nothing about the codes.
    """

    shelf = models.ForeignKey(
        Shelf, on_delete=models.PROTECT, related_name="batches", editable=False
    )
    first_code = models.BigIntegerField(unique=True, editable=False)
    last_code = models.BigIntegerField(unique=True, editable=False)
    supplier = models.CharField(max_length=NAME_LENGTH, blank=True)
    invoice = models.CharField("invoice number", max_length=NAME_LENGTH, blank=True)
    unit_cost = models.DecimalField(
        max_digits=MONEY_DIGITS,
        decimal_places=MONEY_DECIMALS,
        null=True,
        blank=True,
        help_text=lazy("The cost of one code."),
    )
    cost_currency = models.CharField(
        max_length=CURRENCY_LENGTH, blank=True, validators=[validate_currency]
    )
    expires_on = models.DateField(
        null=True,
        editable=False,
        help_text=lazy(
            "The last day on which these codes may be sold, in UTC. Empty if they do not expire."
        ),
    )
    file_digest = models.BinaryField(editable=False)
    imported_by = models.CharField(max_length=ACTOR_LENGTH, editable=False)
    imported_at = models.DateTimeField(db_default=Now(), editable=False)
    taken_back_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text=lazy("Its codes were deleted then."),
    )

    class Meta:
        verbose_name_plural = "batches"
        constraints = [
            models.CheckConstraint(
                name="catalogue_batch_has_codes", condition=Q(first_code__lte=F("last_code"))
            ),
            models.CheckConstraint(
                name="catalogue_batch_cost_has_a_currency",
                condition=Q(unit_cost=None, cost_currency="")
                | Q(unit_cost__gte=0, cost_currency__regex=CURRENCY_CODE),
                violation_error_message=lazy(
                    "Enter a cost of at least 0 and its currency, or leave both empty."
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"batch {self.pk}"

    @property
    def number(self) -> int:
        """The number of its codes."""
        return self.last_code - self.first_code + 1

    @property
    def its_codes(self) -> Q:
        """The condition that chooses its codes."""
        return Q(shelf=self.shelf_id, pk__range=(self.first_code, self.last_code))


class CodeHold(models.Model):
    """Codes that are kept from sale together, for one reason (catalogue/stock/holds.py).

    A held code can be released and sold. The codes of a voided hold are void: never sold.
    """

    reason = models.CharField(max_length=NOTE_LENGTH)
    held_at = models.DateTimeField(db_default=Now(), editable=False)
    held_by = models.CharField(max_length=ACTOR_LENGTH)
    voided_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        permissions = [("hold_codes", "Can hold, release and void voucher codes")]

    def __str__(self) -> str:
        return f"hold {self.pk}"


class VoucherCode(models.Model):
    """One voucher code. `sealed` holds code, serial number and PIN (`catalogue.stock.codes`).

    `digest` names the row to which `sealed` is bound. No two codes have the same digest
    (`CodeDigest`).

    A code has one state: in stock (no order, no hold), sold (an order), held (a hold) or void (a
    voided hold). Only a code in stock can be sold.

    Codes of a shelf are sold by ascending `position`, through an index that holds only codes in
    stock. Ordered by the primary key, a purchase might walk past every code ever sold.

    `expires_on` is the last day of sale of its batch, in UTC. Each code has a copy: the purchase
    compares it and looks nothing up.

    `order_id` names the order that took the code. A code has one such column, so it cannot be on
    two orders. The app `orders` adds the foreign key (orders/sql/constraints.sql).
    """

    shelf = models.ForeignKey(Shelf, on_delete=models.PROTECT, related_name="codes", db_index=False)
    position = models.BigIntegerField()
    sealed = models.BinaryField()
    digest = models.BinaryField()
    order_id = models.BigIntegerField(null=True, editable=False)
    hold = models.ForeignKey(
        CodeHold,
        on_delete=models.PROTECT,
        null=True,
        editable=False,
        related_name="codes",
        db_index=False,
    )
    imported_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_on = models.DateField(null=True, editable=False)

    class Meta:
        permissions = [("reveal_vouchercode", "Can see a voucher code in clear text")]
        constraints = [
            models.CheckConstraint(
                name="catalogue_code_sold_is_not_held", condition=Q(order_id=None) | Q(hold=None)
            ),
        ]
        indexes = [
            models.Index(
                name="catalogue_code_in_stock",
                fields=["shelf", "position"],
                condition=Q(order_id=None, hold=None),
            ),
            models.Index(
                name="catalogue_code_expiring",
                fields=["expires_on"],
                condition=Q(order_id=None, hold=None, expires_on__isnull=False),
            ),
            models.Index(
                name="catalogue_code_of_hold",
                fields=["hold", "shelf", "id"],
                condition=Q(hold__isnull=False),
            ),
            models.Index(
                name="catalogue_code_of_order",
                fields=["order_id", "position"],
                condition=Q(order_id__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"code {self.pk}"


class CodeDigest(models.Model):
    """The digest of each code, once: the same code cannot be stored twice.

    A sale changes the row of a code and adds an entry to each index of its table. Digests are
    random, so each sale would write another page of an index on them. Triggers add and delete the
    rows of this table together with the codes (catalogue/sql/digests.sql).

    `digest` is the first half of `VoucherCode.digest`. `code_id` is no foreign key, which
    would slow down imports; `reconcile` compares the two tables.
    """

    digest = models.UUIDField(primary_key=True)
    code_id = models.BigIntegerField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"digest of code {self.code_id}"


class CodeTrace(models.Model):
    """The keyed digest of a code's serial number or PIN (catalogue/stock/traces.py)."""

    pk = models.CompositePrimaryKey("code_id", "digest")
    code = models.ForeignKey(
        VoucherCode, on_delete=models.PROTECT, related_name="traces", db_index=False
    )
    digest = models.BigIntegerField()

    class Meta:
        indexes = [models.Index(name="catalogue_trace_of_text", fields=["digest"])]

    def __str__(self) -> str:
        return f"trace of code {self.code_id}"


class TraceProgress(models.Model):
    """The last code that a task has looked through: the row 1 is of the traces, the row 2 of the
    repeats (catalogue/stock/repeats.py)."""

    last_code = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"looked through up to code {self.last_code}"


class ReferenceLink(models.Model):
    """A merchant reference: an account's own name for a shelf. One name per shelf, one shelf per
    name."""

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


class PriceList(models.Model):
    """Prices of some merchants, and what they may buy. `Account.price_list_id` assigns it.

    An account has at most one list. Where no entry holds, the regular price does.
    """

    name = models.CharField(max_length=NAME_LENGTH, unique=True)
    currency = models.CharField(
        max_length=CURRENCY_LENGTH,
        validators=[validate_currency],
        help_text=lazy("Only accounts in this currency can have the list."),
    )

    class Meta:
        permissions = [("assign_pricelist", "Can choose the price list of an account")]
        constraints = [
            models.CheckConstraint(
                name="catalogue_price_list_currency_is_a_code",
                condition=Q(currency__regex=CURRENCY_CODE),
            ),
            # The foreign key of an account (price list, currency) refers to it.
            models.UniqueConstraint(
                name="catalogue_price_list_id_and_currency", fields=["id", "currency"]
            ),
        ]

    def __str__(self) -> str:
        return self.name


def _single_value_range(value: models.expressions.Combinable) -> Func:
    """The range of one number. Core PostgreSQL can exclude equal ranges, and equal numbers only
    with an extension."""
    return Func(
        value, value, Value("[]"), function="int8range", output_field=BigIntegerRangeField()
    )


class PriceListEntry(models.Model):
    """The terms of a list for one target: a shelf, product, top-up product, category, or all.

    It says one of four things: a fixed price, percent off the regular price, the regular price
    (neither), or that nothing is sold (`for_sale` is false). Of the entries that hold, the most
    specific counts: shelf, then product or top-up product, then category, then all.

    An entry holds from `valid_from` to before `valid_until`. It is a record: once it has begun, it
    can be ended and nothing else (catalogue/sql/price_lists.sql). So the entries of a list are its
    history.

    `target` is the target as one number: the last three bits are its kind, and a larger kind is
    more specific. catalogue/sql/price.sql makes the same numbers.

    The app `topups` adds the foreign key of `topup_product_id`.
    """

    price_list = models.ForeignKey(
        PriceList, on_delete=models.PROTECT, related_name="entries", db_index=False
    )
    category = models.ForeignKey(
        Category, on_delete=models.PROTECT, null=True, blank=True, related_name="price_entries"
    )
    product = models.ForeignKey(
        Product, on_delete=models.PROTECT, null=True, blank=True, related_name="price_entries"
    )
    shelf = models.ForeignKey(
        Shelf,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="price_entries",
        db_index=False,
    )
    topup_product_id = models.BigIntegerField(null=True, blank=True)
    target = models.GeneratedField(
        expression=Coalesce(
            F("shelf") * 8 + 4,
            F("topup_product_id") * 8 + 3,
            F("product") * 8 + 2,
            F("category") * 8 + 1,
            Value(0),
        ),
        output_field=models.BigIntegerField(),
        db_persist=True,
    )
    for_sale = models.BooleanField(default=True)
    price = models.DecimalField(
        max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS, null=True, blank=True
    )
    percent_off = models.DecimalField(max_digits=5, decimal_places=2, null=True, blank=True)
    valid_from = models.DateTimeField(db_default=Now())
    valid_until = models.DateTimeField(null=True, blank=True)
    added_by = models.CharField(max_length=ACTOR_LENGTH)
    ended_by = models.CharField(max_length=ACTOR_LENGTH, blank=True)

    class Meta:
        verbose_name = "price list entry"
        verbose_name_plural = "price list entries"
        indexes = [
            models.Index(
                name="catalogue_price_entry_lookup", fields=["price_list", "target", "valid_from"]
            ),
            models.Index(name="catalogue_price_entry_list", fields=["price_list", "id"]),
            models.Index(name="catalogue_price_entry_open", fields=["price_list", "valid_until"]),
            models.Index(name="catalogue_price_entry_shelf", fields=["shelf", "id"]),
            models.Index(name="catalogue_price_entry_topup", fields=["topup_product_id", "id"]),
        ]
        constraints = [
            models.CheckConstraint(
                name="catalogue_price_entry_has_one_target",
                condition=Q(category=None, product=None, shelf=None)
                | Q(category=None, product=None, topup_product_id=None)
                | Q(category=None, shelf=None, topup_product_id=None)
                | Q(product=None, shelf=None, topup_product_id=None),
            ),
            models.CheckConstraint(
                name="catalogue_price_entry_says_one_thing",
                condition=Q(price=None, percent_off=None)
                | Q(price=None, for_sale=True)
                | Q(percent_off=None, for_sale=True),
            ),
            models.CheckConstraint(
                name="catalogue_price_entry_price_has_limits",
                condition=Q(price=None) | Q(price__gt=0, price__lt=PRICE_LIMIT),
            ),
            models.CheckConstraint(  # all prices of a list cannot be the same
                name="catalogue_price_entry_price_has_a_target",
                condition=Q(price=None) | ~Q(target=0),
            ),
            models.CheckConstraint(
                name="catalogue_price_entry_percent_has_limits",
                condition=Q(percent_off=None) | Q(percent_off__gt=0, percent_off__lt=100),
            ),
            models.CheckConstraint(
                name="catalogue_price_entry_ends_after_its_start",
                condition=Q(valid_until=None) | Q(valid_until__gt=F("valid_from")),
            ),
            ExclusionConstraint(
                name="catalogue_price_entries_do_not_overlap",
                expressions=[
                    (_single_value_range(F("price_list")), RangeOperators.OVERLAPS),
                    (_single_value_range(F("target")), RangeOperators.OVERLAPS),
                    (
                        Func(
                            F("valid_from"),
                            F("valid_until"),
                            function="tstzrange",
                            output_field=DateTimeRangeField(),
                        ),
                        RangeOperators.OVERLAPS,
                    ),
                ],
            ),
        ]

    def __str__(self) -> str:
        return f"price list entry {self.pk}"
