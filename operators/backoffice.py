"""What `operators` declares for the back office (config/backoffice.py)."""

from django.contrib.auth.models import Group, User

from config.backoffice import BackOffice, Check, MenuEntry, Section, StaffRole, full_access
from operators.models import (
    Announcement,
    AnnouncementRoute,
    PlatformSettings,
    ReconcileRun,
    TelegramLink,
)

CHECKS = [
    Check(
        "an ended announcement belongs to an ended order",
        """
        SELECT format('the announcement of order %s in chat %s is ended, but the order is %s',
                      order_reference, chat_id, fulfilment.status)
          FROM operators_announcement AS announcement
          JOIN topups_fulfilment AS fulfilment ON fulfilment.id = announcement.fulfilment_id
         WHERE announcement.state = 'ended' AND fulfilment.status NOT IN ('completed', 'failed')
        """,
    ),
    Check(
        "each given-up announcement has an audit entry",
        """
        SELECT format('the announcement of order %s was given up, and no audit entry says why',
                      order_reference)
          FROM operators_announcement AS announcement
          JOIN topups_fulfilment AS fulfilment ON fulfilment.id = announcement.fulfilment_id
         WHERE announcement.state = 'given_up'
           AND NOT EXISTS (SELECT FROM audit_auditentry
                            WHERE object_type = 'operators.announcement'
                              AND object_id = announcement.id::text
                              AND action = 'announcement_given_up')
        """,
    ),
]

WARNINGS = [
    Check(
        "no pending order was given up in Telegram",
        """
        SELECT format('order %s is not announced in Telegram: %s', order_reference, last_error)
          FROM operators_announcement AS announcement
          JOIN topups_fulfilment AS fulfilment ON fulfilment.id = announcement.fulfilment_id
         WHERE announcement.state = 'given_up' AND fulfilment.status = 'pending'
         ORDER BY fulfilment.created_at
        """,
    ),
]

ANNOUNCEMENTS = ["operators.announce_again", "operators.view_announcement"]
RUNS = ["operators.view_reconcilerun"]

BACK_OFFICE = BackOffice(
    checks=CHECKS,
    warnings=WARNINGS,
    permissions={
        StaffRole.SENIOR_OPERATOR: ANNOUNCEMENTS,
        StaffRole.FINANCE: RUNS,
        StaffRole.PLATFORM_MANAGER: [
            *ANNOUNCEMENTS,
            *RUNS,
            "operators.change_platformsettings",
            "operators.delete_telegramlink",
            "operators.view_platformsettings",
            "operators.view_telegramlink",
            *full_access(AnnouncementRoute),
        ],
    },
    menu=[
        MenuEntry(Section.TELEGRAM, "Announcements", Announcement, "campaign"),
        MenuEntry(Section.TELEGRAM, "Routes", AnnouncementRoute, "alt_route"),
        MenuEntry(Section.TELEGRAM, "Linked staff", TelegramLink, "contacts"),
        MenuEntry(Section.TELEGRAM, "Platform settings", PlatformSettings, "tune"),
        MenuEntry(Section.SYSTEM, "Reconcile runs", ReconcileRun, "fact_check"),
        MenuEntry(Section.SYSTEM, "Staff", User, "badge"),
        MenuEntry(Section.SYSTEM, "Groups", Group, "groups"),
    ],
)
