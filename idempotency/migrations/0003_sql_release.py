"""A key stays in progress if its account left for another cell."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [("accounts", "0005_add_left_at"), ("idempotency", "0002_sql")]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"release.sql": "b6c1d26cb6bc311f9709154ca54da98c0463c05ccde8b268bf8b55d2d8343bfa"},
    )
