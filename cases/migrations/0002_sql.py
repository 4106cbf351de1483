"""Functions, triggers and storage of this app; each file of `sql/` says what it is for."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("cases", "0001_initial"),
        ("accounts", "0002_sql"),
        ("catalogue", "0002_sql"),
        ("orders", "0002_sql"),
        ("wallets", "0002_sql"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "outcomes.sql": "a75c7177037ac8e26e7b9fef06165cac6f6af998f5b0e9b2147e3132e22e53b5",
            "guards.sql": "23db413012db23dc99bfc04a9b76872fa84fc1e88d89a43da17811df30cde711",
            "constraints.sql": "e54b70b3752069af39aa196cc5c538481ce6edd684c709f932f5a63089676624",
            "given_back.sql": "7a18806275e8595cb1df885fa17a4aea4f62335eadd9be858305b5e59bbe6602",
        },
    )
