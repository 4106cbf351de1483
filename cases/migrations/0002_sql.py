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
            "outcomes.sql": "593e72127ced50dad21ff33999e62bdd128b0ef6bc0e38fc26ec6ce8070a3744",
            "guards.sql": "23db413012db23dc99bfc04a9b76872fa84fc1e88d89a43da17811df30cde711",
            "constraints.sql": "79392afbdcffa37e9b56ea72103ad2015455b47bdbdea6b6d81e85b3ae2ff6da",
        },
    )
