"""Staff by their rights."""

from django.contrib.auth.models import Permission, User
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

NAMED = 5  # people in one sentence


def staff_who_may(*rights: str) -> QuerySet[User]:
    """The active staff with one of these rights, such as `cases.answer_case`.

    Django's `with_perm` looks for the right of each user, and most users are members of merchants.
    """
    named = Q()
    for right in rights:
        app, _, codename = right.partition(".")
        named |= Q(content_type__app_label=app, codename=codename)
    permissions = Permission.objects.filter(named).values("pk")
    of_roles = User.groups.through.objects.filter(group__permissions__in=permissions)
    of_people = User.user_permissions.through.objects.filter(permission__in=permissions)
    return User.objects.filter(
        Q(is_superuser=True)
        | Q(pk__in=of_roles.values("user"))
        | Q(pk__in=of_people.values("user")),
        is_staff=True,
        is_active=True,
    )


def names_of_staff_who_may(right: str, *without: str) -> str:
    """The names of the first people with this right, without some of them, and whether there are
    more; superusers last."""
    others = staff_who_may(right).exclude(username__in=without).order_by("is_superuser", "username")
    names = list(others.values_list("username", flat=True)[: NAMED + 1])
    people = ", ".join(names[:NAMED])
    return _("%(people)s and others") % {"people": people} if len(names) > NAMED else people
