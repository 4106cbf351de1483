"""The rules of warnings, the warnings, and their messages in Telegram."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from core.backoffice.registry import watches
from core.texts import english, lazy

KIND_LENGTH = 32


class WarningRule(models.Model):
    """The limit and the receivers of a kind of warning. One row for each kind.

    Without roles and people, it goes to the staff who may see what it is about.
    """

    kind = models.CharField(max_length=KIND_LENGTH, unique=True, editable=False)
    active = models.BooleanField(default=True)
    limit = models.DecimalField(max_digits=12, decimal_places=2)
    roles = models.ManyToManyField(
        Group, blank=True, related_name="+", help_text=lazy("Everybody with one of these roles.")
    )
    people = models.ManyToManyField(
        settings.AUTH_USER_MODEL,
        blank=True,
        related_name="+",
        limit_choices_to={"is_staff": True, "is_active": True},
        help_text=lazy("Without roles and people, those receive it who may see what it is about."),
    )
    email = models.BooleanField("by email", default=True)
    telegram = models.BooleanField(
        "in Telegram",
        default=True,
        help_text=lazy(
            "To people who linked their Telegram account. The bot can write only to those who"
            " once wrote to it."
        ),
    )

    class Meta:
        default_permissions = ("view", "change")
        constraints = [
            models.CheckConstraint(
                name="warnings_rule_limit",
                condition=Q(limit__gte=0),
                violation_error_message=lazy("Enter a limit of at least 0."),
            )
        ]

    def __str__(self) -> str:
        watch = watches().get(self.kind)
        return english(watch.title) if watch else self.kind


class StaffWarning(models.Model):
    """One crossing of a limit by one thing (`subject`), until it is back within the limit."""

    kind = models.CharField(max_length=KIND_LENGTH)
    subject = models.CharField(max_length=100)
    text = models.CharField(max_length=500)
    path = models.CharField(max_length=200, blank=True)
    raised_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "warning"
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                name="warnings_one_for_each_crossing",
                fields=["kind", "subject"],
                condition=Q(ended_at=None),
            )
        ]

    def __str__(self) -> str:
        return f"warning {self.pk}"


class WarningPost(models.Model):
    """A message to a member of staff in Telegram, sent after the commit of its warnings."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    lines = models.JSONField()
    created_at = models.DateTimeField(db_default=Now())
    due_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        indexes = [
            models.Index(name="warnings_post_due", fields=["due_at"], condition=Q(ended_at=None))
        ]

    def __str__(self) -> str:
        return f"message {self.pk}"
