"""Indexes of the audit trail over moves and prices, built while purchases go on."""

from django.db import migrations, models

from core.database.migrations import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("topups", "0003_delete_player_ids")]
    operations = [
        AddIndexConcurrently(
            model_name="fulfilmentevent",
            index=models.Index(
                name="topups_move_by_time",
                fields=["created_at", "id"],
                condition=~models.Q(("channel", "api")),
            ),
        ),
        AddIndexConcurrently(
            model_name="fulfilmentevent",
            index=models.Index(
                name="topups_move_by_actor",
                fields=["actor", "created_at", "id"],
                condition=~models.Q(("channel", "api")),
            ),
        ),
        AddIndexConcurrently(
            model_name="pricechange",
            index=models.Index(name="topups_price_by_time", fields=["changed_at", "id"]),
        ),
        AddIndexConcurrently(
            model_name="pricechange",
            index=models.Index(
                name="topups_price_by_actor", fields=["changed_by", "changed_at", "id"]
            ),
        ),
    ]
