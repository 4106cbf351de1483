import uuid
from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("sessions", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="BalanceAlert",
            fields=[
                (
                    "account",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="balance_alert",
                        serialize=False,
                        to="accounts.account",
                    ),
                ),
                ("level", models.DecimalField(decimal_places=4, max_digits=20)),
                ("below", models.BooleanField(default=False, editable=False)),
                ("crossed_at", models.DateTimeField(editable=False, null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("level__gt", 0)),
                        name="merchants_balancealert_level_is_positive",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Email",
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
                            ("invitation", "Invitation"),
                            ("password_reset", "Password reset"),
                            ("change", "Notice of a change"),
                            ("low_balance", "Low balance"),
                            ("staff_notice", "Staff notice"),
                            ("case", "Case"),
                            ("report", "Report"),
                            ("transfer", "Transfer booked"),
                        ],
                        max_length=16,
                    ),
                ),
                ("to", models.EmailField(max_length=254)),
                ("facts", models.JSONField(default=dict)),
                ("about", models.BigIntegerField(null=True)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                (
                    "due_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("sent_at", models.DateTimeField(null=True)),
                ("given_up_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name_plural": "emails",
                "indexes": [
                    models.Index(
                        condition=models.Q(("given_up_at", None), ("sent_at", None)),
                        fields=["due_at"],
                        name="merchants_email_due",
                    ),
                    models.Index(fields=["to", "id"], name="merchants_email_address"),
                    models.Index(
                        condition=models.Q(("kind__in", ["password_reset", "invitation"])),
                        fields=["to", "created_at"],
                        name="merchants_email_asked_for",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("sent_at", None), ("given_up_at", None), _connector="OR"
                        ),
                        name="merchants_email_ends_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "kind__in",
                                [
                                    "invitation",
                                    "password_reset",
                                    "change",
                                    "low_balance",
                                    "staff_notice",
                                    "case",
                                    "report",
                                    "transfer",
                                ],
                            )
                        ),
                        name="merchants_email_kind_is_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="MemberSession",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("address", models.CharField(blank=True, max_length=45)),
                ("device", models.CharField(blank=True, max_length=200)),
                (
                    "began_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "seen_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, to="sessions.session"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="member_sessions",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Invitation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("email", models.EmailField(max_length=254)),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("owner", "Owner"),
                            ("developer", "Developer"),
                            ("viewer", "Viewer"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("expires_at", models.DateTimeField()),
                ("accepted_at", models.DateTimeField(editable=False, null=True)),
                ("withdrawn_at", models.DateTimeField(editable=False, null=True)),
                ("needs_approval", models.BooleanField(db_default=False, editable=False)),
                ("approved_at", models.DateTimeField(editable=False, null=True)),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="invitations",
                        to="accounts.account",
                    ),
                ),
                (
                    "approved_by",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="invitations_approved",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "invited_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="invitations_sent",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("accepted_at", None),
                            ("needs_approval", False),
                            ("approved_at__isnull", False),
                            _connector="OR",
                        ),
                        name="merchants_invitation_accepted_if_approved",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("role__in", ["owner", "developer", "viewer"])),
                        name="merchants_invitation_role_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("accepted_at", None), ("withdrawn_at", None), _connector="OR"
                        ),
                        name="merchants_invitation_ends_once",
                    ),
                    models.UniqueConstraint(
                        django.db.models.functions.text.Lower("email"),
                        models.F("account"),
                        condition=models.Q(("accepted_at", None), ("withdrawn_at", None)),
                        name="merchants_invitation_one_open",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("approved_at", None), ("approved_by", None)),
                            models.Q(
                                ("approved_at__isnull", False),
                                ("approved_by__isnull", False),
                                models.Q(("approved_by", models.F("invited_by")), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="merchants_invitation_approved_by_another",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("owner", "Owner"),
                            ("developer", "Developer"),
                            ("viewer", "Viewer"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="memberships",
                        to="accounts.account",
                    ),
                ),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="membership",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("blocked_at", models.DateTimeField(editable=False, null=True)),
            ],
            options={
                "verbose_name": "member",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("role__in", ["owner", "developer", "viewer"])),
                        name="merchants_membership_role_is_known",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="BookKey",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("prefix", models.CharField(max_length=12, unique=True)),
                ("digest", models.CharField(max_length=64)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("revoked_at", models.DateTimeField(editable=False, null=True)),
                ("last_used_at", models.DateTimeField(editable=False, null=True)),
                ("form", models.UUIDField(editable=False, null=True, unique=True)),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="book_keys",
                        to="accounts.account",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="EmailedReport",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=32, verbose_name="report")),
                (
                    "every",
                    models.CharField(
                        choices=[
                            ("day", "Every day"),
                            ("week", "Every week"),
                            ("month", "Every month"),
                        ],
                        max_length=8,
                        verbose_name="how often",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "report by email",
                "verbose_name_plural": "reports by email",
                "default_permissions": ("view", "add", "delete"),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "kind", "every"), name="merchants_report_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("every__in", ["day", "week", "month"])),
                        name="merchants_report_frequency_is_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SentReport",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("first_day", models.DateField()),
                (
                    "report",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sent",
                        to="merchants.emailedreport",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("report", "first_day"), name="merchants_report_sent_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="CompanyProposal",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("legal_name", models.CharField(max_length=200)),
                ("address", models.TextField(blank=True, max_length=400)),
                ("country", models.CharField(blank=True, max_length=60)),
                ("tax_number", models.CharField(blank=True, max_length=60)),
                (
                    "contact",
                    models.CharField(blank=True, max_length=200, verbose_name="contact person"),
                ),
                ("billing_email", models.EmailField(blank=True, max_length=254)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("accepted", "Accepted"),
                            ("rejected", "Rejected"),
                            ("withdrawn", "Withdrawn"),
                        ],
                        db_default="waiting",
                        max_length=16,
                    ),
                ),
                (
                    "proposed_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("decided_at", models.DateTimeField(null=True)),
                ("answer", models.CharField(blank=True, db_default="", max_length=500)),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.account",
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
                    "proposed_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "waiting")),
                        fields=("account",),
                        name="merchants_proposal_waits_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("decided_at", None), ("decided_by", None), ("state", "waiting")
                            ),
                            models.Q(
                                ("state__in", ["accepted", "rejected", "withdrawn"]),
                                ("decided_at__isnull", False),
                                ("decided_by__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="merchants_proposal_is_decided_by_a_person",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PreparedFile",
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
                ("sealed", models.BinaryField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("building", "In work"),
                            ("ready", "Ready"),
                            ("failed", "Failed"),
                        ],
                        default="waiting",
                        max_length=16,
                    ),
                ),
                ("problem", models.CharField(blank=True, max_length=200)),
                ("size", models.PositiveBigIntegerField(default=0)),
                ("parts", models.PositiveIntegerField(default=0)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "touched_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "account",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.account",
                    ),
                ),
                (
                    "key",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="merchants.bookkey",
                    ),
                ),
                (
                    "user",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="PreparedPart",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("token", models.UUIDField()),
                ("number", models.PositiveIntegerField()),
                ("sealed", models.BinaryField()),
                (
                    "file",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pieces",
                        to="merchants.preparedfile",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.AddConstraint(
            model_name="preparedfile",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["waiting", "building", "ready", "failed"])),
                name="merchants_prepared_state_is_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="preparedfile",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("key", None), ("user__isnull", False)),
                    models.Q(("account__isnull", False), ("key__isnull", False), ("user", None)),
                    _connector="OR",
                ),
                name="merchants_prepared_for_a_person_or_a_key",
            ),
        ),
        migrations.AddConstraint(
            model_name="preparedfile",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state__in", ["waiting", "building"])),
                fields=("account",),
                name="merchants_prepared_one_of_an_account",
            ),
        ),
        migrations.AddConstraint(
            model_name="preparedpart",
            constraint=models.UniqueConstraint(
                fields=("file", "number"), name="merchants_prepared_part_has_a_place"
            ),
        ),
        *install_sql(
            Path(__file__).parents[1] / "sql",
            {
                "guards.sql": "bbe072308c997eb95486d573bdfe823d29847c73406859a6e3806b2920375909",
            },
        ),
    ]
