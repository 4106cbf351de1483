"""Members are not staff: the database refuses both ways."""

from pathlib import Path

from django.conf import settings
from django.db import migrations

from config.database.migrations import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("merchants", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [run_sql_file(SQL / "guards.sql")]
