"""The settings and routes of announcements, the linked accounts of staff, and the announcements."""

from __future__ import annotations

from zoneinfo import available_timezones

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from catalogue.models import Category
from core.database.columns import ACTOR_LENGTH
from core.texts import lazy
from topups.models import Fulfilment, TopUpProduct

ONLY_ROW = 1
TOPIC_HELP = lazy(
    "The topic's ID, a number. Leave empty for the chat itself, or for its General topic."
)
CHAT_HELP = lazy("The chat's ID in Telegram. IDs of groups are negative.")


def check_time_zone(name: str) -> None:
    """Raises ValidationError if `name` is not an IANA time zone."""
    if name not in available_timezones():
        raise ValidationError(_("This is not a time zone. Example: Europe/Berlin."))


class PlatformSettings(models.Model):
    """The settings of announcements. One row, read for each order, so changes need no restart."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=ONLY_ROW, editable=False)
    announcing = models.BooleanField(
        default=False, help_text=lazy("Announce orders of top-up products that are marked for it.")
    )
    chat_id = models.BigIntegerField(
        null=True,
        blank=True,
        verbose_name="chat",
        help_text=lazy(
            "The chat's ID in Telegram. IDs of groups are negative. Used for orders without a"
            " route. Empty: those orders are not announced."
        ),
    )
    topic_id = models.BigIntegerField(
        null=True,
        blank=True,
        verbose_name="topic",
        validators=[MinValueValidator(2)],
        help_text=TOPIC_HELP,
    )
    quiet_from = models.TimeField(null=True, blank=True)
    quiet_until = models.TimeField(
        null=True,
        blank=True,
        help_text=lazy("Orders from the quiet hours are announced at this time."),
    )
    time_zone = models.CharField(
        max_length=64,
        default="UTC",
        validators=[check_time_zone],
        help_text=lazy("Used for the quiet hours and for times in messages."),
    )
    repeat_minutes = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        default=15,
        validators=[MinValueValidator(1), MaxValueValidator(24 * 60)],
        verbose_name="announce again after",
        help_text=lazy(
            "Minutes without a claim before the order is announced again. Empty: never."
        ),
    )
    repeat_times = models.PositiveSmallIntegerField(
        default=3,
        validators=[MaxValueValidator(20)],
        verbose_name="maximum repetitions",
    )

    class Meta:
        verbose_name = verbose_name_plural = "platform settings"
        constraints = [
            models.CheckConstraint(name="telegram_settings_are_one_row", condition=Q(id=ONLY_ROW)),
            models.CheckConstraint(
                name="telegram_settings_topic_is_of_a_chat",
                condition=Q(topic_id=None) | Q(topic_id__gte=2, chat_id__isnull=False),
            ),
            models.CheckConstraint(
                name="telegram_settings_quiet_has_two_ends",
                condition=Q(quiet_from=None, quiet_until=None)
                | (
                    Q(quiet_from__isnull=False, quiet_until__isnull=False)
                    & ~Q(quiet_from=F("quiet_until"))
                ),
            ),
            models.CheckConstraint(
                name="telegram_settings_repeat_is_positive",
                condition=Q(repeat_minutes=None) | Q(repeat_minutes__gte=1),
            ),
        ]

    def __str__(self) -> str:
        return "Telegram"


class AnnouncementRoute(models.Model):
    """The chat for orders of one top-up product or category. Replaces the default chat."""

    product = models.OneToOneField(
        TopUpProduct,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        verbose_name="top-up product",
        help_text=lazy("A product's route takes precedence over its category's."),
    )
    category = models.OneToOneField(Category, on_delete=models.CASCADE, null=True, blank=True)
    chat_id = models.BigIntegerField(verbose_name="chat", help_text=CHAT_HELP)
    topic_id = models.BigIntegerField(
        null=True,
        blank=True,
        verbose_name="topic",
        validators=[MinValueValidator(2)],
        help_text=TOPIC_HELP,
    )

    class Meta:
        verbose_name = "route"
        constraints = [
            models.CheckConstraint(
                name="telegram_route_is_of_one_thing",
                condition=Q(product=None, category__isnull=False)
                | Q(product__isnull=False, category=None),
                violation_error_message=lazy("Choose a top-up product or a category, not both."),
            ),
            models.CheckConstraint(
                name="telegram_route_topic_is_a_topic",
                condition=Q(topic_id=None) | Q(topic_id__gte=2),
            ),
        ]

    def __str__(self) -> str:
        return str(self.product or self.category)


class TelegramLink(models.Model):
    """The Telegram account of a member of staff."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="telegram_link"
    )
    telegram_user_id = models.BigIntegerField("Telegram user ID", unique=True)
    linked_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = "Telegram link"
        constraints = [
            models.CheckConstraint(
                name="telegram_link_is_to_a_person", condition=Q(telegram_user_id__gt=0)
            )
        ]

    def __str__(self) -> str:
        return str(self.user)


