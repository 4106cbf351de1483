"""Functions, triggers and storage of this app; each file of `sql/` says what it is for."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_initial"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "guards.sql": "0b92b12048ef6b3c9995df20debfbd9b6e9021da7533d8cc39536f384862a583",
            "find_requests.sql": "918f1354eae90c0bbe162b7ff9955e1ff17d8643636cb2bfa4c0610e9801995b",
            "storage.sql": "88f4f1f147b551944c0e10c0ee165a0885edb1fe960e71c486ebaf0c2c13d949",
            "find_key.sql": "f1bac353ebc00c77604c383ba1a418a164898ed66ba678c75469c35afd61bbe2",
        },
    )
