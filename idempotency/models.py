"""Idempotency records, by which a retry never buys twice (contract, "Idempotency record")."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from accounts.models import ApiClient
from core.database.columns import ORDER_REFERENCE_LENGTH

MAX_KEY_BYTES = 128
# `started_at` of a key that was blocked, because a restore of the database lost its purchase.
BLOCKED = datetime.fromtimestamp(0, UTC)


class IdempotencyRecord(models.Model):
    """One idempotency key of one client.

    The record is in progress while `response` is empty, even if its attempt has died. Once it has a
    response, it is a stored success.

    `attempt` numbers the attempts, starting at a random number. A retry that takes the key over
    increases it; the purchase of the older attempt then finds another number and rolls back.

    `order_reference` and `bought_at` are stamped in the transaction of the purchase, so they are
    set exactly when the order exists.
    """

    client = models.ForeignKey(ApiClient, on_delete=models.PROTECT, db_index=False)
    key = models.CharField(max_length=MAX_KEY_BYTES)
    fingerprint = models.BinaryField()
    attempt = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(db_default=Now())
    order_reference = models.CharField(max_length=ORDER_REFERENCE_LENGTH, null=True, blank=True)
    bought_at = models.DateTimeField(null=True)
    response = models.BinaryField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="idempotency_record_client_and_key", fields=["client", "key"]
            ),
            models.CheckConstraint(
                name="idempotency_record_success_has_an_order",
                condition=Q(response=None) | Q(order_reference__isnull=False),
            ),
            models.CheckConstraint(
                name="idempotency_record_order_has_a_time",
                condition=Q(order_reference=None, bought_at=None)
                | Q(order_reference__isnull=False, bought_at__isnull=False),
            ),
        ]
        indexes = [models.Index(name="idempotency_record_age", fields=["created_at"])]

    def __str__(self) -> str:
        return f"Idempotency record {self.pk}"
