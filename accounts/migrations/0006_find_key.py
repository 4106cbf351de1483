"""The look-up of a key also returns the price list of the account. The old function stays until the
next minor release."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0005_add_price_list"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "find_key.sql": "9c478b776fc8cb09fcd82031796ccba12ff5b0989a4c378187e0105c6777a810",
        },
    )
