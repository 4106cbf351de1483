"""Emails with a link that sets the password of a member of staff: invitations and resets."""

from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from accounts.models import OwnCompany
from accounts.preferences.languages import language_of
from merchants.email import outbox
from merchants.email.secret_links import (
    STAFF_INVITATION_VALID_FOR,
    read_reset,
    read_staff_invitation,
)
from merchants.models import Email, EmailKind
from merchants.people.password_resets import MAX_RESETS_PER_HOUR
from operators.frame.base import time_cell

PAGE = "staff_password"  # the view that sets the password


def may_have_password(user: User) -> bool:
    """Whether this member of staff may sign in with a password, and not only at the company."""
    company = settings.COMPANY_SIGN_IN
    return not company or company.allows_password(user.username)


@transaction.atomic
def send_invitation(*, user: User, by: User) -> None:
    """Emails a new member of staff the link that sets their password, at most three times per
    hour. The email names who invites them, the company and their roles.

    Links that were sent before end: another password that nobody can use makes them invalid.
    """
    to, hour = user.email.lower(), timedelta(hours=1)
    outbox.lock_address(to)
    sent = Email.objects.filter(to=to, about=user.pk, kind=EmailKind.STAFF_NOTICE)
    if sent.filter(created_at__gt=timezone.now() - hour).count() >= MAX_RESETS_PER_HOUR:
        return
    if not user.has_usable_password():
        user.set_unusable_password()
        user.save(update_fields=["password"])
    company = OwnCompany.objects.first()
    words = {"person": by.get_full_name() or by.get_username(), "company": company}
    with translation.override(language_of(to)):
        title = (
            _("%(person)s invites you to the back office of %(company)s")
            if company
            else _("%(person)s invites you to the back office")
        )
        roles = ", ".join(sorted(map(str, user.groups.all())))
        facts = {
            "title": title % words,
            "lines": [
                *([_("Your roles: %(roles)s.") % {"roles": roles}] if roles else []),
                _(
                    "Your name for the sign-in is %(name)s. Choose a password with the link below,"
                    " and have an app for your second factor ready."
                )
                % {"name": user.get_username()},
                _(
                    "The link works once, within three days. Later, ask for a new one with"
                    " “Forgot your password?” on the sign-in page of the back office."
                ),
            ],
            "path": reverse(PAGE),
        }
    outbox.write_email(kind=EmailKind.STAFF_NOTICE, to=user.email, facts=facts, about=user.pk)


def read_invitation(user: User) -> str:
    """The invitation of a member of staff, in words; empty once they have signed in, and for those
    who sign in at the company."""
    invited = user.is_staff and user.is_active and user.last_login is None
    if not invited or not may_have_password(user):
        return ""
    kinds = (EmailKind.STAFF_NOTICE, EmailKind.PASSWORD_RESET)
    emails = Email.objects.filter(to=user.email.lower(), about=user.pk, kind__in=kinds)
    email = emails.order_by("-pk").first()
    if email is None or email.given_up_at:
        return _("Not accepted. No link was sent: send the invitation again.")
    if email.sent_at is None:
        return _("The email is being sent.")
    is_reset = email.kind == EmailKind.PASSWORD_RESET
    hour = timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT)
    ends = email.sent_at + (hour if is_reset else STAFF_INVITATION_VALID_FOR)
    words = _("Not accepted yet. The link was sent at %(sent)s and works until %(ends)s.")
    if ends < timezone.now():
        words = _(
            "Not accepted. The link was sent at %(sent)s and ended at %(ends)s: send the invitation"
            " again."
        )
    return words % {"sent": time_cell(email.sent_at), "ends": time_cell(ends)}


@transaction.atomic
def ask_for_link(*, email: str) -> None:
    """Emails a reset link to the member of staff with this address, at most three per hour.

    The caller does not learn whether there is one, as for members
    (merchants/people/password_resets.py).
    """
    email = email.lower()
    outbox.lock_address(email)
    kind, hour = EmailKind.PASSWORD_RESET, timedelta(hours=1)
    if outbox.has_received_limit(kind=kind, to=email, limit=MAX_RESETS_PER_HOUR, within=hour):
        return
    people = [one for one in _staff().filter(email__iexact=email)[:2] if may_have_password(one)]
    about = people[0].pk if len(people) == 1 else None
    outbox.write_email(kind=kind, to=email, facts={"path": reverse(PAGE)}, about=about)


def find_person(token: str) -> User | None:
    """The member of staff whom this token belongs to; None if it is invalid or expired."""
    user = read_reset(token, _staff()) or read_staff_invitation(token, _staff())
    return user if user and may_have_password(user) else None


def _staff() -> QuerySet[User]:
    return User.objects.filter(is_active=True, is_staff=True)
