"""Game top-ups: the products, and the operators' work for each order."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Self
from uuid import uuid4

from django.conf import settings
from django.contrib.postgres.indexes import BrinIndex
from django.core.validators import MinValueValidator
from django.db import models, transaction
from django.db.models import Func, Q
from django.db.models.functions import Now

from accounts.models import Account
from catalogue.models import PRICE_LIMIT, Category, begin_next_price, store_begun_price
from core.database.columns import (
    ACTOR_LENGTH,
    CURRENCY_CODE,
    CURRENCY_LENGTH,
    MONEY_DECIMALS,
    MONEY_DIGITS,
    NAME_LENGTH,
    NOTE_LENGTH,
    ORDER_REFERENCE_LENGTH,
    validate_currency,
)
from core.database.sealing import Context
from core.files.uploads import AttachedFile
from core.inputs import validate_not_blank
from core.texts import lazy

# Contract, "Limits".
MAX_PLAYER_ID_LENGTH = 64
DELETED_PLAYER_ID = "(deleted)"  # what retention leaves; no player id has parentheses
MAX_FIELDS = 30
MAX_FIELD_VALUE_LENGTH = 255

PROVIDER_LENGTH = 100
FIELD_NAME_LENGTH = 100
FIELD_LABEL_LENGTH = 200
TRANSACTION_NUMBER_LENGTH = 100
MAX_STOCK = 2**31 - 1  # of the column


class TopUpProduct(models.Model):
    """A product that is bought for a player id. topups/sql/is_on_sale.sql says when it is on sale.

    `available_stock` is the number in stock; null means not counted. `next_price` replaces `price`
    at `next_price_from`, as for a shelf. Operators deliver within `promised_minutes`.
    """

    name = models.CharField(max_length=NAME_LENGTH)
    category = models.ForeignKey(
        Category, on_delete=models.PROTECT, null=True, blank=True, related_name="topup_products"
    )
    currency = models.CharField(max_length=CURRENCY_LENGTH, validators=[validate_currency])
    price = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS)
    next_price = models.DecimalField(
        max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS, null=True, editable=False
    )
    next_price_from = models.DateTimeField(null=True, editable=False)
    available_stock = models.PositiveIntegerField(
        null=True, blank=True, help_text=lazy("Number in stock; empty means not counted.")
    )
    active = models.BooleanField(default=True)
    published = models.BooleanField(default=True)
    external_provider = models.CharField(
        max_length=PROVIDER_LENGTH,
        null=True,
        blank=True,
        help_text=lazy("The provider that delivers it instead of us. If set, it is not sold here."),
    )
    promised_minutes = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=lazy(
            "Minutes from the purchase to the delivery. Empty: nothing is promised. Merchants"
            " do not see it."
        ),
    )
    announce = models.BooleanField(
        default=False, help_text=lazy("Orders may be announced on the messaging platform.")
    )

    class Meta:
        verbose_name = "top-up product"
        constraints = [
            models.CheckConstraint(
                name="topups_product_currency_is_a_code", condition=Q(currency__regex=CURRENCY_CODE)
            ),
            models.CheckConstraint(
                name="topups_product_price_is_positive",
                condition=Q(price__gt=0, price__lt=PRICE_LIMIT),
            ),
            models.CheckConstraint(
                name="topups_product_next_price_has_limits_and_a_time",
                condition=Q(next_price=None, next_price_from=None)
                | Q(next_price__gt=0, next_price__lt=PRICE_LIMIT, next_price_from__isnull=False),
            ),
            models.CheckConstraint(
                name="topups_product_promise_is_positive",
                condition=Q(promised_minutes=None) | Q(promised_minutes__gte=1),
            ),
            models.CheckConstraint(
                name="topups_product_provider_is_named", condition=~Q(external_provider="")
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def save(self, *, update_fields: Iterable[str] | None = None, **options: Any) -> None:
        """Saves every column but `available_stock`: purchases may have changed it since it was
        read. `set_stock` sets it."""
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

    def set_stock(self, stock: int | None) -> None:
        """Sets the number in stock. None means not counted."""
        TopUpProduct.objects.filter(pk=self.pk).update(available_stock=stock)


class TopUpPriceChange(models.Model):
    """One price change of a top-up product, recorded by topups/sql/price_history.sql.

    `starts_at` is the time from which `after` holds, if that is later than the change.
    """

    product = models.ForeignKey(
        TopUpProduct, on_delete=models.CASCADE, related_name="price_changes", db_index=False
    )
    before = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS)
    after = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS)
    starts_at = models.DateTimeField(null=True)
    changed_at = models.DateTimeField(db_default=Now())
    changed_by = models.CharField(max_length=ACTOR_LENGTH)
    asked_by = models.CharField(max_length=150, db_default="")  # who asked for a low price before

    class Meta:
        indexes = [
            models.Index(name="topups_price_change_product", fields=["product", "id"]),
            models.Index(name="topups_price_change_time", fields=["changed_at"]),
        ]

    def __str__(self) -> str:
        return f"price change {self.pk}"


class FieldType(models.TextChoices):
    """Contract, "Top-up field", field `type`."""

    TEXT = "text", lazy("Text")
    NUMBER = "number", lazy("Number")
    DROPDOWN = "dropdown", lazy("Dropdown")


class TopUpField(models.Model):
    """A value that the game asks for besides the player id (contract, "Top-up field").

    `number` is the id that merchants send in `fields`. It is unique within the product. Neither
    `number` nor `name` ever changes (topups/sql/field_ids.sql).
    """

    product = models.ForeignKey(TopUpProduct, on_delete=models.CASCADE, related_name="fields")
    number = models.PositiveIntegerField(verbose_name=lazy("ID"), validators=[MinValueValidator(1)])
    name = models.CharField(max_length=FIELD_NAME_LENGTH)
    label = models.CharField(max_length=FIELD_LABEL_LENGTH)
    type = models.CharField(max_length=16, choices=FieldType)
    required = models.BooleanField(default=True)
    position = models.PositiveSmallIntegerField(default=0)

    class Meta:
        verbose_name = "top-up field"
        ordering = ["position", "number"]
        constraints = [
            models.UniqueConstraint(name="topups_field_number_once", fields=["product", "number"]),
            models.UniqueConstraint(name="topups_field_name_once", fields=["product", "name"]),
            models.CheckConstraint(
                name="topups_field_type_is_known", condition=Q(type__in=FieldType.values)
            ),
        ]

    def __str__(self) -> str:
        return self.label


class FieldId(models.Model):
    """An id that a field of a top-up product has, or had before it was removed.

    Written by topups/sql/field_ids.sql. The field with this name may come back; no other field gets
    the id.
    """

    product = models.ForeignKey(TopUpProduct, on_delete=models.CASCADE, related_name="field_ids")
    number = models.PositiveIntegerField()
    name = models.CharField(max_length=FIELD_NAME_LENGTH)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="topups_field_id_once", fields=["product", "number"])
        ]

    def __str__(self) -> str:
        return f"{self.number} ({self.name})"


class TopUpFieldOption(models.Model):
    """One choice of a dropdown. Merchants send its `value`."""

    field = models.ForeignKey(TopUpField, on_delete=models.CASCADE, related_name="options")
    value = models.CharField(max_length=MAX_FIELD_VALUE_LENGTH, validators=[validate_not_blank])
    label = models.CharField(max_length=FIELD_LABEL_LENGTH, null=True, blank=True)
    position = models.PositiveSmallIntegerField(default=0)

    class Meta:
        verbose_name = "top-up field option"
        ordering = ["position", "pk"]
        constraints = [
            models.UniqueConstraint(name="topups_option_value_once", fields=["field", "value"]),
        ]

    def __str__(self) -> str:
        return self.label or self.value


class FulfilmentStatus(models.TextChoices):
    """Contract, "Top-up order", field `fulfilment_status`. An order has its own OrderStatus."""

    PENDING = "pending", lazy("Pending")
    PENDING_REVIEW = "pending_review", lazy("Pending review")
    PROCESSING = "processing", lazy("Processing")
    COMPLETED = "completed", lazy("Completed")
    FAILED = "failed", lazy("Failed")


class FailureReason(models.TextChoices):
    """Contract, "Top-up order", field `failure_reason`."""

    WRONG_ID = "wrong_id", lazy("Wrong player ID")
    NO_STOCK = "no_stock", lazy("No stock")
    FULFILMENT_FAILED = "fulfilment_failed", lazy("Fulfilment failed")


class RejectReason(models.TextChoices):
    """Why an operator rejects an order. Its value is kept in the history.

    A merchant reads the FailureReason of the same value, else `fulfilment_failed`. The desk and the
    command offer every reason. Its button in Telegram is in operators/telegram/messages/buttons.py.
    """

    WRONG_ID = "wrong_id", lazy("Wrong player ID")
    NO_STOCK = "no_stock", lazy("No stock")
    OTHER = "other", lazy("Other reason")


WHY_IT_FAILED = {
    RejectReason.WRONG_ID: lazy(
        "The player ID is wrong. Check it with your customer, then buy again."
    ),
    RejectReason.NO_STOCK: lazy("The package is out of stock. Buy again later."),
    RejectReason.OTHER: lazy("It could not be delivered."),
}


class Fulfilment(models.Model):
    """The operators' work for one top-up order.

    Its status changes only by the moves of topups/fulfilment/transitions.py. `fields` are the field
    values of the purchase: `[{"id", "name", "label", "value", "value_label"}]`.

    A rejection makes a refund due: what is left of `amount` after credits goes to the wallet of
    `account`. `refunded_at` is set when a failed fulfilment has been paid back in full, by its
    refund, by credits or by both (topups/fulfilment/refunds.py).
    """

    order_reference = models.CharField(max_length=ORDER_REFERENCE_LENGTH, unique=True)
    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="fulfilments")
    product = models.ForeignKey(TopUpProduct, on_delete=models.PROTECT, related_name="fulfilments")
    player_id = models.CharField(max_length=MAX_PLAYER_ID_LENGTH)
    fields = models.JSONField(default=list)
    amount = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS)
    currency = models.CharField(max_length=CURRENCY_LENGTH)
    takes_stock = models.BooleanField(help_text=lazy("Whether it was taken from counted stock."))

    status = models.CharField(
        max_length=16, choices=FulfilmentStatus, default=FulfilmentStatus.PENDING
    )
    claimed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        db_index=False,
        related_name="claimed_fulfilments",
    )
    claimed_at = models.DateTimeField(null=True, blank=True)
    failure_reason = models.CharField(max_length=32, choices=FailureReason, null=True, blank=True)
    # For the merchant's page, whichever channel the operator used. The API has only the above.
    reject_reason = models.CharField(
        max_length=16, choices=RejectReason, blank=True, db_default="", editable=False
    )
    message = models.CharField(
        "message for the merchant",
        max_length=NOTE_LENGTH,
        blank=True,
        db_default="",
        editable=False,
    )
    created_at = models.DateTimeField(db_default=Now())
    closed_at = models.DateTimeField(null=True, blank=True)
    refund_due_at = models.DateTimeField(null=True, blank=True)
    refunded_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "top-up"
        permissions = [
            ("fulfil", "Can claim, complete, reject and send to review"),
            ("decide_review", "Can decide orders in review and act on others' claims"),
        ]
        indexes = [
            models.Index(
                name="topups_fulfilment_open",
                fields=["created_at"],
                condition=Q(status__in=["pending", "processing", "pending_review"]),
            ),
            models.Index(
                name="topups_fulfilment_refund_due",
                fields=["refund_due_at"],
                condition=Q(refund_due_at__isnull=False, refunded_at=None),
            ),
            models.Index(
                name="topups_fulfilment_due_of_acct",
                fields=["account"],
                condition=Q(refund_due_at__isnull=False, refunded_at=None),
            ),
            # The next two are partial: a new fulfilment needs no entry in them.
            models.Index(
                name="topups_fulfilment_ended",
                fields=["closed_at"],
                condition=Q(closed_at__isnull=False),
            ),
            models.Index(
                name="topups_fulfilment_claimed",
                fields=["claimed_by"],
                condition=Q(claimed_by__isnull=False),
            ),
            models.Index(
                name="topups_fulfilment_failed",
                fields=["account", "id"],
                condition=Q(status="failed"),
            ),
            # For searches, which are rare. A B-tree would cost each purchase an entry
            # (docs/decisions/0056-search.md).
            BrinIndex(
                name="topups_fulfilment_by_player",
                fields=["player_id"],
                opclasses=[
                    "text_bloom_ops (n_distinct_per_range = 700, false_positive_rate = 0.0002)"
                ],
                pages_per_range=16,
                autosummarize=True,
            ),
        ]
        constraints = [
            models.CheckConstraint(
                name="topups_fulfilment_agrees_with_its_status",
                condition=Func(
                    *("status", "failure_reason", "claimed_by", "closed_at"),
                    *("refund_due_at", "refunded_at"),
                    function="topups_agrees_with_status",
                    output_field=models.BooleanField(),
                ),
            ),
            models.CheckConstraint(
                name="topups_fulfilment_amount_is_positive", condition=Q(amount__gt=0)
            ),
        ]

    def __str__(self) -> str:
        return self.order_reference

    @property
    def labelled_fields(self) -> list[tuple[str, str]]:
        """The labels of the fields and the chosen values, for people."""
        return [(each["label"], each.get("value_label") or each["value"]) for each in self.fields]

    @property
    def refunded(self) -> bool:
        """Whether the price was paid back in full."""
        return self.refunded_at is not None

    @property
    def why_it_failed(self) -> str:
        """A sentence for the merchant; empty unless it failed."""
        if self.failure_reason is None:
            return ""
        return WHY_IT_FAILED[RejectReason(self.reject_reason or _reason_before(self))]

    @property
    def reason_is_hidden(self) -> bool:
        """Whether `why_it_failed` says more than `failure_reason` may say."""
        return self.reject_reason in FailureReason.values and (
            self.failure_reason == FailureReason.FULFILMENT_FAILED
        )


def _reason_before(fulfilment: Fulfilment) -> str:
    """The reason of an order that failed before reasons were kept."""
    known = fulfilment.failure_reason in RejectReason.values
    return str(fulfilment.failure_reason) if known else RejectReason.OTHER


class Channel(models.TextChoices):
    """The channel through which a move came."""

    API = "api", lazy("API")
    ADMIN = "admin", lazy("Admin")
    COMMAND = "command", lazy("Command")
    TELEGRAM = "telegram", lazy("Telegram")
    SYSTEM = "system", lazy("System")


class FulfilmentEvent(models.Model):
    """One move of a fulfilment: its actor, channel, statuses before and after, and note.

    Inserted in the transaction of the move, and never changed (topups/sql/guards.sql).
    """

    fulfilment = models.ForeignKey(Fulfilment, on_delete=models.PROTECT, related_name="events")
    move = models.CharField(max_length=32)
    from_status = models.CharField(max_length=16, choices=FulfilmentStatus, null=True)
    to_status = models.CharField(max_length=16, choices=FulfilmentStatus)
    actor = models.CharField(max_length=ACTOR_LENGTH)
    channel = models.CharField(max_length=16, choices=Channel)
    note = models.CharField(max_length=NOTE_LENGTH, blank=True, default="")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.move} {self.pk}"


class DeliveryProof(models.Model):
    """A proof that an order was delivered: a transaction number, a file, or both.

    It is never changed, and only a delivered order has one (topups/sql/delivery_proofs.sql).
    `token` is that of the form that added it.
    """

    fulfilment = models.ForeignKey(
        Fulfilment, on_delete=models.PROTECT, related_name="proofs", db_index=False
    )
    token = models.UUIDField(default=uuid4, editable=False)
    transaction_number = models.CharField(max_length=TRANSACTION_NUMBER_LENGTH, blank=True)
    added_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    added_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                name="topups_proof_once_per_form", fields=["fulfilment", "token"]
            )
        ]

    def __str__(self) -> str:
        return f"proof {self.pk}"


class DeliveryFile(AttachedFile):
    """The file of a proof. A picture may show the account of a player."""

    context = Context.DELIVERY_FILE

    proof = models.OneToOneField(DeliveryProof, on_delete=models.PROTECT, related_name="file")
