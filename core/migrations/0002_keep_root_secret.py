"""The fingerprint of the root secret, and triggers that keep both."""

from pathlib import Path

from django.db import migrations, models

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("core", "0001_initial"),
    ]
    operations = [
        migrations.CreateModel(
            name="RootFingerprint",
            fields=[
                (
                    "id",
                    models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False),
                ),
                ("fingerprint", models.BinaryField()),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("pk", 1)), name="core_rootfingerprint_is_one"
                    )
                ],
            },
        ),
        *install_sql(
            Path(__file__).parents[1] / "sql",
            {
                "encryption_keys.sql": "fd57130ff37a46f3a382414f940c62dddfd36940f986960d18309497a4134d80"
            },
        ),
    ]
