"""Words that people read. It runs no SQL."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0007_index_entries"),
    ]

    operations = [
        migrations.AlterField(
            model_name="auditentry",
            name="action",
            field=models.CharField(
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
                    ("settings_changed", "Platform settings changed"),
                    ("products_imported", "Products imported"),
                    ("codes_imported", "Codes imported"),
                    ("codes_held", "Codes held"),
                    ("codes_released", "Codes released"),
                    ("codes_voided", "Codes voided"),
                    ("old_data_deleted", "Old data deleted"),
                    ("added", "Added"),
                    ("changed", "Changed"),
                    ("deleted", "Deleted"),
                ],
                max_length=32,
            ),
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="request_id",
            field=models.CharField(
                blank=True, db_default="", max_length=64, verbose_name="request ID"
            ),
        ),
    ]
