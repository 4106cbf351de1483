"""What the back office itself keeps: who was shown or did what."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class AuditAction(models.TextChoices):
    """What a person did that somebody may ask about later."""

    CODE_REVEALED = "code_revealed", "Code revealed"
    KEY_ISSUED = "key_issued", "Key issued"
    KEY_ROTATED = "key_rotated", "Key rotated"
    KEY_REVOKED = "key_revoked", "Key revoked"


class AuditEntry(models.Model):
    """One thing that one person did, never changed and never deleted (operators/sql/guards.sql).

    The object is named by words rather than by a foreign key, so that an entry never stands in the
    way of anything and outlives what it tells of. Staff are never deleted, only switched off.
    """

    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="audit_entries",
        help_text="Empty: a command on the server.",
    )
    action = models.CharField(max_length=32, choices=AuditAction)
    object_type = models.CharField(max_length=100)
    object_id = models.CharField(max_length=64)
    reference = models.CharField(max_length=64, blank=True, db_default="")
    request_id = models.CharField(max_length=64, blank=True, db_default="")
    note = models.CharField(max_length=500, blank=True, db_default="")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(name="operators_audit_of_object", fields=["object_type", "object_id"])
        ]

    def __str__(self) -> str:
        return f"{self.get_action_display()} {self.pk}"
