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
            "post_entry.sql": "4c95c0c7cdd82d85622b65592216e0d2eee0cb88381a641f971ecaafc3c5ef84",
        },
    )
