"""An index that finds the codes in stock that expire next."""

from django.db import migrations, models

from core.database.migrations import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("catalogue", "0009_add_expiry")]
    operations = [
        AddIndexConcurrently(
            model_name="vouchercode",
            index=models.Index(
                condition=models.Q(
                    ("expires_on__isnull", False), ("hold", None), ("order_id", None)
                ),
                fields=["expires_on"],
                name="catalogue_code_expiring",
            ),
        ),
    ]
