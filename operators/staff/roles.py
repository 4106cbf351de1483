"""The roles of staff: the groups that `migrate` makes, and their rights in words.

Every migrate creates missing groups and adds missing permissions. It keeps the permissions that
were added to a group, and the groups of earlier versions (`FORMER_ROLES`).
"""

from collections.abc import Iterable, Sequence
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group, Permission
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import override

from core.backoffice.declarations import Section, StaffRight
from core.backoffice.registry import back_offices
from core.backoffice.staff_roles import StaffRole
from core.texts import english, lazy

# What Django lets people do with the rows of a model. Other permissions are translated as a whole.
USUAL = {
    "add": lazy("Can add"),
    "change": lazy("Can change"),
    "delete": lazy("Can delete"),
    "view": lazy("Can view"),
}


def staff_rights() -> list[StaffRight]:
    """All rights, in the order of the menu's sections."""
    rights = [right for app in back_offices() for right in app.staff_rights]
    return sorted(rights, key=lambda right: list(Section).index(right.section))


def name_of_right(right: StaffRight) -> str:
    """The right's name in forms."""
    return slugify(english(right.words))


def permissions_of(role: StaffRole) -> list[str]:
    """The permissions of a role, as `app.codename`. An auditor may view everything."""
    rights = staff_rights()
    names = [name for right in rights if role in right.roles for name in right.permissions]
    if role is StaffRole.AUDITOR:
        names += [name for right in rights for name in right.permissions if ".view_" in name]
    return list(dict.fromkeys(names))


def make_roles(**kwargs: Any) -> None:
    """Creates missing groups and adds missing permissions. Safe to run again.

    A receiver of post_migrate: it runs after Django has created the permissions.
    """
    for role in StaffRole:
        group = Group.objects.get_or_create(name=role.value)[0]
        group.permissions.add(*_find(permissions_of(role)))


def rights_of(group: Group) -> list[StaffRight]:
    """The rights whose permissions the group has."""
    has = _names(group.permissions.all())
    return [right for right in staff_rights() if has.issuperset(right.permissions)]


def set_rights(group: Group, rights: Iterable[StaffRight]) -> None:
    """Gives the group these rights and no other. Keeps permissions that belong to no right."""
    in_words = {name for right in staff_rights() for name in right.permissions}
    others = _names(group.permissions.all()) - in_words
    wanted = {name for right in rights for name in right.permissions}
    group.permissions.set(_find([*wanted, *others]))


def name_of(group: Group) -> str:
    """The role on pages. The name of a built-in one is stored in English, and translated."""
    return _(group.name) if is_built_in(group) else group.name


def names_of_built_in() -> set[str]:
    """The names of the built-in roles in each language, in small letters."""
    names = set()
    for language, _name in settings.LANGUAGES:
        with override(language):
            names |= {_(role.value).casefold() for role in StaffRole}
    return names


def name_of_permission(permission: Permission) -> str:
    """The permission on pages, such as "account: Can add". Its name is stored in English."""
    of = permission.content_type
    model = of.model_class()
    kind = of.model if model is None else model._meta.verbose_name
    action, _separator, what = permission.codename.partition("_")
    words = USUAL[action] if what == of.model and action in USUAL else _(permission.name)
    return f"{kind}: {words}"


def describe(group: Group) -> str:
    """The work of people with this role: two sentences, or the rights of a role made here."""
    if is_built_in(group):
        return str(StaffRole(group.name).description)
    words = [str(right.words) for right in rights_of(group)]
    return f"{'. '.join(words)}." if words else _("Gives no right.")


def is_built_in(group: Group) -> bool:
    """Whether the service made the role, and adds the rights of new versions to it."""
    return group.name in {role.value for role in StaffRole}


def _names(permissions: Iterable[Permission]) -> set[str]:
    known = Permission.objects.filter(pk__in=[one.pk for one in permissions])
    pairs = known.values_list("content_type__app_label", "codename")
    return {f"{app}.{codename}" for app, codename in pairs}


def _find(names: Sequence[str]) -> list[Permission]:
    codenames = {name.partition(".")[2] for name in names}
    found = Permission.objects.select_related("content_type").filter(codename__in=codenames)
    return [one for one in found if f"{one.content_type.app_label}.{one.codename}" in names]
