"""The time zone of a person, in which pages, emails and files show times. The API stays in UTC.

People choose it together with their language (accounts/preferences/languages.py).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from django import forms
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from accounts.models import Preferences
from audit.models import AuditAction
from audit.people import record_on_user
from core.files.table_files import TimeText, exact_time
from core.texts import lazy

SITES = ("/admin/", "/merchant/")
UTC = "UTC"
# Keys of the session, so that no page reads the person's choices from the database.
IN_SESSION = "time_zone"
LANGUAGE_IN_SESSION = "language"


@cache
def zone_names() -> list[str]:
    """The names to choose from: UTC, then those of places."""
    places = (name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))
    return [UTC, *sorted(places)]


class PreferencesForm(forms.Form):
    language = forms.ChoiceField(
        label=lazy("Language"),
        required=False,
        choices=[("", lazy("As in the browser")), *settings.LANGUAGES],
    )
    time_zone = forms.ChoiceField(label=lazy("Time zone"))

    def __init__(
        self, *arguments: Any, widget: type[forms.Select] = forms.Select, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        zone: Any = self.fields["time_zone"]
        for field in self.fields.values():
            field.widget = widget(choices=field.choices)  # type: ignore[attr-defined]
        zone.choices = [(name, name) for name in zone_names()]


def preferences_of(user: User | None) -> Preferences:
    """The choices of the person. Without one: UTC, and the language of the browser."""
    chosen = user and Preferences.objects.filter(user=user).first()
    return chosen or Preferences(time_zone=UTC, language="", seen_language="")


@transaction.atomic
def choose_preferences(*, user: User, time_zone: str, language: str, request: HttpRequest) -> str:
    """Stores the choices. This session uses them at once, and others after their next sign-in.

    Returns a message for the person, in the language that they chose.
    """
    chosen = {"time_zone": time_zone, "language": language}
    Preferences.objects.update_or_create(user=user, defaults=chosen)
    note = f"Time zone: {time_zone}"
    note = f"Time zone: {time_zone}, language: {language}" if language else note
    record_on_user(user, AuditAction.USER_CHANGED, actor=user, note=note)
    _use_in_session(request, Preferences(**chosen))
    with translation.override(language or translation.get_language_from_request(request)):
        return _("Times are now shown in %(zone)s.") % {"zone": time_zone}


def note_preferences(sender: object, request: HttpRequest, user: User, **kwargs: Any) -> None:
    """Stores the choices in a new session, and the language of its pages for emails.

    A receiver of `user_logged_in`.
    """
    chosen = preferences_of(user)
    seen = translation.get_language() or settings.LANGUAGE_CODE
    if seen != (chosen.seen_language or settings.LANGUAGE_CODE):
        Preferences.objects.update_or_create(
            user=user,
            defaults={"seen_language": seen},
            create_defaults={"seen_language": seen, "time_zone": UTC},
        )
    _use_in_session(request, chosen)


def _use_in_session(request: HttpRequest, chosen: Preferences) -> None:
    request.session[IN_SESSION] = chosen.time_zone
    request.session[LANGUAGE_IN_SESSION] = chosen.language


class TimeZoneMiddleware:
    """Shows the times of both sites in the zone of the person who has signed in."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(SITES):
            return self.get_response(request)
        zone = _zone(request.session.get(IN_SESSION, UTC))
        with timezone.override(zone):
            return self.get_response(request)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):  # an upgrade has removed the zone
        return ZoneInfo(UTC)


def local_text(moment: datetime) -> TimeText:
    """A time for a file, in its reader's zone: `2026-11-25T18:00:00+01:00`; in UTC with `Z`.

    The text itself names the offset: headings stay as they are, because programs read them.
    """
    return exact_time(timezone.localtime(moment))
