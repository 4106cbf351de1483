"""The declarations of warnings for the back office (core/backoffice/)."""

from core.backoffice.declarations import (
    BackOffice,
    Expiring,
    MenuEntry,
    Personal,
    Rights,
    Section,
    StaffRight,
    Whose,
    read_access,
)
from core.backoffice.staff_roles import StaffRole
from core.texts import lazy
from operators.warnings.models import StaffWarning, WarningRule

BACK_OFFICE = BackOffice(
    expiring=[
        Expiring(
            kind="warning_posts",
            table="warnings_warningpost",
            old="created_at < %(before)s",
            days="runs",
        ),
        Expiring(
            kind="warnings",
            table="warnings_staffwarning",
            old="ended_at < %(before)s",
            days="runs",
        ),
    ],
    personal=[
        Personal(
            "warnings_warningrule_people",
            Whose.STAFF,
            "who receives a warning",
            context=["warningrule_id"],
            find="user_id = ANY(%(users)s)",
            delete="DELETE",
        ),
        Personal(
            "warnings_warningpost",
            Whose.STAFF,
            "messages to a person in Telegram",
            columns=["lines"],
            find="user_id = ANY(%(users)s)",
            delete="DELETE",
        ),
        Personal(
            "warnings_staffwarning",
            Whose.STAFF,
            "what a person did unusually often",
            withheld=["text", "subject", "path"],
            kept="everything, until it expires",
        ),
    ],
    rights={
        "warnings_staffwarning": Rights.CHANGE,
        "warnings_warningpost": Rights.CHANGE,
        "warnings_warningrule": Rights.CHANGE,
        "warnings_warningrule_people": Rights.CHANGE,
        "warnings_warningrule_roles": Rights.CHANGE,
    },
    staff_rights=[
        StaffRight(
            Section.SYSTEM,
            lazy("See warnings"),
            read_access(StaffWarning),
            [
                StaffRole.ADMINISTRATOR,
                StaffRole.MERCHANT_MANAGER,
                StaffRole.SUPPORT,
                StaffRole.STOCK_KEEPER,
                StaffRole.FINANCE,
                StaffRole.SENIOR_OPERATOR,
            ],
        ),
        StaffRight(
            Section.SYSTEM,
            lazy("Choose limits and receivers of warnings"),
            [*read_access(WarningRule), "warnings.change_warningrule"],
            [StaffRole.ADMINISTRATOR],
        ),
    ],
    menu=[
        MenuEntry(Section.SYSTEM, lazy("Warnings"), StaffWarning, "campaign"),
        MenuEntry(Section.SETTINGS, lazy("Warning rules"), WarningRule, "tune"),
    ],
)
