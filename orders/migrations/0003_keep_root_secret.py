"""No second root secret after something was sealed, and no loss of a key in use."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("orders", "0002_sql"),
        ("core", "0002_keep_root_secret"),
        ("accounts", "0002_sql"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"root_secret.sql": "859521a7f9e4e167a14d7da79176cda761bab450c22baa77f4d1d941888b43f5"},
    )
