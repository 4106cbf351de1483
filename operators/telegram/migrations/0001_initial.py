import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import operators.telegram.models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("catalogue", "0001_initial"),
        ("topups", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="AnnouncementChat",
            fields=[
                ("chat_id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("window_started_at", models.DateTimeField(null=True)),
                ("sent", models.PositiveIntegerField(default=0)),
                ("paused_until", models.DateTimeField(null=True)),
                ("failures", models.PositiveIntegerField(default=0)),
                ("last_error", models.CharField(blank=True, default="", max_length=200)),
            ],
        ),
        migrations.CreateModel(
            name="PlatformSettings",
            fields=[
                (
                    "id",
                    models.PositiveSmallIntegerField(
                        default=1, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "announcing",
                    models.BooleanField(
                        default=False,
                        help_text="Announce orders of top-up products that are marked for it.",
                    ),
                ),
                (
                    "chat_id",
                    models.BigIntegerField(
                        blank=True,
                        help_text="The chat's ID in Telegram. IDs of groups are negative. Used for orders without a route. Empty: those orders are not announced.",
                        null=True,
                        verbose_name="chat",
                    ),
                ),
                (
                    "topic_id",
                    models.BigIntegerField(
                        blank=True,
                        help_text="The topic's ID, a number. Leave empty for the chat itself, or for its General topic.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(2)],
                        verbose_name="topic",
                    ),
                ),
                ("quiet_from", models.TimeField(blank=True, null=True)),
                (
                    "quiet_until",
                    models.TimeField(
                        blank=True,
                        help_text="Orders from the quiet hours are announced at this time.",
                        null=True,
                    ),
                ),
                (
                    "time_zone",
                    models.CharField(
                        default="UTC",
                        help_text="Used for the quiet hours and for times in messages.",
                        max_length=64,
                        validators=[operators.telegram.models.check_time_zone],
                    ),
                ),
                (
                    "repeat_minutes",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        default=15,
                        help_text="Minutes without a claim before the order is announced again. Empty: never.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1440),
                        ],
                        verbose_name="announce again after",
                    ),
                ),
                (
                    "repeat_times",
                    models.PositiveSmallIntegerField(
                        default=3,
                        validators=[django.core.validators.MaxValueValidator(20)],
                        verbose_name="maximum repetitions",
                    ),
                ),
            ],
            options={
                "verbose_name": "platform settings",
                "verbose_name_plural": "platform settings",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("id", 1)), name="telegram_settings_are_one_row"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("topic_id", None),
                            models.Q(("chat_id__isnull", False), ("topic_id__gte", 2)),
                            _connector="OR",
                        ),
                        name="telegram_settings_topic_is_of_a_chat",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("quiet_from", None), ("quiet_until", None)),
                            models.Q(
                                ("quiet_from__isnull", False),
                                ("quiet_until__isnull", False),
                                models.Q(("quiet_from", models.F("quiet_until")), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="telegram_settings_quiet_has_two_ends",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("repeat_minutes", None), ("repeat_minutes__gte", 1), _connector="OR"
                        ),
                        name="telegram_settings_repeat_is_positive",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TelegramLinkCode",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("expires_at", models.DateTimeField()),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="telegram_code",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Announcement",
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
                            ("waiting", "Waiting"),
                            ("sending", "Being sent"),
                            ("announced", "Announced"),
                            ("ended", "Ended"),
                            ("given_up", "Given up"),
                        ],
                        default="waiting",
                        max_length=16,
                    ),
                ),
                ("chat_id", models.BigIntegerField(null=True, verbose_name="chat")),
                ("topic_id", models.BigIntegerField(null=True, verbose_name="topic")),
                ("message_id", models.BigIntegerField(null=True, verbose_name="message ID")),
                ("former_message_id", models.BigIntegerField(null=True)),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("busy_until", models.DateTimeField(null=True)),
                ("lost_answers", models.PositiveSmallIntegerField(default=0)),
                ("message_version", models.BigIntegerField(null=True)),
                ("restore_at", models.DateTimeField(null=True)),
                ("asks", models.CharField(blank=True, default="", max_length=200)),
                ("age_at", models.DateTimeField(null=True)),
                ("announced_at", models.DateTimeField(null=True)),
                ("repeated_at", models.DateTimeField(null=True)),
                ("repeats", models.PositiveSmallIntegerField(default=0)),
                ("repeat_requested", models.BooleanField(default=False)),
                ("last_error", models.CharField(blank=True, default="", max_length=200)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "fulfilment",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="announcement",
                        to="topups.fulfilment",
                    ),
                ),
            ],
            options={
                "permissions": [("announce_again", "Can announce an order again")],
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ["waiting", "sending", "announced"])),
                        fields=["state"],
                        name="telegram_announcement_open",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["waiting", "sending", "announced", "ended", "given_up"])
                        ),
                        name="telegram_announcement_state_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", ["announced", "ended"]), _negated=True),
                            models.Q(
                                ("announced_at__isnull", False),
                                ("chat_id__isnull", False),
                                ("message_id__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="telegram_announcement_announced_has_a_message",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "sending"), _negated=True),
                            ("busy_until__isnull", False),
                            _connector="OR",
                        ),
                        name="telegram_announcement_sending_is_busy",
                    ),
                    models.UniqueConstraint(
                        fields=("chat_id", "message_id"), name="telegram_announcement_message_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AnnouncementRoute",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "chat_id",
                    models.BigIntegerField(
                        help_text="The chat's ID in Telegram. IDs of groups are negative.",
                        verbose_name="chat",
                    ),
                ),
                (
                    "topic_id",
                    models.BigIntegerField(
                        blank=True,
                        help_text="The topic's ID, a number. Leave empty for the chat itself, or for its General topic.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(2)],
                        verbose_name="topic",
                    ),
                ),
                (
                    "category",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="catalogue.category",
                    ),
                ),
                (
                    "product",
                    models.OneToOneField(
                        blank=True,
                        help_text="A product's route takes precedence over its category's.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="topups.topupproduct",
                        verbose_name="top-up product",
                    ),
                ),
            ],
            options={
                "verbose_name": "route",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("category__isnull", False), ("product", None)),
                            models.Q(("category", None), ("product__isnull", False)),
                            _connector="OR",
                        ),
                        name="telegram_route_is_of_one_thing",
                        violation_error_message="Choose a top-up product or a category, not both.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("topic_id", None), ("topic_id__gte", 2), _connector="OR"
                        ),
                        name="telegram_route_topic_is_a_topic",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TelegramLink",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "telegram_user_id",
                    models.BigIntegerField(unique=True, verbose_name="Telegram user ID"),
                ),
                (
                    "linked_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="telegram_link",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "Telegram link",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("telegram_user_id__gt", 0)),
                        name="telegram_link_is_to_a_person",
                    )
                ],
            },
        ),
    ]
