"""The groups of staff.

Every migrate creates missing groups and adds missing permissions. It keeps the permissions
that superusers added to a group.
"""

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import Group, Permission
from django.db.models import Q

from core.backoffice.registry import back_offices
from core.backoffice.staff_roles import StaffRole


def permissions_of(role: StaffRole) -> list[str]:
    """The permissions that the apps declare for a role, as `app.codename`."""
    return [name for app in back_offices() for name in app.permissions.get(role, ())]


def make_roles(**kwargs: Any) -> None:
    """Creates missing groups and adds missing permissions. Safe to run again.

    A receiver of post_migrate: it runs after Django has created the permissions.
    """
    for role in StaffRole:
        group, _ = Group.objects.get_or_create(name=role.value)
        group.permissions.add(*_find(permissions_of(role)))


def _find(names: Sequence[str]) -> list[Permission]:
    conditions = Q()
    for name in names:
        app, _, codename = name.partition(".")
        conditions |= Q(content_type__app_label=app, codename=codename)
    return list(Permission.objects.filter(conditions))