class TelegramLinkCode(models.Model):
    """A user's latest link code. The Telegram account that sends it to the bot gets linked."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="telegram_code"
    )
    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"code of {self.user}"


class AnnouncementState(models.TextChoices):
    """The state of an order's announcement."""

    WAITING = "waiting", lazy("Waiting")
    SENDING = "sending", lazy("Being sent")
    ANNOUNCED = "announced", lazy("Announced")
    ENDED = "ended", lazy("Ended")
    GIVEN_UP = "given_up", lazy("Given up")


class Announcement(models.Model):
    """The announcement of one order. Only operators/telegram/ writes it.

    - `busy_until`: until then, only the process that set it calls Telegram about this order.
    - `message_version`: id of the last event of the order that its message shows.
    - `restore_at`: when the message gets its usual buttons back; null if it shows them. In the
      future while the message asks `asks` (a username) to confirm.
    - `age_at`: when the age in the message must be edited next; null once the order has ended.
    - `former_message_id`: the replaced message, until it is edited to say that it was replaced.
    - `lost_answers`: how many posts had an unknown result.
    """

    fulfilment = models.OneToOneField(
        Fulfilment, on_delete=models.PROTECT, related_name="announcement"
    )
    state = models.CharField(
        max_length=16, choices=AnnouncementState, default=AnnouncementState.WAITING
    )
    chat_id = models.BigIntegerField("chat", null=True)
    topic_id = models.BigIntegerField("topic", null=True)
    message_id = models.BigIntegerField("message ID", null=True)
    former_message_id = models.BigIntegerField(null=True)
    attempts = models.PositiveIntegerField(default=0)
    busy_until = models.DateTimeField(null=True)
    lost_answers = models.PositiveSmallIntegerField(default=0)
    message_version = models.BigIntegerField(null=True)
    restore_at = models.DateTimeField(null=True)
    asks = models.CharField(max_length=ACTOR_LENGTH, blank=True, default="")
    age_at = models.DateTimeField(null=True)
    announced_at = models.DateTimeField(null=True)
    repeated_at = models.DateTimeField(null=True)
    repeats = models.PositiveSmallIntegerField(default=0)
    repeat_requested = models.BooleanField(default=False)
    last_error = models.CharField(max_length=200, blank=True, default="")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        permissions = [("announce_again", "Can announce an order again")]
        indexes = [
            models.Index(
                name="telegram_announcement_open",
                fields=["state"],
                condition=Q(state__in=["waiting", "sending", "announced"]),
            )
        ]
        constraints = [
            models.CheckConstraint(
                name="telegram_announcement_state_is_known",
                condition=Q(state__in=AnnouncementState.values),
            ),
            models.CheckConstraint(
                name="telegram_announcement_announced_has_a_message",
                condition=~Q(state__in=["announced", "ended"])
                | Q(
                    chat_id__isnull=False,
                    message_id__isnull=False,
                    announced_at__isnull=False,
                ),
            ),
            models.CheckConstraint(
                name="telegram_announcement_sending_is_busy",
                condition=~Q(state="sending") | Q(busy_until__isnull=False),
            ),
            models.UniqueConstraint(
                name="telegram_announcement_message_once", fields=["chat_id", "message_id"]
            ),
        ]

    def __str__(self) -> str:
        return f"Announcement of {self.fulfilment}"


class AnnouncementChat(models.Model):
    """Telegram's limits in one chat: messages sent in this minute, and the end of a pause."""

    chat_id = models.BigIntegerField(primary_key=True)
    window_started_at = models.DateTimeField(null=True)
    sent = models.PositiveIntegerField(default=0)
    paused_until = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0)
    last_error = models.CharField(max_length=200, blank=True, default="")

    def __str__(self) -> str:
        return f"chat {self.chat_id}"
