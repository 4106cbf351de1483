"""The declarations of the operators' chat for the back office (core/backoffice/)."""

from django.conf import settings
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_noop

from core.backoffice.declarations import (
    Alert,
    BackOffice,
    Check,
    Component,
    Expiring,
    Gauges,
    MenuEntry,
    Personal,
    Rights,
    Section,
    Severity,
    StaffRight,
    Unit,
    Whose,
    full_access,
    read_access,
)
from core.backoffice.staff_roles import StaffRole
from core.texts import lazy
from operators.telegram.chats import read_platform
from operators.telegram.models import (
    Announcement,
    AnnouncementRoute,
    AnnouncementState,
    PlatformSettings,
    TelegramLink,
)
from topups.models import Fulfilment, FulfilmentStatus

MOST_WAITING = 1000  # orders; more than these are not counted

CHECKS = [
    Check(
        gettext_noop("an ended announcement belongs to an ended order"),
        """
        SELECT format('the announcement of order %s in chat %s is ended, but the order is %s',
                      order_reference, chat_id, fulfilment.status)
          FROM telegram_announcement AS announcement
          JOIN topups_fulfilment AS fulfilment ON fulfilment.id = announcement.fulfilment_id
         WHERE announcement.state = 'ended' AND fulfilment.status NOT IN ('completed', 'failed')
           /*period AND announcement.id IN_IDS telegram_announcement*/
        """,
    ),
    Check(
        gettext_noop("each given-up announcement has an audit entry"),
        """
        SELECT format('the announcement of order %s was given up, and no audit entry says why',
                      order_reference)
          FROM telegram_announcement AS announcement
          JOIN topups_fulfilment AS fulfilment ON fulfilment.id = announcement.fulfilment_id
         WHERE announcement.state = 'given_up'
           AND NOT EXISTS (SELECT FROM audit_auditentry
                            WHERE object_type = 'telegram.announcement'
                              AND object_id = announcement.id::text
                              AND action = 'announcement_given_up')
           /*period AND announcement.id IN_IDS telegram_announcement*/
        """,
    ),
]

WARNINGS = [
    Check(
        gettext_noop("no pending order was given up in Telegram"),
        """
        SELECT format('order %s is not announced in Telegram: %s', order_reference, last_error)
          FROM telegram_announcement AS announcement
          JOIN topups_fulfilment AS fulfilment ON fulfilment.id = announcement.fulfilment_id
         WHERE announcement.state = 'given_up' AND fulfilment.status = 'pending'
         ORDER BY fulfilment.created_at
        """,
    ),
]


def read_waiting_announcements() -> list[tuple[int, float]]:
    """The number of orders that should be announced by now, and the oldest's age in seconds."""
    now, platform = timezone.now(), read_platform()
    if not settings.TELEGRAM_BOT_TOKEN or not platform.announces(now):
        return [(0, 0)]
    not_posted = Q(announcement=None) | Q(
        announcement__state__in=[AnnouncementState.WAITING, AnnouncementState.SENDING]
    )
    orders = (
        Fulfilment.objects.filter(
            not_posted, status=FulfilmentStatus.PENDING, product__announce=True
        )
        .order_by("created_at")
        .values_list("created_at", "product_id", "product__category_id")[:MOST_WAITING]
    )
    waiting = [
        created_at
        for created_at, product, category in orders
        if platform.target_of(product_id=product, category_id=category)
    ]
    return [(len(waiting), (now - waiting[0]).total_seconds() if waiting else 0)]


GAUGES = [
    Gauges(
        {
            "voucher_announcements_waiting": "Orders that wait to be announced in Telegram; 0 in"
            " quiet hours.",
            "voucher_announcements_oldest_seconds": "Age of the oldest of them; 0 if there is"
            " none.",
        },
        read_waiting_announcements,
        seconds=15,
    ),
    Gauges(
        {"voucher_announcements_given_up": "Pending orders whose announcement was given up."},
        """
        SELECT count(*) FROM topups_fulfilment AS fulfilment
          JOIN telegram_announcement AS announcement ON fulfilment_id = fulfilment.id
         WHERE fulfilment.status IN ('pending', 'processing', 'pending_review')
           AND fulfilment.status = 'pending' AND announcement.state = 'given_up'
        """,
        seconds=15,
    ),
]

