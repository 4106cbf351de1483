import uuid
from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("catalogue", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="FileImport",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("token", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("codes", "Voucher codes"),
                            ("catalogue", "Catalogue"),
                            ("price_lists", "Prices in lists"),
                            ("exchange_rates", "Exchange rates"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("checking", "Checking"),
                            ("ready", "Ready to import"),
                            ("refused", "Has problems"),
                            ("importing", "Importing"),
                            ("imported", "Imported"),
                            ("stopped", "Stopped"),
                            ("discarded", "Discarded"),
                        ],
                        default="checking",
                        max_length=16,
                    ),
                ),
                ("file_name", models.CharField(max_length=200)),
                ("size", models.PositiveIntegerField(help_text="In bytes.")),
                ("sealed", models.BinaryField(null=True)),
                ("done", models.PositiveIntegerField(default=0)),
                ("result", models.JSONField(default=dict)),
                ("problems", models.JSONField(default=list)),
                ("more_problems", models.PositiveIntegerField(default=0)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "touched_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "confirmed_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "shelf",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="catalogue.shelf",
                    ),
                ),
                (
                    "batch",
                    models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict),
                ),
            ],
            options={
                "verbose_name": "import",
                "permissions": [
                    ("import_codes", "Can import voucher codes"),
                    ("import_catalogue", "Can import the catalogue"),
                ],
                "indexes": [
                    models.Index(
                        condition=models.Q(
                            ("state__in", ["checking", "importing", "ready", "stopped"])
                        ),
                        fields=["touched_at"],
                        name="imports_import_open",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("kind__in", ["codes", "catalogue", "price_lists", "exchange_rates"])
                        ),
                        name="imports_import_kind_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "checking",
                                    "ready",
                                    "refused",
                                    "importing",
                                    "imported",
                                    "stopped",
                                    "discarded",
                                ],
                            )
                        ),
                        name="imports_import_state_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("kind", "codes"), ("shelf__isnull", False)),
                            models.Q(models.Q(("kind", "codes"), _negated=True), ("shelf", None)),
                            _connector="OR",
                        ),
                        name="imports_import_of_codes_has_a_shelf",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("finished_at", None),
                                ("sealed__isnull", False),
                                ("state__in", ["checking", "importing", "ready", "stopped"]),
                            ),
                            models.Q(
                                models.Q(
                                    ("state__in", ["checking", "importing", "ready", "stopped"]),
                                    _negated=True,
                                ),
                                ("finished_at__isnull", False),
                                ("sealed", None),
                            ),
                            _connector="OR",
                        ),
                        name="imports_import_keeps_its_file_while_open",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", ["importing", "imported"]), _negated=True),
                            ("confirmed_by__isnull", False),
                            _connector="OR",
                        ),
                        name="imports_import_is_confirmed",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="FilePart",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("upload", models.UUIDField()),
                (
                    "number",
                    models.PositiveSmallIntegerField(help_text="Its place in the file, from 0."),
                ),
                ("size", models.PositiveIntegerField(help_text="In bytes.")),
                ("sealed", models.BinaryField()),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("upload", "number"), name="imports_part_has_a_place"
                    )
                ],
            },
        ),
        *install_sql(
            Path(__file__).parents[1] / "sql",
            {
                "parts.sql": "f6181e39f6a4ff79dc44a66725e3e36df4422035b6c4fbf3f162ed2f25ce6f7f",
            },
        ),
    ]
