"""Index of the search by player id, built while purchases go on."""

from django.contrib.postgres.indexes import BrinIndex
from django.db import migrations

from core.database.migrations import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("topups", "0003_delete_player_ids")]
    operations = [
        AddIndexConcurrently(
            model_name="fulfilment",
            index=BrinIndex(
                autosummarize=True,
                fields=["player_id"],
                name="topups_fulfilment_player",
                opclasses=["text_bloom_ops"],
                pages_per_range=32,
            ),
        ),
    ]
