"""The sessions of members and staff: each ends at a fixed time, and after a time without use.

This module is Django's SESSION_ENGINE. Both limits are the session row's `expire_date`, which
Django checks whenever it loads a session. The browser's cookie limits nothing.
"""

from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions import middleware
from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

IDLE = "idle_minutes"  # the key in the session
WRITTEN_EVERY = timedelta(minutes=1)
ENDED = "session_ended"  # the cookie that tells the sign-in pages that a session has ended
RELOAD_HEADER = "X-Reload"  # sent by pages that reload themselves (operators/frame/static/)


class SessionStore(db.SessionStore):
    """A session in the database whose row ends at the earlier of the two limits."""

    row_ends: datetime | None = None  # as it was loaded

    def _get_session_from_db(self) -> Any:
        row = super()._get_session_from_db()  # type: ignore[misc]  # not in the stubs
        self.row_ends = row.expire_date if row else None
        return row

    @property
    def end(self) -> datetime:
        """The fixed end of this session."""
        return super().get_expiry_date()

    def get_expiry_date(self, **kwargs: Any) -> datetime:
        end = super().get_expiry_date(**kwargs)
        idle = self.get(IDLE)
        return end if idle is None else min(end, timezone.now() + timedelta(minutes=idle))

    def note_use(self) -> None:
        """Moves the end of an idle session. Writes at most once a minute, and never the session's
        content, so it cannot undo what a concurrent request stores in it."""
        if self.get(IDLE) is None or self.row_ends is None:
            return
        end = self.get_expiry_date()
        if end - self.row_ends > WRITTEN_EVERY:
            Session.objects.filter(pk=self.session_key).update(expire_date=end)


def limit_session(sender: object, request: HttpRequest, user: User, **kwargs: Any) -> None:
    """Sets both limits of a new session. A receiver of `user_logged_in`."""
    if user.is_staff:
        hours, idle = settings.STAFF_SESSION_HOURS, settings.STAFF_SESSION_IDLE_MINUTES
    else:
        hours, idle = settings.MERCHANT_SESSION_HOURS, settings.MERCHANT_SESSION_IDLE_MINUTES
    # A moment: Django would count a number of seconds from each change of the session.
    request.session.set_expiry(timezone.now() + timedelta(hours=hours))
    request.session[IDLE] = idle


def end_sessions_of(user: User) -> int:
    """Deletes all sessions of this person. Returns how many there were.

    Reads every live session: only staff call it, and rarely.
    """
    live = Session.objects.filter(expire_date__gt=timezone.now())
    keys = [
        session.session_key
        for session in live.iterator()
        if session.get_decoded().get(SESSION_KEY) == str(user.pk)
    ]
    return Session.objects.filter(pk__in=keys).delete()[1].get("sessions.Session", 0)


class SessionMiddleware(middleware.SessionMiddleware):
    """Django's, which also prolongs a session in use. A request that does not load its session,
    such as one to the API, gets no cookie."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> Any:
        session: Any = request.session  # a SessionStore
        if not session.accessed:
            return response
        if self._has_ended(request) and response.status_code == HTTPStatus.FOUND:
            # The sign-in pages read it. Django's middleware deletes the cookie of the session.
            response.set_cookie(
                ENDED, "1", max_age=60, secure=settings.SESSION_COOKIE_SECURE, httponly=True
            )
        if session.session_key and RELOAD_HEADER not in request.headers:
            session.note_use()
        return super().process_response(request, response)

    @staticmethod
    def _has_ended(request: HttpRequest) -> bool:
        """Whether the browser named a session that was over before this request."""
        session: Any = request.session
        named = bool(request.COOKIES.get(settings.SESSION_COOKIE_NAME))
        return named and session.is_empty() and session.row_ends is None
