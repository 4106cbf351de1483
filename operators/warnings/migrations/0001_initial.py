import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="StaffWarning",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=32)),
                ("subject", models.CharField(max_length=100)),
                ("text", models.CharField(max_length=500)),
                ("path", models.CharField(blank=True, max_length=200)),
                (
                    "raised_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("ended_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name": "warning",
                "default_permissions": ("view",),
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)),
                        fields=("kind", "subject"),
                        name="warnings_one_for_each_crossing",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="WarningPost",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("lines", models.JSONField()),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "due_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        condition=models.Q(("ended_at", None)),
                        fields=["due_at"],
                        name="warnings_post_due",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="WarningRule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(editable=False, max_length=32, unique=True)),
                ("active", models.BooleanField(default=True)),
                ("limit", models.DecimalField(decimal_places=2, max_digits=12)),
                ("email", models.BooleanField(default=True, verbose_name="by email")),
                (
                    "telegram",
                    models.BooleanField(
                        default=True,
                        help_text="To people who linked their Telegram account. The bot can write only to those who once wrote to it.",
                        verbose_name="in Telegram",
                    ),
                ),
                (
                    "people",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Without roles and people, those receive it who may see what it is about.",
                        limit_choices_to={"is_active": True, "is_staff": True},
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "roles",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Everybody with one of these roles.",
                        related_name="+",
                        to="auth.group",
                    ),
                ),
            ],
            options={
                "default_permissions": ("view", "change"),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("limit__gte", 0)),
                        name="warnings_rule_limit",
                        violation_error_message="Enter a limit of at least 0.",
                    )
                ],
            },
        ),
    ]
