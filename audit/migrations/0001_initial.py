import django.core.serializers.json
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "actor_name",
                    models.CharField(
                        blank=True,
                        db_default="",
                        help_text="Who ran the command on the server.",
                        max_length=200,
                    ),
                ),
                (
                    "action",
                    models.CharField(
                        choices=[
                            ("note_added", "Note added"),
                            ("code_revealed", "Code revealed"),
                            ("key_issued", "Key issued"),
                            ("key_rotated", "Key rotated"),
                            ("key_revoked", "Key revoked"),
                            ("telegram_code_issued", "Telegram code issued"),
                            ("telegram_linked", "Telegram linked"),
                            ("telegram_unlinked", "Telegram unlinked"),
                            ("telegram_refused", "Telegram action refused"),
                            ("announcement_given_up", "Announcement given up"),
                            ("announcement_resumed", "New announcement requested"),
                            ("chat_moved", "Chat moved"),
                            ("client_created", "Client created"),
                            ("client_changed", "Client changed"),
                            ("reference_linked", "Reference linked"),
                            ("reference_unlinked", "Reference unlinked"),
                            ("member_invited", "Member invited"),
                            ("invitation_approved", "Invitation approved"),
                            ("invitation_withdrawn", "Invitation withdrawn"),
                            ("member_joined", "Member joined"),
                            ("member_changed", "Member changed"),
                            ("member_removed", "Member removed"),
                            ("alert_changed", "Balance alert changed"),
                            ("signed_in", "Signed in"),
                            ("signed_out", "Signed out"),
                            ("sign_in_refused", "Sign-in refused"),
                            ("company_linked", "Company account linked"),
                            ("company_unlinked", "Company account unlinked"),
                            ("second_factor_set_up", "Second factor set up"),
                            ("second_factor_refused", "Second factor refused"),
                            ("second_factor_reset", "Second factor removed"),
                            ("passkey_added", "Passkey added"),
                            ("passkey_removed", "Passkey removed"),
                            ("backup_code_used", "Backup code used"),
                            ("user_created", "Staff account created"),
                            ("user_changed", "Staff account changed"),
                            ("password_changed", "Password changed"),
                            ("rights_changed", "Groups or permissions changed"),
                            ("account_created", "Account created"),
                            ("account_changed", "Account changed"),
                            ("settings_changed", "Telegram settings changed"),
                            ("products_imported", "Products imported"),
                            ("codes_imported", "Codes imported"),
                            ("codes_held", "Codes held"),
                            ("codes_released", "Codes released"),
                            ("codes_voided", "Codes voided"),
                            ("price_changed", "Price changed"),
                            ("deposit_booked", "Deposit booked"),
                            ("payout_booked", "Payout booked"),
                            ("adjustment_booked", "Adjustment booked"),
                            ("credit_booked", "Credit booked"),
                            ("old_data_deleted", "Old data deleted"),
                            ("added", "Added"),
                            ("changed", "Changed"),
                            ("deleted", "Deleted"),
                        ],
                        max_length=32,
                    ),
                ),
                ("object_type", models.CharField(max_length=100)),
                ("object_id", models.CharField(max_length=64)),
                ("reference", models.CharField(blank=True, db_default="", max_length=64)),
                (
                    "request_id",
                    models.CharField(
                        blank=True, db_default="", max_length=64, verbose_name="request ID"
                    ),
                ),
                ("address", models.GenericIPAddressField(blank=True, null=True)),
                ("note", models.CharField(blank=True, db_default="", max_length=500)),
                (
                    "changes",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        encoder=django.core.serializers.json.DjangoJSONEncoder,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "actor",
                    models.ForeignKey(
                        blank=True,
                        help_text="Empty for a command on the server.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="audit_entries",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "audit entries",
                "indexes": [
                    models.Index(fields=["object_type", "object_id"], name="audit_entry_of_object"),
                    models.Index(fields=["created_at", "id"], name="audit_entry_by_time"),
                    models.Index(
                        fields=["action", "created_at", "id"], name="audit_entry_by_action"
                    ),
                    models.Index(fields=["actor", "created_at", "id"], name="audit_entry_by_actor"),
                    models.Index(
                        condition=models.Q(("actor_name", ""), _negated=True),
                        fields=["actor_name", "created_at", "id"],
                        name="audit_entry_by_actor_name",
                    ),
                    models.Index(
                        condition=models.Q(("reference", ""), _negated=True),
                        fields=["reference", "created_at", "id"],
                        name="audit_entry_by_reference",
                    ),
                    models.Index(
                        condition=models.Q(("request_id", ""), _negated=True),
                        fields=["request_id"],
                        name="audit_entry_by_request",
                    ),
                ],
            },
        ),
    ]
