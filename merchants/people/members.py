"""Lists the members of an account, changes their roles and removes them."""

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import Account, SecondFactor
from audit.models import AuditAction
from audit.services import record_action
from core.inputs import InputProblem
from core.texts import english
from merchants.email.outbox import email_members
from merchants.models import Invitation, MemberSession, Membership, Role
from merchants.people.sessions import end_member_sessions


def members_of(account: Account) -> QuerySet[Membership]:
    """The account's active members, longest-standing first."""
    return members_and_blocked(account).filter(user__is_active=True)


def members_and_blocked(account: Account) -> QuerySet[Membership]:
    """The account's members, with those whom staff have blocked, longest-standing first."""
    in_account = Q(user__is_active=True) | Q(blocked_at__isnull=False)
    members = Membership.objects.filter(in_account, account=account)
    return members.select_related("user").order_by("pk")


@transaction.atomic
def change_role(*, membership: Membership, role: Role, actor: User) -> Membership:
    """Changes a member's role.

    Raises InputProblem if no owner would be left or the person is no longer a member.
    """
    member = _lock(membership)
    if role is not Role.OWNER:
        _keep_an_owner(member)
    before, member.role = Role(member.role), role
    member.save(update_fields=["role"])
    _record_and_email(
        member, AuditAction.MEMBER_CHANGED, gettext_noop("Role changed"), actor,
        {"Person": member.user.email, "From": english(before.label), "To": english(role.label)},
    )  # fmt: skip
    return member


@transaction.atomic
def remove_member(*, membership: Membership, actor: User) -> Membership:
    """Deactivates a member's user, which ends their sessions, and withdraws their invitations.

    The user stays in the database because the audit trail names it. Raises InputProblem if no
    owner would be left or the person is no longer a member.
    """
    member = _lock(membership)
    _keep_an_owner(member)
    unanswered = Invitation.objects.filter(accepted_at=None, withdrawn_at=None)
    unanswered.filter(invited_by=member.user).update(withdrawn_at=timezone.now())
    member.user.is_active = False
    member.user.save(update_fields=["is_active"])
    _record_and_email(
        member, AuditAction.MEMBER_REMOVED, gettext_noop("Person removed"), actor,
        {"Person": member.user.email, "Role": english(Role(member.role).label)},
    )  # fmt: skip
    return member


@transaction.atomic
def block_member(*, membership: Membership, actor: User, reason: str) -> Membership:
    """Switches a member off until staff unblock them, also the last owner. Their sessions end.

    Raises InputProblem if the person is no longer a member.
    """
    member = _lock(membership)
    member.blocked_at = timezone.now()
    member.save(update_fields=["blocked_at"])
    member.user.is_active = False
    member.user.save(update_fields=["is_active"])
    end_member_sessions(MemberSession.objects.filter(user=member.user))
    _record_and_email(
        member, AuditAction.MEMBER_CHANGED, gettext_noop("Person blocked"), actor,
        {"Person": member.user.email, "Reason": reason},
    )  # fmt: skip
    return member


@transaction.atomic
def unblock_member(*, membership: Membership, actor: User) -> bool:
    """Lets a blocked member sign in again. Returns False if the person is not blocked."""
    rows = Membership.objects.filter(pk=membership.pk, blocked_at__isnull=False)
    if not rows.update(blocked_at=None):
        return False
    member = Membership.objects.select_related("user", "account").get(pk=membership.pk)
    member.user.is_active = True
    member.user.save(update_fields=["is_active"])
    _record_and_email(
        member,
        AuditAction.MEMBER_CHANGED,
        gettext_noop("Person unblocked"),
        actor,
        {"Person": member.user.email},
    )
    return True


@transaction.atomic
def require_factors(*, account: Account, required: bool, actor: User) -> bool:
    """Decides whether every member of the account must have a second factor.

    Returns False if it was so already. Members without one set it up on the next page they open.
    """
    rows = Account.objects.filter(pk=account.pk, needs_factors=not required)
    if not rows.update(needs_factors=required):
        return False
    change = (
        gettext_noop("Second factor required of everybody")
        if required
        else gettext_noop("Second factor no longer required of everybody")
    )
    note = change.removesuffix(" of everybody")
    record_action(
        actor=actor, action=AuditAction.ACCOUNT_CHANGED, on=account, note=note,
        changes={"needs_factors": (not required, required)},
    )  # fmt: skip
    email_members(account=account, change=change, actor=actor)
    return True


def must_have_factor(user: User) -> bool:
    """Whether the owners of this member's account require a second factor."""
    membership = membership_of(user)
    return membership is not None and membership.account.needs_factors


def membership_of(user: User) -> Membership | None:
    """The person's membership and its account. A request reads them once."""
    if not hasattr(user, "membership_read"):
        rows = Membership.objects.select_related("account").filter(user=user)
        user.membership_read = rows.first()  # type: ignore[attr-defined]
    membership: Membership | None = user.membership_read  # type: ignore[attr-defined]
    return membership


def with_factors(members: QuerySet[Membership]) -> QuerySet[Any]:
    """Adds `has_factor` to each member."""
    factors = SecondFactor.objects.filter(user=OuterRef("user"), confirmed=True)
    return members.annotate(has_factor=Exists(factors))


def _lock(membership: Membership) -> Membership:
    """The current row, read under the account's lock.

    The lock serialises changes to an account's members. Without it, two owners could remove each
    other and leave the account without an owner.
    """
    Account.objects.select_for_update(no_key=True).get(pk=membership.account_id)
    member = members_of(membership.account).filter(pk=membership.pk).first()
    if member is None:
        raise InputProblem(_("This person is no longer a member."))
    return member


def _keep_an_owner(member: Membership) -> None:
    owners = members_of(member.account).filter(role=Role.OWNER)
    if member.role == Role.OWNER and not owners.exclude(pk=member.pk).exists():
        raise InputProblem(
            _("An account needs at least one owner. Make another member owner first.")
        )


def _record_and_email(
    member: Membership, action: AuditAction, change: str, actor: User, facts: dict[str, str]
) -> None:
    lines = [f"{name}: {value}" for name, value in facts.items() if name != "Person"]
    # Other actions name the change themselves.
    note = ", ".join([change, *lines] if action == AuditAction.MEMBER_CHANGED else lines)
    record_action(actor=actor, action=action, on=member, reference=member.user.email, note=note)
    email_members(account=member.account, change=change, actor=actor, facts=facts)
