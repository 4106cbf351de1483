from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    """The chain covers the reasons."""

    dependencies = [
        ("wallets", "0017_add_reasons"),
    ]

    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "reasons.sql": "d0533ddcb51afdc15b5c0257ecfc97b31da2c4b2c95a1844cdf2c86913aeb529",
            "post_entry.sql": "15abebf921308a6bcd83d5255b429b0aa5e6bf8974b03aa76a771c4143868405",
        },
    )
