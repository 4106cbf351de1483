"""Functions, triggers and storage of this app; each file of `sql/` says what it is for."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("idempotency", "0001_initial"),
        ("accounts", "0002_sql"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "claim.sql": "06623426c827a3f195cdd87dedf31d6073a613a0d6ccb01d75f2bccda70d6d7e",
            "stamp.sql": "01e1d42f2f1e1ace4bf57c5b056226b43b17b49327072e5d740009d590f17790",
            "store_response.sql": "afab85369411687ca0b93f0afd1005e3197706c19c4d76aa4c0a97b263e6bc8e",
            "release.sql": "b8dc760ced8eb316d37bf1d0d39d8e06bacd2419c91cb0307646a8fdd01f696d",
            "end_attempt.sql": "703fc8f04c40ba80269988e78b7a7ec60f032928180d3e84290cd815611206a0",
            "storage.sql": "24b215c5706c1b678e6f5a3e4bf850601832509826714688e720bd7a54face9c",
        },
    )
