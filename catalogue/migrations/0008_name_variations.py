"""A refused purchase says that a product is sold through its variations."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [("catalogue", "0007_keep_batches")]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"variations.sql": "2835c51f8bd5273df2451f1bb68a4563f5975a9ec6a8ab866820e02190fb99e1"},
    )
