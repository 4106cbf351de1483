from django.db import migrations

from core.database.migrations import ValidateConstraint


class Migration(migrations.Migration):
    dependencies = [("wallets", "0019_cover_reasons")]
    operations = [
        ValidateConstraint(model_name="ledgerentry", name="wallets_entry_reason_is_of_a_booking"),
    ]
