"""The groups that staff are put into; they are there after every migrate.

A group gets the permissions it lacks and keeps what somebody added to it.
"""

from typing import Any

from django.contrib.auth.models import Group, Permission
from django.db.models import Q

OPERATOR = "Operator"
SENIOR_OPERATOR = "Senior operator"
FINANCE = "Finance"
CATALOGUE_MANAGER = "Catalogue manager"
PLATFORM_MANAGER = "Platform manager"

ROLES = {
    OPERATOR: ["topups.fulfil", "topups.view_fulfilment"],
    SENIOR_OPERATOR: [
        "operators.announce_again",
        "operators.view_announcement",
        "topups.fulfil",
        "topups.decide_review",
        "topups.view_fulfilment",
    ],
    FINANCE: [
        "accounts.view_account",
        "accounts.view_apiclient",
        "orders.view_order",
        "topups.view_fulfilment",
        "wallets.move_money",
        "wallets.view_ledgerentry",
        "wallets.view_wallet",
    ],
    CATALOGUE_MANAGER: [
        f"{app}.{verb}_{model}"
        for app, model in (
            ("catalogue", "category"),
            ("catalogue", "product"),
            ("catalogue", "variation"),
            ("catalogue", "shelf"),
            ("catalogue", "referencelink"),
            ("topups", "topupproduct"),
            ("topups", "topupfield"),
            ("topups", "topupfieldoption"),
        )
        for verb in ("view", "add", "change", "delete")
    ],
    PLATFORM_MANAGER: [
        "accounts.view_account",
        "catalogue.view_category",
        "merchants.add_invitation",
        "merchants.view_invitation",
        "merchants.view_email",
        "merchants.view_membership",
        "operators.announce_again",
        "operators.change_platformsettings",
        "operators.delete_telegramlink",
        "operators.view_announcement",
        "operators.view_platformsettings",
        "operators.view_telegramlink",
        "topups.view_topupproduct",
        *(f"operators.{verb}_announcementroute" for verb in ("view", "add", "change", "delete")),
    ],
}


def make_roles(**kwargs: Any) -> None:
    """Adds the groups, and the permissions that they lack. Safe to run again; a post_migrate
    receiver, which runs once the permissions themselves are there."""
    for name, permissions in ROLES.items():
        group, _ = Group.objects.get_or_create(name=name)
        group.permissions.add(*_find(permissions))


def _find(names: list[str]) -> list[Permission]:
    wanted = Q()
    for name in names:
        app, _, codename = name.partition(".")
        wanted |= Q(content_type__app_label=app, codename=codename)
    return list(Permission.objects.filter(wanted))
