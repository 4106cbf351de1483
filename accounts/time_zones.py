"""The time zone of a person, in which pages, emails and files show times. The API stays in UTC."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from django import forms
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone

from accounts.models import Preferences
from audit.models import AuditAction
from audit.people import record_on_user

SITES = ("/admin/", "/merchant/")
UTC = "UTC"
IN_SESSION = "time_zone"  # the key; no page then reads the person's choice from the database


@cache
def zone_names() -> list[str]:
    """The names to choose from: UTC, then those of places."""
    places = (name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))
    return [UTC, *sorted(places)]


class TimeZoneForm(forms.Form):
    time_zone = forms.ChoiceField(label="Time zone")

    def __init__(self, *arguments: Any, widget: forms.Select | None = None, **options: Any) -> None:
        super().__init__(*arguments, **options)
        field = self.fields["time_zone"]
        if widget is not None:
            field.widget = widget
        field.choices = [(name, name) for name in zone_names()]  # type: ignore[attr-defined]


def time_zone_of(user: User) -> str:
    """The name of the zone that the person has chosen, or UTC."""
    chosen = Preferences.objects.filter(user=user).values_list("time_zone", flat=True).first()
    return chosen or UTC


@transaction.atomic
def choose_time_zone(*, user: User, name: str, request: HttpRequest) -> None:
    """Stores the choice. This session uses it at once, and others after their next sign-in."""
    Preferences.objects.update_or_create(user=user, defaults={"time_zone": name})
    record_on_user(user, AuditAction.USER_CHANGED, actor=user, note=f"Time zone: {name}")
    request.session[IN_SESSION] = name


def note_time_zone(sender: object, request: HttpRequest, user: User, **kwargs: Any) -> None:
    """Stores the zone in a new session. A receiver of `user_logged_in`."""
    request.session[IN_SESSION] = time_zone_of(user)


class TimeZoneMiddleware:
    """Shows the times of both sites in the zone of the person who has signed in."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(SITES):
            return self.get_response(request)
        zone = _zone(request.session.get(IN_SESSION, UTC))
        with timezone.override(zone):
            response = self.get_response(request)
        if isinstance(response, StreamingHttpResponse) and not response.is_async:
            content: Iterator[bytes] = iter(response.streaming_content)  # type: ignore[arg-type]
            response.streaming_content = _in_zone(zone, content)
        return response


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):  # an upgrade has removed it
        return ZoneInfo(UTC)


def _in_zone(zone: ZoneInfo, content: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces of a file, which is written after the middleware has returned."""
    while True:
        with timezone.override(zone):
            piece = next(content, None)
        if piece is None:
            return
        yield piece


def local_text(moment: datetime) -> str:
    """A time for a file, in its reader's zone: `2026-11-25T18:00:00+01:00`; in UTC with `Z`.

    The text itself names the offset: headings stay as they are, because programs read them.
    """
    return timezone.localtime(moment).isoformat().replace("+00:00", "Z")
