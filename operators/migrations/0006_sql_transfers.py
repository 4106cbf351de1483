"""A transfer of an account never changes."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [("operators", "0005_add_account_transfer")]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"transfers.sql": "0ea2c50a348055c1f878dadab78be0ef97027e7527e126d7597a833cab8f2bc7"},
    )
