import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models

KINDS = {
    "invitation": "Invitation",
    "password_reset": "Password reset",
    "change": "Notice of a change",
    "low_balance": "Low balance",
    "staff_notice": "Staff notice",
    "case": "Case",
    "report": "Report",
}
FREQUENCIES = {"day": "Every day", "week": "Every week", "month": "Every month"}


def key() -> models.BigAutoField:
    return models.BigAutoField(
        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
    )


class Migration(migrations.Migration):
    dependencies = [
        ("merchants", "0008_add_book_keys"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="EmailedReport",
            fields=[
                ("id", key()),
                ("kind", models.CharField(max_length=32, verbose_name="report")),
                (
                    "every",
                    models.CharField(
                        choices=list(FREQUENCIES.items()), max_length=8, verbose_name="how often"
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
                        condition=models.Q(("every__in", list(FREQUENCIES))),
                        name="merchants_report_frequency_is_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SentReport",
            fields=[
                ("id", key()),
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
        migrations.AlterField(
            model_name="email",
            name="kind",
            field=models.CharField(choices=list(KINDS.items()), max_length=16),
        ),
        migrations.RemoveConstraint(model_name="email", name="merchants_email_kind_is_known"),
        AddConstraintNotValid(
            model_name="email",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", list(KINDS))),
                name="merchants_email_kind_is_known",
            ),
        ),
    ]
