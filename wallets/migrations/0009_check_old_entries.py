from django.db import migrations

from core.database.migrations import ValidateConstraint


class Migration(migrations.Migration):
    dependencies = [
        ("wallets", "0008_allow_reversals"),
    ]
    operations = [
        ValidateConstraint(model_name="ledgerentry", name="wallets_entry_kind_and_sign_agree"),
    ]
