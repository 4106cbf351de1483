"""The audit trail: one append-only entry for each recorded action."""

from __future__ import annotations

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from core.database.columns import ACTOR_LENGTH, NOTE_LENGTH
from core.texts import lazy

REFERENCE_LENGTH = 64
# Records of looking and of signing in, which may be deleted after 90 days (audit/sql/).
EXPIRING_ACTIONS = (
    *("code_revealed", "second_factor_refused", "sign_in_refused"),
    *("signed_in", "signed_out", "telegram_refused"),
)
# For a second person.
REQUESTS = ("request_made", "request_agreed", "request_rejected", "request_ended")


class AuditAction(models.TextChoices):
    """The actions that the audit trail records."""

    NOTE_ADDED = "note_added", lazy("Note added")
    CODE_REVEALED = "code_revealed", lazy("Code revealed")
    KEY_STARTED = "key_started", lazy("Key started")
    KEY_ISSUED = "key_issued", lazy("Key issued")
    KEY_ROTATED = "key_rotated", lazy("Key rotated")
    KEY_REVOKED = "key_revoked", lazy("Key revoked")
    TELEGRAM_CODE_ISSUED = "telegram_code_issued", lazy("Telegram code issued")
    TELEGRAM_LINKED = "telegram_linked", lazy("Telegram linked")
    TELEGRAM_UNLINKED = "telegram_unlinked", lazy("Telegram unlinked")
    TELEGRAM_REFUSED = "telegram_refused", lazy("Telegram action refused")
    ANNOUNCEMENT_GIVEN_UP = "announcement_given_up", lazy("Announcement given up")
    ANNOUNCEMENT_RESUMED = "announcement_resumed", lazy("New announcement requested")
    CHAT_MOVED = "chat_moved", lazy("Chat moved")
    CLIENT_CREATED = "client_created", lazy("Client created")
    CLIENT_CHANGED = "client_changed", lazy("Client changed")
    REFERENCE_LINKED = "reference_linked", lazy("Reference linked")
    REFERENCE_UNLINKED = "reference_unlinked", lazy("Reference unlinked")
    MEMBER_INVITED = "member_invited", lazy("Member invited")
    INVITATION_APPROVED = "invitation_approved", lazy("Invitation approved")
    INVITATION_WITHDRAWN = "invitation_withdrawn", lazy("Invitation withdrawn")
    MEMBER_JOINED = "member_joined", lazy("Member joined")
    MEMBER_CHANGED = "member_changed", lazy("Member changed")
    MEMBER_REMOVED = "member_removed", lazy("Member removed")
    ALERT_CHANGED = "alert_changed", lazy("Balance alert changed")
    SIGNED_IN = "signed_in", lazy("Signed in")
    SIGNED_OUT = "signed_out", lazy("Signed out")
    SIGN_IN_REFUSED = "sign_in_refused", lazy("Sign-in refused")
    COMPANY_LINKED = "company_linked", lazy("Company account linked")
    COMPANY_UNLINKED = "company_unlinked", lazy("Company account unlinked")
    SECOND_FACTOR_SET_UP = "second_factor_set_up", lazy("Second factor set up")
    SECOND_FACTOR_REFUSED = "second_factor_refused", lazy("Second factor refused")
    SECOND_FACTOR_RESET = "second_factor_reset", lazy("Second factor removed")
    PASSKEY_ADDED = "passkey_added", lazy("Passkey added")
    PASSKEY_REMOVED = "passkey_removed", lazy("Passkey removed")
    BACKUP_CODE_USED = "backup_code_used", lazy("Backup code used")
    USER_CREATED = "user_created", lazy("Staff account created")
    USER_CHANGED = "user_changed", lazy("Staff account changed")
    ACCESS_ENDED = "access_ended", lazy("Access ended")
    REQUEST_MADE = "request_made", lazy("Second person asked")
    REQUEST_AGREED = "request_agreed", lazy("Second person agreed")
    REQUEST_REJECTED = "request_rejected", lazy("Request for a second person rejected")
    REQUEST_ENDED = "request_ended", lazy("Request for a second person ended")
    PASSWORD_CHANGED = "password_changed", lazy("Password changed")  # the name of an action
    RIGHTS_CHANGED = "rights_changed", lazy("Roles or permissions changed")
    ACCOUNT_CREATED = "account_created", lazy("Account created")
    ACCOUNT_CHANGED = "account_changed", lazy("Account changed")
    COMPANY_CHANGED = "company_changed", lazy("Company data changed")
    COMPANY_PROPOSED = "company_proposed", lazy("Company data proposed")
    PROPOSAL_WITHDRAWN = "proposal_withdrawn", lazy("Proposed company data withdrawn")
    PROPOSAL_REJECTED = "proposal_rejected", lazy("Proposed company data rejected")
    SETTINGS_CHANGED = "settings_changed", lazy("Telegram settings changed")
    PRODUCTS_IMPORTED = "products_imported", lazy("Products imported")
    CODES_IMPORTED = "codes_imported", lazy("Codes imported")
    CODES_HELD = "codes_held", lazy("Codes held")
    CODES_MOVED = "codes_moved", lazy("Codes moved to another hold")
    CODES_RELEASED = "codes_released", lazy("Codes released")
    CODES_VOIDED = "codes_voided", lazy("Codes voided")
    IMPORT_TAKEN_BACK = "import_taken_back", lazy("Import taken back")
    PRICE_CHANGED = "price_changed", lazy("Price changed")
    DEPOSIT_BOOKED = "deposit_booked", lazy("Deposit booked")
    PAYOUT_BOOKED = "payout_booked", lazy("Payout booked")
    ADJUSTMENT_BOOKED = "adjustment_booked", lazy("Adjustment booked")
    CREDIT_BOOKED = "credit_booked", lazy("Credit booked")
    BOOKING_ASKED = "booking_asked", lazy("Approval of a booking requested")
    BOOKING_APPROVED = "booking_approved", lazy("Booking approved")
    BOOKING_REVERSED = "booking_reversed", lazy("Booking reversed")
    BOOKING_REJECTED = "booking_rejected", lazy("Booking rejected")
    BOOKING_WITHDRAWN = "booking_withdrawn", lazy("Booking withdrawn")
    TOPUP_DELIVERED = "topup_delivered", lazy("Top-up delivered")
    TOPUP_REJECTED = "topup_rejected", lazy("Top-up rejected")
    TOPUP_UNREFUNDED = "topup_unrefunded", lazy("Top-up failed without refund")
    PROOF_ADDED = "proof_added", lazy("Proof of delivery added")
    TRANSFER_ANNOUNCED = "transfer_announced", lazy("Transfer announced")
    TRANSFER_CLOSED = "transfer_closed", lazy("Announced transfer closed")
    CASE_OPENED = "case_opened", lazy("Case opened")
    CASE_ANSWERED = "case_answered", lazy("Message in a case")
    CASE_ASSIGNED = "case_assigned", lazy("Case assigned")
    CASE_REJECTED = "case_rejected", lazy("Case closed without credit")
    CASE_REPLACED = "case_replaced", lazy("Code of a case replaced")
    CASE_CREDITED = "case_credited", lazy("Credit of a case")
    REPLACEMENT_PROPOSED = "replacement_proposed", lazy("Replacement proposed")
    REPLACEMENT_DECLINED = "replacement_declined", lazy("Replacement declined")
    REPLACEMENT_WITHDRAWN = "replacement_withdrawn", lazy("Replacement withdrawn")
    SPENDING_LIMIT_CHANGED = "spending_limit_changed", lazy("Spending limit changed")
    EXPORTED = "exported", lazy("File downloaded")
    PERSON_HANDED_OVER = "person_handed_over", lazy("Personal data handed over")
    PERSON_DELETED = "person_deleted", lazy("Personal data deleted")
    OLD_DATA_DELETED = "old_data_deleted", lazy("Old data deleted")
    ADDED = "added", lazy("Added")
    CHANGED = "changed", lazy("Changed")
    DELETED = "deleted", lazy("Deleted")


