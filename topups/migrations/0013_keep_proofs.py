"""A proof of delivery is kept as it was added, and only a delivered top-up has one."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [("topups", "0012_prove_deliveries")]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "delivery_proofs.sql": "2b898b63b1fbc018f5e76e7ff459f101284d77ebdced343ed16d8a7ed1e5f90b",
        },
    )
