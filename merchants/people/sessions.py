"""A member's sessions: where each was last used, and how to end them.

A MemberSession row references Django's session row: deleting the session deletes both.
"""

from datetime import timedelta

from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django_otp import DEVICE_ID_SESSION_KEY

from accounts.addresses import client_address_text
from accounts.sign_in.second_factor import has_factor
from merchants.models import MemberSession

UPDATE_INTERVAL = timedelta(minutes=1)

# What a User-Agent header contains, and what it means. The first match counts: Edge also names
# Chrome, Chrome also names Safari, and Android also names Linux.
BROWSERS = {
    "Edg": "Edge",
    "OPR/": "Opera",
    "SamsungBrowser": "Samsung Internet",
    "Firefox": "Firefox",
    "FxiOS": "Firefox",
    "Chrome": "Chrome",
    "CriOS": "Chrome",
    "Safari": "Safari",
}
SYSTEMS = {
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Android": "Android",
    "Windows": "Windows",
    "CrOS": "ChromeOS",
    "Mac OS X": "macOS",
    "Linux": "Linux",
}


def note_session_use(*, request: HttpRequest, user: User) -> None:
    """Records the browser, address and time of this session's last use.

    A session that keeps its address is updated at most once a minute.
    """
    key, now = str(request.session.session_key), timezone.now()
    address = client_address_text(request)
    seen = MemberSession.objects.filter(session_id=key)
    session = seen.first()
    if session and session.address == address and session.seen_at > now - UPDATE_INTERVAL:
        return
    facts = {"address": address, "device": _device(request), "seen_at": now}
    if seen.update(**facts):
        return
    try:
        with transaction.atomic():
            Session.objects.select_for_update().get(pk=key)
            MemberSession.objects.create(session_id=key, user=user, **facts)
    except (Session.DoesNotExist, IntegrityError):
        return  # the session has ended, or a concurrent request created the row


def sessions_of(user: User) -> QuerySet[MemberSession]:
    """The person's sessions that have not expired, last used first."""
    live = MemberSession.objects.filter(user=user, session__expire_date__gt=timezone.now())
    return live.order_by("-seen_at", "-pk")


def complete_sessions_of(user: User) -> list[MemberSession]:
    """The last 100 of `sessions_of`, without those that wait for the second factor."""
    sessions = sessions_of(user).select_related("session")[:100]
    if not has_factor(user):
        return list(sessions)
    return [one for one in sessions if DEVICE_ID_SESSION_KEY in one.session.get_decoded()]


def device_name(agent: str) -> str:
    """The device that a User-Agent header names, such as `Firefox on Windows`.

    The header itself, if it names no known browser or system; `unknown` if there is none.
    """
    browser = next((name for sign, name in BROWSERS.items() if sign in agent), None)
    system = next((name for sign, name in SYSTEMS.items() if sign in agent), None)
    if browser and system:
        return _("%(browser)s on %(system)s") % {"browser": browser, "system": system}
    return agent or _("unknown")


def end_member_sessions(sessions: QuerySet[MemberSession]) -> int:
    """Ends these sessions at once. Returns how many there were."""
    rows = Session.objects.filter(pk__in=sessions.values("session_id"))
    return rows.delete()[1].get("sessions.Session", 0)


def _device(request: HttpRequest) -> str:
    """The User-Agent header without unprintable characters, at most 200 characters."""
    agent = request.headers.get("User-Agent", "")
    return "".join(one for one in agent if one.isprintable() and one.isascii())[:200]
