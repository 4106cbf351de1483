"""What `merchants` declares for the back office (config/backoffice.py)."""

from config.backoffice import BackOffice, MenuEntry, Section, StaffRole
from merchants.models import Email, Invitation, Membership

BACK_OFFICE = BackOffice(
    triggers=["merchants_members_are_not_staff", "merchants_staff_are_not_members"],
    permissions={
        StaffRole.PLATFORM_MANAGER: [
            "merchants.add_invitation",
            "merchants.view_invitation",
            "merchants.view_email",
            "merchants.view_membership",
        ],
    },
    menu=[
        MenuEntry(Section.MERCHANTS, "People", Membership, "groups_2"),
        MenuEntry(Section.MERCHANTS, "Invitations", Invitation, "person_add"),
        MenuEntry(Section.SYSTEM, "Emails", Email, "outgoing_mail"),
    ],
)
