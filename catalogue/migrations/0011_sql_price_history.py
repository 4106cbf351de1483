"""A price that SQL changes has an audit entry."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [("catalogue", "0010_rename_labels"), ("audit", "0010_sql_prices")]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"price_history.sql": "901f0a9ef81931e7c0f4100fcb83cce34652978a9c5034a9cb9a2aa6fe8c9f45"},
    )
