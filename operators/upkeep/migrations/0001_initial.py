import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Heartbeat",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("beat", "Beat"),
                            ("worker", "Worker"),
                            ("imports", "Imports worker"),
                        ],
                        max_length=8,
                    ),
                ),
                ("host", models.CharField(max_length=200)),
                (
                    "beat_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("kind", "host"), name="upkeep_heartbeat_once_per_host"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["beat", "worker", "imports"])),
                        name="upkeep_heartbeat_kind_is_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ReconcileRun",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("running", "Running"),
                            ("clean", "Clean"),
                            ("findings", "Findings"),
                            ("failed", "Failed"),
                        ],
                        default="running",
                        max_length=8,
                    ),
                ),
                (
                    "started_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("finished_at", models.DateTimeField(null=True)),
                ("checked", models.JSONField(default=dict)),
                ("findings", models.JSONField(default=list)),
                ("warnings", models.JSONField(default=list)),
                ("failure", models.CharField(blank=True, default="", max_length=200)),
                ("telegram_due", models.BooleanField(default=False)),
                ("history_until", models.DateTimeField(null=True)),
                ("asked_by", models.CharField(blank=True, db_default="", max_length=200)),
                ("begun_at", models.DateTimeField(null=True)),
                ("progress", models.CharField(blank=True, db_default="", max_length=200)),
            ],
            options={
                "indexes": [models.Index(fields=["started_at"], name="upkeep_run_started")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "running")),
                        fields=("state",),
                        name="upkeep_run_one_at_a_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["running", "clean", "findings", "failed"])
                        ),
                        name="upkeep_run_state_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("finished_at", None), ("state", "running")),
                            models.Q(
                                models.Q(("state", "running"), _negated=True),
                                ("finished_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="upkeep_run_ends_once",
                    ),
                ],
                "permissions": [("run_reconcile", "Can run reconcile now")],
            },
        ),
        migrations.CreateModel(
            name="Copy",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("files", "Files"),
                            ("backup", "Backup"),
                            ("purchase_log", "Purchase Log"),
                            ("roots", "Roots"),
                        ],
                        max_length=12,
                    ),
                ),
                ("host", models.CharField(blank=True, db_default="", max_length=200)),
                (
                    "seen_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("kind", "host"), name="upkeep_copy_once_per_host"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("kind__in", ["files", "backup", "purchase_log", "roots"])
                        ),
                        name="upkeep_copy_kind_is_known",
                    ),
                ],
            },
        ),
    ]
