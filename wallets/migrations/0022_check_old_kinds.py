from django.db import migrations

from core.database.migrations import ValidateConstraint


class Migration(migrations.Migration):
    dependencies = [("wallets", "0021_check_kinds_cheaply")]
    operations = [
        ValidateConstraint(model_name="ledgerentry", name="wallets_entry_agrees_with_its_kind"),
    ]
