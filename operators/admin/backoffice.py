"""The declarations of the pages of the back office: menu entries of Django's own models."""

from django.contrib.auth.models import Group, User

from core.backoffice.declarations import (
    BackOffice,
    MenuEntry,
    Section,
    StaffRight,
    full_access,
    read_access,
)
from core.backoffice.staff_roles import StaffRole
from core.texts import lazy
from operators.sales.report_files import REPORTS

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
        MenuEntry(Section.SYSTEM, lazy("Staff"), User, "badge"),
        MenuEntry(Section.SYSTEM, lazy("Roles"), Group, "groups"),
    ],
)
