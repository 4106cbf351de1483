import uuid

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("catalogue", "0001_initial"),
        ("orders", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Case",
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
                            ("open", "Open"),
                            ("crediting", "Waits for approval of a credit"),
                            ("rejected", "Closed without credit"),
                            ("replaced", "Code replaced"),
                            ("credited", "Credited"),
                        ],
                        db_default="open",
                        max_length=16,
                    ),
                ),
                ("version", models.PositiveIntegerField(db_default=1)),
                (
                    "opened_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "waits_since",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        null=True,
                    ),
                ),
                ("closed_at", models.DateTimeField(editable=False, null=True)),
                ("email_due", models.BooleanField(db_default=False, editable=False)),
                (
                    "account",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.account",
                    ),
                ),
                (
                    "assigned_to",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="assigned to",
                    ),
                ),
                (
                    "code",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="catalogue.vouchercode",
                    ),
                ),
                (
                    "decided_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "opened_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "order",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="cases",
                        to="orders.order",
                    ),
                ),
                (
                    "paid_order",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="orders.order",
                    ),
                ),
                (
                    "replacement_proposed_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "permissions": [
                    ("answer_case", "Can open, answer and reject cases, and propose outcomes"),
                    ("replace_code", "Can replace the code of a case"),
                ],
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["account", "id"], name="cases_case_of_account"),
                    models.Index(
                        condition=models.Q(("waits_since__isnull", False)),
                        fields=["waits_since"],
                        name="cases_case_waiting",
                    ),
                    models.Index(
                        condition=models.Q(("closed_at__isnull", True)),
                        fields=["assigned_to", "id"],
                        name="cases_case_assigned",
                    ),
                    models.Index(
                        condition=models.Q(("email_due", True)),
                        fields=["id"],
                        name="cases_case_email_due",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("code__isnull", False), models.Q(("state", "rejected"), _negated=True)
                        ),
                        fields=("code",),
                        name="cases_case_once_per_code",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("code", None), ("state__in", ["open", "crediting"])),
                        fields=("order",),
                        name="cases_case_one_open_per_order",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["open", "crediting", "rejected", "replaced", "credited"])
                        ),
                        name="cases_case_state_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("closed_at", None), ("state__in", ["open", "crediting"])),
                            models.Q(
                                ("closed_at__isnull", False),
                                ("decided_by__isnull", False),
                                ("state__in", ["rejected", "replaced", "credited"]),
                                ("waits_since", None),
                            ),
                            _connector="OR",
                        ),
                        name="cases_case_is_closed_by_a_person",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "replaced"), _negated=True),
                            ("code__isnull", False),
                            _connector="OR",
                        ),
                        name="cases_case_replaces_one_code",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="CaseMessage",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("from_staff", models.BooleanField()),
                ("text", models.TextField(max_length=4000)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "author",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "case",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="messages",
                        to="cases.case",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="CaseFile",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("token", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("name", models.CharField(max_length=200)),
                ("content_type", models.CharField(max_length=100)),
                ("size", models.PositiveIntegerField(help_text="In bytes.")),
                ("sealed", models.BinaryField()),
                (
                    "message",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="files",
                        to="cases.casemessage",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
    ]
