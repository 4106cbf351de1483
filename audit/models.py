"""Who did what: one entry for each action that somebody may ask about later."""

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
    TELEGRAM_CODE_ISSUED = "telegram_code_issued", "Telegram code issued"
    TELEGRAM_LINKED = "telegram_linked", "Telegram linked"
    TELEGRAM_UNLINKED = "telegram_unlinked", "Telegram unlinked"
    TELEGRAM_REFUSED = "telegram_refused", "Refused in Telegram"
    ANNOUNCEMENT_GIVEN_UP = "announcement_given_up", "Announcement given up"
    ANNOUNCEMENT_RESUMED = "announcement_resumed", "Announced again by hand"
    CHAT_MOVED = "chat_moved", "Chat moved"
    CLIENT_CREATED = "client_created", "Client created"
    CLIENT_CHANGED = "client_changed", "Client changed"
    REFERENCE_LINKED = "reference_linked", "Reference linked"
    REFERENCE_UNLINKED = "reference_unlinked", "Reference unlinked"
    MEMBER_INVITED = "member_invited", "Member invited"
    INVITATION_WITHDRAWN = "invitation_withdrawn", "Invitation withdrawn"
    MEMBER_JOINED = "member_joined", "Member joined"
    MEMBER_CHANGED = "member_changed", "Member changed"
    MEMBER_REMOVED = "member_removed", "Member removed"
    ALERT_CHANGED = "alert_changed", "Balance alert changed"


class AuditEntry(models.Model):
    """One thing that one person did, never changed and never deleted (audit/sql/append_only.sql).

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
        indexes = [models.Index(name="audit_entry_of_object", fields=["object_type", "object_id"])]

    def __str__(self) -> str:
        return f"{self.get_action_display()} {self.pk}"
