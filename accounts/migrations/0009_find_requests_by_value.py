"""An index with filters that name a twentieth of the wrong pages that the old one named."""

import django.contrib.postgres.indexes
from django.db import migrations, models

from core.database.migrations import AddIndexConcurrently, RemoveIndexConcurrently

FILTER = "(n_distinct_per_range = 1000, false_positive_rate = 0.0005)"


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("accounts", "0008_require_factors")]
    operations = [
        AddIndexConcurrently(
            model_name="requestrecord",
            index=django.contrib.postgres.indexes.BrinIndex(
                autosummarize=True,
                fields=["request_id", "order_reference", "idempotency_key"],
                name="accounts_request_by_value",
                opclasses=[f"{kind}_bloom_ops {FILTER}" for kind in ("uuid", "text", "text")],
                pages_per_range=16,
            ),
        ),
        # A file of SQL made the old index, so no model has named it.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddIndex(
                    "requestrecord", models.Index("request_id", name="accounts_request_found")
                )
            ]
        ),
        RemoveIndexConcurrently("requestrecord", "accounts_request_found"),
    ]
