"""What `operators` declares for the back office (core/backoffice/)."""

from django.contrib.auth.models import Group, User

from core.backoffice.declarations import (
    Alert,
    BackOffice,
    Check,
    Component,
    Expiring,
    Gauges,
    MenuEntry,
    Rights,
    Sealed,
    Section,
    Severity,
    Unit,
    full_access,
)
from core.backoffice.staff_roles import StaffRole
from core.database.sealing import Context
from operators.gauge_reads import read_heartbeats, read_waiting_announcements
from operators.imports.models import open_file, row_of_import
from operators.limits import ALIVE_SECONDS
from operators.models import FileImport, Heartbeat, ReconcileRun
from operators.telegram.models import (
    Announcement,
    AnnouncementRoute,
    PlatformSettings,
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

HEARTBEAT = "voucher_heartbeat_age_seconds"
GAUGES = [
    Gauges(
        {
            HEARTBEAT: "Time since the last sign of life of a process of this kind, on any host;"
            " +Inf if there is none. The bot has no value if no token is set.",
        },
        read_heartbeats,
        labels=["process"],
    ),
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
          JOIN operators_announcement AS announcement ON fulfilment_id = fulfilment.id
         WHERE fulfilment.status IN ('pending', 'processing', 'pending_review')
           AND fulfilment.status = 'pending' AND announcement.state = 'given_up'
        """,
        seconds=15,
    ),
    Gauges(
        {
            "voucher_reconcile_age_seconds": "Time since the last complete run of reconcile began,"
            " or since the installation.",
            "voucher_reconcile_findings": "Findings of that run.",
            "voucher_reconcile_warnings": "Warnings of that run.",
        },
        """
        SELECT extract(epoch FROM now() - coalesce(started_at, min(applied), now())),
               jsonb_array_length(findings), jsonb_array_length(warnings)
          FROM django_migrations
          LEFT JOIN (SELECT started_at, findings, warnings FROM operators_reconcilerun
                      WHERE state IN ('clean', 'findings') AND started_at <= now()
                      ORDER BY started_at DESC LIMIT 1) AS last ON true
         GROUP BY started_at, findings, warnings
        """,
        seconds=30,
    ),
]


def _alive(title: str, process: str, alert: Alert, advice: str) -> Component:
    return Component(
        title=f"{title} last seen",
        gauge=HEARTBEAT,
        labels={"process": process},
        unit=Unit.SECONDS,
        amber=ALIVE_SECONDS / 2,
        red=ALIVE_SECONDS,
        advice=advice,
        alert=alert,
        model=Heartbeat,
        every_exporter=True,
    )


RECONCILE_AGE = Component(
    title="Last complete reconcile",
    gauge="voucher_reconcile_age_seconds",
    unit=Unit.SECONDS,
    amber=26 * 3600,
    red=28 * 3600,  # one day, the longest run, and an hour
    advice="Check that the scheduler and a worker run, and look for reconcile_failed in the"
    " worker's log.",
    alert=Alert(
        "VoucherReconcileOverdue",
        Severity.WARNING,
        "10m",
        "reconcile has not finished for {{ $value | humanizeDuration }}.",
    ),
    model=ReconcileRun,
)
COMPONENTS = [
    _alive(
        "Worker",
        "worker",
        Alert(
            "VoucherWorkerMissing",
            Severity.CRITICAL,
            "30s",
            "No worker has given a sign of life for a minute.",
        ),
        "Refunds, emails and announcements wait. Start a worker on at least one host, and check"
        " that it reaches the broker.",
    ),
    _alive(
        "Scheduler",
        "beat",
        Alert(
            "VoucherSchedulerMissing",
            Severity.CRITICAL,
            "30s",
            "The scheduler has given no sign of life for a minute.",
        ),
        "Refunds and emails that a worker missed wait, and nothing is reconciled or deleted. Start"
        " celery beat on exactly one host, and check that it reaches the broker.",
    ),
    _alive(
        "Telegram bot",
        "bot",
        Alert(
            "VoucherBotMissing",
            Severity.WARNING,
            "1m",
            "The Telegram bot has given no sign of life for a minute.",
        ),
        "Buttons in Telegram do nothing; the desk works. Start manage.py run_bot on exactly one"
        " host.",
    ),
    Component(
        title="Oldest order that waits to be announced",
        gauge="voucher_announcements_oldest_seconds",
        unit=Unit.SECONDS,
        amber=60,
        red=300,
        advice="Work on the orders at the desk. Look for announcement_failed in the worker's log.",
        alert=Alert(
            "VoucherAnnouncementsLate",
            Severity.WARNING,
            "5m",
            "An order has waited to be announced in Telegram for {{ $value | humanizeDuration }}.",
        ),
        model=Announcement,
    ),
    Component(
        title="Pending orders whose announcement was given up",
        gauge="voucher_announcements_given_up",
        unit=Unit.COUNT,
        amber=0,
        red=0,
        advice="Work on the orders at the desk. When Telegram accepts messages again, announce them"
        " again.",
        alert=Alert(
            "VoucherAnnouncementsGivenUp",
            Severity.WARNING,
            "1m",
            "{{ $value }} pending orders will not be announced in Telegram.",
        ),
        model=Announcement,
    ),
    RECONCILE_AGE,
    Component(
        title="Findings of the last reconcile",
        gauge="voucher_reconcile_findings",
        unit=Unit.COUNT,
        amber=0,
        red=0,
        advice="The books contradict each other. Correct nothing until the cause is known, and"
        " tell an administrator.",
        alert=Alert(
            "VoucherReconcileFindings",
            Severity.CRITICAL,
            "1m",
            "The last reconcile found {{ $value }} problems in the books.",
        ),
        model=ReconcileRun,
    ),
]

ALERTS = [
    Alert(
        "VoucherExporterDown",
        Severity.CRITICAL,
        "5m",
        "The exporter at {{ $labels.instance }} does not respond, or Prometheus does not scrape"
        " the gauges.",
        'up{job=~"voucher-.*"} == 0 or absent(voucher_database_up)',
    ),
    Alert(
        "VoucherDatabaseUnreachable",
        Severity.CRITICAL,
        "1m",
        "The database does not respond to the exporter.",
        "max(voucher_database_up) == 0",
    ),
    Alert(
        "VoucherGaugesFailed",
        Severity.WARNING,
        "10m",
        "{{ $value }} groups of gauges cannot be read, so their alerts cannot fire.",
        "max(voucher_gauges_failed) > 0",
    ),
]

ANNOUNCEMENTS = ["operators.announce_again", "operators.view_announcement"]
RUNS = ["operators.view_reconcilerun"]

BACK_OFFICE = BackOffice(
    gauges=GAUGES,
    components=COMPONENTS,
    alerts=ALERTS,
    checks=CHECKS,
    warnings=WARNINGS,
    expiring=[
        Expiring(
            kind="telegram_link_codes",
            table="operators_telegramlinkcode",
            old="expires_at < %(before)s",
            days="sessions",
        ),
        Expiring(
            kind="reconcile_runs",
            table="operators_reconcilerun",
            old="finished_at < %(before)s",
            days="runs",
        ),
        Expiring(
            kind="file_imports",
            table="operators_fileimport",
            old="finished_at < %(before)s",
            days="runs",
        ),
    ],
    sealed=[
        Sealed(
            kind="file_imports",
            table="operators_fileimport",
            column="sealed",
            context=Context.IMPORTED_FILE,
            identity=["token"],
            row=row_of_import,
            check="every file to import opens",
            read=open_file,
        ),
    ],
    rights={
        "operators_announcement": Rights.KEEP,
        "operators_announcementchat": Rights.KEEP,
        "operators_announcementroute": Rights.CHANGE,
        "operators_companyidentity": Rights.CHANGE,
        "operators_fileimport": Rights.CHANGE,
        "operators_heartbeat": Rights.CHANGE,
        "operators_platformsettings": Rights.KEEP,
        "operators_reconcilerun": Rights.CHANGE,
        "operators_telegramlink": Rights.CHANGE,
        "operators_telegramlinkcode": Rights.CHANGE,
    },
    permissions={
        StaffRole.SENIOR_OPERATOR: ANNOUNCEMENTS,
        StaffRole.FINANCE: RUNS,
        StaffRole.CATALOGUE_MANAGER: [
            "operators.view_fileimport",
            "operators.import_codes",
            "operators.import_catalogue",
        ],
        StaffRole.PLATFORM_MANAGER: [
            *ANNOUNCEMENTS,
            *RUNS,
            "operators.change_platformsettings",
            "operators.delete_telegramlink",
            "operators.view_heartbeat",
            "operators.view_platformsettings",
            "operators.view_telegramlink",
            *full_access(AnnouncementRoute),
        ],
    },
    menu=[
        MenuEntry(Section.CATALOGUE, "Imports", FileImport, "upload_file"),
        MenuEntry(Section.TELEGRAM, "Announcements", Announcement, "campaign"),
        MenuEntry(Section.TELEGRAM, "Routes", AnnouncementRoute, "alt_route"),
        MenuEntry(Section.TELEGRAM, "Linked staff", TelegramLink, "contacts"),
        MenuEntry(Section.TELEGRAM, "Telegram settings", PlatformSettings, "tune"),
        MenuEntry(Section.SYSTEM, "Reconcile runs", ReconcileRun, "fact_check"),
        MenuEntry(Section.SYSTEM, "Staff", User, "badge"),
        MenuEntry(Section.SYSTEM, "Groups", Group, "groups"),
    ],
)
