"""Invitations into an account. Staff or an owner send them by email, and each works once.

The link in the email (merchants/email/secret_links.py) names the invitation. Using the link checks
whether the invitation is still open.

One member of staff alone invites only the first people of an account without a key and without
money. Otherwise the invitation is sent only after another member of staff has approved it. The
members receive an email at once, and an owner can withdraw the invitation.
"""

from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import Account, ApiKey
from accounts.preferences.time_zones import preferences_of
from audit.models import AuditAction
from audit.services import record_action
from core.inputs import InputProblem
from core.texts import english
from merchants.email import outbox
from merchants.email.outbox import email_members, write_email
from merchants.email.secret_links import INVITATION_VALID_FOR, read_invitation
from merchants.models import EmailKind, Invitation, Membership, Role
from wallets.models import LedgerEntry

MAX_OPEN = 50
WAITS = gettext_noop("Not sent until another member of our staff approves it")
DAY = timedelta(days=1)
MAX_PER_DAY = 100  # of one account
MAX_TO_ONE_ADDRESS = 3  # in a day, of all accounts
MAX_EMAIL_LENGTH = 150  # the address is also the person's username


def live_invitations(account: Account | None = None) -> QuerySet[Invitation]:
    """The invitations that are open or wait for approval, of one account or of all accounts."""
    invitations = Invitation.objects.filter(
        accepted_at=None, withdrawn_at=None, expires_at__gt=timezone.now()
    )
    return invitations if account is None else invitations.filter(account=account)


def open_invitations() -> QuerySet[Invitation]:
    """The invitations that can be accepted now."""
    return live_invitations().exclude(needs_approval=True, approved_at=None)


@transaction.atomic
def invite_person(*, account: Account, email: str, role: Role, invited_by: User) -> Invitation:
    """Invites a person by email. An open invitation for the same address is replaced.

    If two members of staff must agree (`_needs_two`), nothing is sent before `approve_invitation`.

    Raises InputProblem if the person is a member of this account, if the address is unusable, or
    if too many invitations are open or were sent within a day. It does not reveal whether the
    address signs in to another account: only its holder learns that, from the link.
    """
    email = email.strip().lower()
    Account.objects.select_for_update(no_key=True).get(pk=account.pk)  # serialises invitations
    outbox.lock_address(email)
    check_invitation(account=account, email=email)
    unanswered = Invitation.objects.filter(account=account, accepted_at=None, withdrawn_at=None)
    unanswered.filter(email__iexact=email).update(withdrawn_at=timezone.now())
    invitation = Invitation.objects.create(
        account=account,
        email=email,
        role=role,
        invited_by=invited_by,
        expires_at=timezone.now() + INVITATION_VALID_FOR,
        needs_approval=invited_by.is_staff and _needs_two(account, invited_by),
    )
    waits = {"State": WAITS} if invitation.needs_approval else {}
    record_action(
        actor=invited_by, action=AuditAction.MEMBER_INVITED, on=invitation,
        reference=email, note=", ".join([english(role.label), *waits.values()]),
    )  # fmt: skip
    if not invitation.needs_approval:
        _send(invitation)
    email_members(
        account=account, change=gettext_noop("Person invited"), actor=invited_by,
        facts={gettext_noop("Email"): email, gettext_noop("Role"): english(role.label), **waits},
    )  # fmt: skip
    return invitation


@transaction.atomic
def approve_invitation(*, invitation: Invitation, actor: User) -> bool:
    """Sends an invitation that waits for approval. It is then valid for its full time.

    Returns False if it no longer waits. Raises InputProblem if `actor` made it: two people must
    agree.
    """
    if invitation.invited_by_id == actor.pk:
        raise InputProblem(_("You made this invitation. Another member of staff must approve it."))
    waiting = live_invitations().filter(pk=invitation.pk, needs_approval=True, approved_at=None)
    now = timezone.now()
    if not waiting.update(
        approved_by=actor, approved_at=now, expires_at=now + INVITATION_VALID_FOR
    ):
        return False
    record_action(
        actor=actor, action=AuditAction.INVITATION_APPROVED, on=invitation,
        reference=invitation.email,
    )  # fmt: skip
    _send(invitation)
    email_members(
        account=invitation.account, change=gettext_noop("Invitation approved"), actor=actor,
        facts={"Email": invitation.email, "Role": english(Role(invitation.role).label)},
    )  # fmt: skip
    return True


def _send(invitation: Invitation) -> None:
    """Emails the link, in the language of the inviting member to a person who is new here."""
    member = None if invitation.invited_by.is_staff else invitation.invited_by
    write_email(
        kind=EmailKind.INVITATION,
        to=invitation.email,
        facts={
            "account": invitation.account.name,
            "role": english(Role(invitation.role).label).lower(),
            "days": INVITATION_VALID_FOR.days,
            "language": preferences_of(member).language_of_emails,
        },
        about=invitation.pk,
    )


def _needs_two(account: Account, staff: User) -> bool:
    """Whether the account ever had an owner, or something to take: a key, or an entry of money.

    An owner whose user was switched off counts, too. Superusers invite the first owner alone.
    """
    if Membership.objects.filter(account=account, role=Role.OWNER).exists():
        return True
    if staff.is_superuser:
        return False
    entries = LedgerEntry.objects.filter(wallet=account.pk)
    return ApiKey.objects.filter(client__account=account).exists() or entries.exists()


