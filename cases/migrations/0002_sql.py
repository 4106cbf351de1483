"""The entry of an outcome closes its case, and cases are kept."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("cases", "0001_initial"),
        ("wallets", "0014_check_replacements"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "outcomes.sql": "a75c7177037ac8e26e7b9fef06165cac6f6af998f5b0e9b2147e3132e22e53b5",
            "guards.sql": "23db413012db23dc99bfc04a9b76872fa84fc1e88d89a43da17811df30cde711",
            "constraints.sql": "79392afbdcffa37e9b56ea72103ad2015455b47bdbdea6b6d81e85b3ae2ff6da",
        },
    )
