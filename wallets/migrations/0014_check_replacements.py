from django.db import migrations

from core.database.migrations import ValidateConstraint


class Migration(migrations.Migration):
    dependencies = [
        ("wallets", "0013_allow_replacements"),
    ]
    operations = [
        ValidateConstraint(model_name="ledgerentry", name="wallets_entry_kind_and_sign_agree"),
    ]
