"""Indexes of the audit trail over bookings, built while purchases go on."""

from django.db import migrations, models

from core.database.migrations import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("wallets", "0006_sql_chain")]
    operations = [
        AddIndexConcurrently(
            model_name="ledgerentry",
            index=models.Index(
                name="wallets_booking_by_time",
                fields=["created_at", "id"],
                condition=~models.Q(("kind", "purchase")),
            ),
        ),
        AddIndexConcurrently(
            model_name="ledgerentry",
            index=models.Index(
                name="wallets_booking_by_actor",
                fields=["actor", "created_at", "id"],
                condition=~models.Q(("kind", "purchase")),
            ),
        ),
    ]