class AuditEntry(models.Model):
    """One action of one person. A trigger refuses changes and deletion (audit/sql/append_only.sql).

    `object_type` and `object_id` identify the object without a foreign key, so an entry never
    prevents the deletion of its object and outlives it. `actor` is a foreign key, because users are
    never deleted, only deactivated. Without one, `actor_name` says who acted, such as `shell:anna`
    for a command or `sql:anna` for SQL; both are empty for what the service did by itself.

    `address` is the network address of the request in which it happened, if there was one.

    `changes` holds the old and the new value of each changed property:
    `{"enabled": [true, false]}`. It never holds a secret.
    """

    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="audit_entries",
        help_text=lazy("Empty for a command on the server."),
    )
    actor_name = models.CharField(
        max_length=ACTOR_LENGTH,
        blank=True,
        db_default="",
        help_text=lazy("Who ran the command on the server."),
    )
    action = models.CharField(max_length=32)  # an AuditAction, without a migration for each new one
    object_type = models.CharField(max_length=100)
    object_id = models.CharField(max_length=64)
    reference = models.CharField(max_length=REFERENCE_LENGTH, blank=True, db_default="")
    request_id = models.CharField("request ID", max_length=64, blank=True, db_default="")
    address = models.GenericIPAddressField(null=True, blank=True)
    note = models.CharField(max_length=NOTE_LENGTH, blank=True, db_default="")
    changes = models.JSONField(default=dict, blank=True, encoder=DjangoJSONEncoder)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        verbose_name_plural = "audit entries"
        permissions = [("export_lists", "Can download lists as files")]
        # The page of the audit trail reads ranges of these (operators/history/audit_trail.py).
        indexes = [
            models.Index(
                name="audit_entry_about",
                fields=["object_type", "object_id", "created_at", "id"],
            ),
            models.Index(name="audit_entry_by_time", fields=["created_at", "id"]),
            models.Index(name="audit_entry_by_action", fields=["action", "created_at", "id"]),
            models.Index(name="audit_entry_by_actor", fields=["actor", "created_at", "id"]),
            models.Index(
                name="audit_entry_by_actor_name",
                fields=["actor_name", "created_at", "id"],
                condition=~Q(actor_name=""),
            ),
            models.Index(
                name="audit_entry_by_reference",
                fields=["reference", "created_at", "id"],
                condition=~Q(reference=""),
            ),
            models.Index(
                name="audit_entry_by_request",
                fields=["request_id"],
                condition=~Q(request_id=""),
            ),
        ]

    def __str__(self) -> str:
        return f"Entry {self.pk}: {self.action_label}"

    @property
    def action_label(self) -> str:
        """The action in words. An action of a newer version is returned as it is stored."""
        return dict(AuditAction.choices).get(self.action, self.action)
