"""A price that SQL changes has an audit entry."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [("audit", "0009_name_bookings")]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"record_price.sql": "685552c2123a0af2b0f48ba6c71066f9dab4e06bf3389fceba819882975173b3"},
    )
