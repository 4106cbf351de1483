"""Adds when the age in an announcement's message must be edited next."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("operators", "0003_add_file_import"),
    ]
    operations = [
        migrations.AddField("announcement", "age_at", models.DateTimeField(null=True)),
    ]
