"""Ends the access, the sessions and the lockouts of people."""

from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext_noop

from accounts.sign_in.sessions import end_sessions_of
from audit.models import AuditAction
from audit.people import record_on_user
from merchants.people.invitations import withdraw_invitations_of
from operators.sign_in.second_person import end_changes_of
from topups.fulfilment.fulfilments import release_claims_of_leavers
from topups.models import Fulfilment, FulfilmentStatus

ENDED = gettext_noop(
    "Sessions ended: %(sessions)s. Invitations withdrawn: %(invitations)s. Claims back in the"
    " queue: %(claims)s. Requests for a second person ended: %(requests)s."
)


def end_access(*, user: User, actor: User) -> int:
    """Switches a member of staff off: sessions, open invitations and requests for a second person
    end, claims go back to the queue. Returns how many claims."""
    with transaction.atomic():
        leaver = User.objects.select_for_update(no_key=True).get(pk=user.pk)
        sessions = end_sessions_of(leaver)
        invitations = withdraw_invitations_of(leaver, actor=actor)
        ended = {"sessions": sessions, "invitations": invitations, "claims": claims_of(user)}
        ended["requests"] = end_changes_of(leaver, actor=actor)
        leaver.is_active = False
        leaver.ended = ENDED % ended  # type: ignore[attr-defined]  # audit/people.py records it
        leaver.save(update_fields=["is_active"])
    return release_claims_of_leavers()


def claims_of(user: User) -> int:
    """How many orders this person has claimed."""
    return Fulfilment.objects.filter(status=FulfilmentStatus.PROCESSING, claimed_by=user).count()


@transaction.atomic
def end_sessions(*, user: User, actor: User) -> int:
    """Signs a person out everywhere. Returns how many sessions ended."""
    ended = end_sessions_of(user)
    note = f"Sessions ended: {ended}"
    record_on_user(user, AuditAction.USER_CHANGED, actor=actor, note=note)
    return ended


def is_locked_out(user: User) -> bool:
    """Whether wrong passwords for this name are counted."""
    return bool(AccessAttempt.objects.filter(username=user.get_username()).exists())


@transaction.atomic
def unlock(*, user: User, actor: User) -> None:
    """Forgets the wrong passwords for this name, so that the next password is checked."""
    AccessAttempt.objects.filter(username=user.get_username()).delete()
    record_on_user(user, AuditAction.USER_CHANGED, actor=actor, note="Sign-in unlocked")
