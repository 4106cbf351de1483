from pathlib import Path

from django.db import migrations, models

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="EncryptionKey",
            fields=[
                ("key_id", models.PositiveSmallIntegerField(primary_key=True, serialize=False)),
                ("wrapped", models.BinaryField()),
                ("sealing_since", models.DateTimeField(null=True)),
            ],
            options={
                "default_permissions": (),
            },
        ),
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
                "encryption_keys.sql": "fd57130ff37a46f3a382414f940c62dddfd36940f986960d18309497a4134d80",
                "clock.sql": "c21ad042d8180ea55e1f4fd06f2a5f6c076f153630ae808084606a9f883281e7",
            },
        ),
    ]