COMPONENTS = [
    Component(
        title=lazy("Oldest order that waits to be announced"),
        gauge="voucher_announcements_oldest_seconds",
        unit=Unit.SECONDS,
        amber=60,
        red=300,
        advice=lazy(
            "Work on the orders at the desk. Look for announcement_failed in the worker's log."
        ),
        alert=Alert(
            "VoucherAnnouncementsLate",
            Severity.WARNING,
            "5m",
            "An order has waited to be announced in Telegram for {{ $value | humanizeDuration }}.",
        ),
        model=Announcement,
    ),
    Component(
        title=lazy("Pending orders whose announcement was given up"),
        gauge="voucher_announcements_given_up",
        unit=Unit.COUNT,
        amber=0,
        red=0,
        advice=lazy(
            "Work on the orders at the desk. When Telegram accepts messages again, announce them"
            " again."
        ),
        alert=Alert(
            "VoucherAnnouncementsGivenUp",
            Severity.WARNING,
            "1m",
            "{{ $value }} pending orders will not be announced in Telegram.",
        ),
        model=Announcement,
    ),
]


BACK_OFFICE = BackOffice(
    gauges=GAUGES,
    components=COMPONENTS,
    checks=CHECKS,
    warnings=WARNINGS,
    expiring=[
        Expiring(
            kind="telegram_link_codes",
            table="telegram_telegramlinkcode",
            old="expires_at < %(before)s",
            days="sessions",
        ),
    ],
    personal=[
        Personal(
            "telegram_telegramlinkcode",
            Whose.STAFF,
            "links an account of Telegram once",
            withheld=["digest"],
            find="user_id = ANY(%(users)s)",
            delete="DELETE",
        ),
        Personal(
            "telegram_telegramlink",
            Whose.STAFF,
            "who acts in Telegram",
            columns=["telegram_user_id"],
            context=["linked_at"],
            find="user_id = ANY(%(users)s)",
            delete="DELETE",
        ),
        Personal(
            "telegram_announcement",
            Whose.STAFF,
            "whom a message asks to confirm",
            withheld=["asks"],
            kept="the username, until the message shows its usual buttons again",
        ),
    ],
    rights={
        "telegram_announcement": Rights.KEEP,
        "telegram_announcementchat": Rights.KEEP,
        "telegram_announcementroute": Rights.CHANGE,
        "telegram_platformsettings": Rights.KEEP,
        "telegram_telegramlink": Rights.CHANGE,
        "telegram_telegramlinkcode": Rights.CHANGE,
    },
    staff_rights=[
        StaffRight(
            Section.TELEGRAM,
            lazy("See announcements, and announce an order again"),
            ["telegram.announce_again", *read_access(Announcement)],
            [StaffRole.ADMINISTRATOR, StaffRole.SENIOR_OPERATOR],
        ),
        StaffRight(
            Section.TELEGRAM,
            lazy("Change the chats and what they receive"),
            [
                "telegram.change_platformsettings",
                *read_access(PlatformSettings),
                *full_access(AnnouncementRoute),
            ],
            [StaffRole.ADMINISTRATOR],
        ),
        StaffRight(
            Section.TELEGRAM,
            lazy("See which staff are linked, and end their links"),
            ["telegram.delete_telegramlink", *read_access(TelegramLink)],
            [StaffRole.ADMINISTRATOR],
        ),
    ],
    menu=[
        MenuEntry(Section.TELEGRAM, lazy("Announcements"), Announcement, "campaign"),
        MenuEntry(Section.TELEGRAM, lazy("Routes"), AnnouncementRoute, "alt_route"),
        MenuEntry(Section.TELEGRAM, lazy("Linked staff"), TelegramLink, "contacts"),
        MenuEntry(Section.TELEGRAM, lazy("Telegram settings"), PlatformSettings, "tune"),
    ],
)
