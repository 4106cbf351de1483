"""What the search field finds in `merchants`: people and invitations, by their email address."""

from collections.abc import Iterable

from config.finders import MAX_FOUND, Finder
from merchants.models import Invitation, Membership


def _members(text: str) -> Iterable[Membership]:
    if "@" not in text:
        return []
    people = Membership.objects.select_related("user", "account")
    return people.filter(user__email__icontains=text).order_by("user__email", "pk")[:MAX_FOUND]


def _invitations(text: str) -> Iterable[Invitation]:
    if "@" not in text:
        return []
    open_ones = Invitation.objects.filter(accepted_at=None, withdrawn_at=None)
    found = open_ones.filter(email__icontains=text).select_related("account")
    return found.order_by("email", "pk")[:MAX_FOUND]


FINDERS = [
    Finder(
        "Member",
        Membership,
        _members,
        lambda member: (member.user.email, f"{member.get_role_display()}, {member.account}"),
    ),
    Finder(
        "Invitation",
        Invitation,
        _invitations,
        lambda invitation: (invitation.email, str(invitation.account)),
    ),
]