def check_invitation(*, account: Account, email: str) -> None:
    """Raises InputProblem if this address cannot be invited into the account now."""
    # A quoted address may hold control characters, which could inject an email header.
    if len(email.lower()) > MAX_EMAIL_LENGTH or not email.isprintable():
        raise InputProblem(
            _("Enter an address of at most %(max_email_length)s printable characters.")
            % {"max_email_length": MAX_EMAIL_LENGTH}
        )
    members = Membership.objects.filter(account=account, user__is_active=True)
    if members.filter(user__email__iexact=email).exists():
        raise InputProblem(_("This person is already a member of the account."))
    if live_invitations(account).exclude(email__iexact=email).count() >= MAX_OPEN:
        raise InputProblem(
            _("An account has at most %(max_open)s open invitations. Withdraw one first.")
            % {"max_open": MAX_OPEN}
        )
    _check_limits(account, email.lower())


def _check_limits(account: Account, email: str) -> None:
    since = timezone.now() - DAY
    if Invitation.objects.filter(account=account, created_at__gt=since).count() >= MAX_PER_DAY:
        raise InputProblem(
            _(
                "This account has sent %(max_per_day)s invitations in the last 24 hours. Try again"
                " tomorrow."
            )
            % {"max_per_day": MAX_PER_DAY}
        )
    if outbox.has_received_limit(
        kind=EmailKind.INVITATION, to=email, limit=MAX_TO_ONE_ADDRESS, within=DAY
    ):
        raise InputProblem(
            _(
                "This address was sent %(max_to_one_address)s invitations in the last 24 hours."
                " Wait a"
                " day before you invite it again."
            )
            % {"max_to_one_address": MAX_TO_ONE_ADDRESS}
        )


@transaction.atomic
def withdraw_invitation(*, invitation: Invitation, actor: User) -> bool:
    """Withdraws an invitation. Returns False if it was already accepted or withdrawn."""
    unanswered = Invitation.objects.filter(
        pk=invitation.pk, accepted_at=None, withdrawn_at=None
    ).update(withdrawn_at=timezone.now())
    if unanswered:
        record_action(
            actor=actor,
            action=AuditAction.INVITATION_WITHDRAWN,
            on=invitation,
            reference=invitation.email,
        )
    return bool(unanswered)


def withdraw_invitations_of(user: User, *, actor: User) -> int:
    """Withdraws all open invitations that this person made. Returns how many."""
    made = live_invitations().filter(invited_by=user)
    return sum(withdraw_invitation(invitation=one, actor=actor) for one in made)


def find_invitation(token: str) -> Invitation | None:
    """The open invitation of this token; None if the token is invalid or no longer open."""
    number = read_invitation(token)
    if number is None:
        return None
    return open_invitations().select_related("account").filter(pk=number).first()


@transaction.atomic
def accept_invitation(*, invitation_id: int, password: str) -> User:
    """Makes the invited person a member with this password. Returns their user.

    A person who was removed from the same account gets their old user back. Raises InputProblem if
    the invitation is no longer open or the address already signs in to the service.
    """
    # Serialises the invitations of one account, as `invite_person` does.
    accounts = Account.objects.filter(invitations=invitation_id)
    accounts.select_for_update(of=("self",), no_key=True).first()
    invitations = open_invitations().select_for_update(of=("self",)).select_related("account")
    invitation = invitations.filter(pk=invitation_id).first()
    if invitation is None:
        raise InputProblem(_("This invitation is no longer open. Ask for a new one."))
    user = _make_user(invitation)
    user.is_active = True
    user.set_password(password)
    user.save()
    Membership.objects.update_or_create(
        user=user, defaults={"account": invitation.account, "role": invitation.role}
    )
    invitation.accepted_at = timezone.now()
    invitation.save(update_fields=["accepted_at"])
    if invitation.role == Role.OWNER:  # the account has an owner from now on
        others = live_invitations(invitation.account).filter(approved_at=None)
        others.filter(invited_by__is_staff=True).update(needs_approval=True)
    record_action(
        actor=user, action=AuditAction.MEMBER_JOINED, on=invitation.account,
        reference=invitation.email, note=english(Role(invitation.role).label),
    )  # fmt: skip
    email_members(
        account=invitation.account, change=gettext_noop("Invitation accepted"), actor=user,
        facts={"Email": invitation.email, "Role": english(Role(invitation.role).label)},
    )  # fmt: skip
    return user


def _make_user(invitation: Invitation) -> User:
    """The user with the invitation's address, created if needed.

    Usernames are unique, so of two invitations to one address only one makes a user.
    """
    user, is_new = User.objects.select_for_update().get_or_create(
        username=invitation.email, defaults={"email": invitation.email}
    )
    returning = (
        not user.is_active
        and Membership.objects.filter(
            user=user, account=invitation.account, blocked_at=None
        ).exists()
    )
    if not is_new and not returning:
        raise InputProblem(
            _(
                "This email address already signs in here, and a person belongs to one account"
                " only."
                " Ask to be invited at another address."
            )
        )
    return user
