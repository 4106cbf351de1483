"""The declarations of the pages of the back office: entries of the menu, and reports by email."""

from django.contrib.auth.models import Group, User

from core.backoffice.declarations import (
    BackOffice,
    MenuEntry,
    MenuPage,
    Section,
    StaffRight,
    full_access,
    read_access,
)
from core.backoffice.staff_roles import StaffRole
from core.texts import lazy
from operators.sales.report_files import REPORTS, SEES_MARGINS
from topups.fulfilment.transitions import FULFIL


def may_see_margins(user: User) -> bool:
    """Whether this person may see sales and margins."""
    return user.has_perm(SEES_MARGINS)


def may_see_month_end(user: User) -> bool:
    """Whether this person may see the page about the end of a month."""
    return user.has_perm("wallets.view_dailyclose")


def may_see_desk(user: User) -> bool:
    """Whether this person may see the queue of top-up orders, its dashboard and its reports."""
    rights = (FULFIL, "topups.view_fulfilment", "topups.change_fulfilment")
    return any(user.has_perm(right) for right in rights)


def may_read_trail(user: User) -> bool:
    """Whether this person may read the audit trail."""
    return user.has_perm("audit.view_auditentry")


BACK_OFFICE = BackOffice(
    reports=REPORTS,
    staff_rights=[
        StaffRight(Section.SYSTEM, lazy("See staff and roles"), read_access(User, Group)),
        StaffRight(
            Section.SYSTEM,
            lazy("Add staff, give and make roles, and end access"),
            [
                "sign_in.manage_staff",
                *(name for name in full_access(User, Group) if name != "auth.delete_user"),
            ],
            [StaffRole.ADMINISTRATOR],
        ),
    ],
    menu=[
        MenuEntry(Section.SETTINGS, lazy("Staff"), User, "badge"),
        MenuEntry(Section.SETTINGS, lazy("Roles"), Group, "groups"),
    ],
    menu_pages=[
        MenuPage(
            Section.MONEY, lazy("Sales and margins"), "monitoring", "margins", may_see_margins
        ),
        MenuPage(
            Section.MONEY,
            lazy("End of month"),
            "event_available",
            "month_end",
            may_see_month_end,
        ),
        MenuPage(
            Section.REPORTS,
            lazy("Top-up dashboard"),
            "space_dashboard",
            "admin:topups_fulfilment_dashboard",
            may_see_desk,
        ),
        MenuPage(
            Section.REPORTS,
            lazy("Shift report"),
            "assignment",
            "admin:topups_fulfilment_report",
            may_see_desk,
        ),
        MenuPage(
            Section.REPORTS, lazy("Who saw codes"), "visibility", "who_saw_codes", may_read_trail
        ),
    ],
)
