"""Indexes of the audit trail over prices."""

from django.db import migrations, models

from core.database.migrations import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("catalogue", "0006_drop_index_of_unsold_codes")]
    operations = [
        AddIndexConcurrently(
            model_name="pricechange",
            index=models.Index(name="catalogue_price_by_time", fields=["changed_at", "id"]),
        ),
        AddIndexConcurrently(
            model_name="pricechange",
            index=models.Index(
                name="catalogue_price_by_actor", fields=["changed_by", "changed_at", "id"]
            ),
        ),
    ]
