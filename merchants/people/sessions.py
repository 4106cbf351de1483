"""The sessions of a member: where each was last seen, and ending them.

A MemberSession row references Django's session row: deleting the session deletes both.
"""

from datetime import timedelta

from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from accounts.addresses import client_address_text
from merchants.models import MemberSession

WRITTEN_EVERY = timedelta(minutes=1)


def note_session_use(*, request: HttpRequest, user: User) -> None:
    """Writes down that this session was used, at most once a minute."""
    key, now = str(request.session.session_key), timezone.now()
    address = client_address_text(request)
    seen = MemberSession.objects.filter(session_id=key)
    session = seen.first()
    if session is not None and session.address == address and session.seen_at > now - WRITTEN_EVERY:
        return
    facts = {"address": address, "device": _device(request), "seen_at": now}
    if seen.update(**facts):
        return
    try:
        with transaction.atomic():
            Session.objects.select_for_update().get(pk=key)
            MemberSession.objects.create(session_id=key, user=user, **facts)
    except (Session.DoesNotExist, IntegrityError):
        return  # ended meanwhile, or another request of this session was faster


def sessions_of(user: User) -> QuerySet[MemberSession]:
    """The live sessions of a person, the last used one first."""
    live = MemberSession.objects.filter(user=user, session__expire_date__gt=timezone.now())
    return live.order_by("-seen_at", "-pk")


def end_member_sessions(sessions: QuerySet[MemberSession]) -> int:
    """Ends these sessions at once; returns how many there were."""
    rows = Session.objects.filter(pk__in=sessions.values("session_id"))
    return rows.delete()[1].get("sessions.Session", 0)


def _device(request: HttpRequest) -> str:
    """What the browser calls itself, in a few printable characters."""
    agent = request.headers.get("User-Agent", "")
    return "".join(one for one in agent if one.isprintable() and one.isascii())[:200]
