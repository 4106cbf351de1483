"""The declarations of `merchants` for the back office (core/backoffice/)."""

from collections.abc import Iterable

from django.utils.translation import gettext_noop

from audit.models import AuditAction
from core.backoffice.declarations import (
    Alert,
    BackOffice,
    Check,
    Component,
    Expiring,
    Finder,
    Gauges,
    MenuEntry,
    Personal,
    Rights,
    Sealed,
    Section,
    Severity,
    StaffRight,
    Unit,
    Whose,
    ids_of,
    read_access,
)
from core.backoffice.search import MAX_HITS
from core.backoffice.staff_roles import StaffRole
from core.database.sealing import Context
from core.texts import lazy
from merchants.frame.prepared_files import open_part, open_request, row_of_file, row_of_part
from merchants.models import Email, EmailedReport, Invitation, Membership
from merchants.money.reports import REPORTS
from wallets.models import Wallet

GAUGES = [
    Gauges(
        {
            "voucher_emails_waiting": "Emails that have not been sent yet.",
            "voucher_emails_oldest_seconds": "Age of the oldest of them; 0 if there is none.",
        },
        """
        SELECT count(*), coalesce(extract(epoch FROM now() - min(created_at)), 0)
          FROM merchants_email WHERE sent_at IS NULL AND given_up_at IS NULL
        """,
    )
]
COMPONENTS = [
    Component(
        title=lazy("Oldest email that waits to be sent"),
        gauge="voucher_emails_oldest_seconds",
        unit=Unit.SECONDS,
        amber=120,
        red=900,
        advice=lazy(
            "Check that a worker is running, and look for email_not_sent in its log: it names"
            " what the mail server said."
        ),
        alert=Alert(
            "VoucherEmailsLate",
            Severity.WARNING,
            "5m",
            "An email has waited for {{ $value | humanizeDuration }}.",
        ),
        model=Email,
    )
]


def _members(text: str) -> Iterable[Membership]:
    if "@" not in text:
        return []
    people = Membership.objects.select_related("user", "account")
    return people.filter(user__email__icontains=text).order_by("user__email", "pk")[:MAX_HITS]


def _invitations(text: str) -> Iterable[Invitation]:
    if "@" not in text:
        return []
    waiting = Invitation.objects.filter(accepted_at=None, withdrawn_at=None)
    rows = waiting.filter(email__icontains=text).select_related("account")
    return rows.order_by("email", "pk")[:MAX_HITS]


FINDERS = [
    Finder(
        lazy("Member"),
        Membership,
        _members,
        lambda member: (member.user.email, f"{member.get_role_display()}, {member.account}"),
    ),
    Finder(
        lazy("Invitation"),
        Invitation,
        _invitations,
        lambda invitation: (invitation.email, str(invitation.account)),
    ),
]

CHECKS = [
    Check(
        gettext_noop("no blocked member can sign in"),
        """
        SELECT format('member %s is blocked and can sign in', member.id)
          FROM merchants_membership AS member JOIN auth_user ON auth_user.id = user_id
         WHERE blocked_at IS NOT NULL AND is_active
        """,
    ),
]

PROPOSAL_KEPT = "the company, and who proposed and decided"

BACK_OFFICE = BackOffice(
    reports=REPORTS,
    checks=CHECKS,
    gauges=GAUGES,
    components=COMPONENTS,
    triggers=["merchants_members_are_not_staff", "merchants_staff_are_not_members"],
    expiring=[
        Expiring(
            kind="emails",
            table="merchants_email",
            old="sent_at < %(before)s OR given_up_at < %(before)s",
            days="emails",
        ),
        Expiring(
            kind="invitations",
            table="merchants_invitation",
            old="created_at < %(before)s AND expires_at < %(before)s",
            days="invitations",
        ),
        Expiring(
            kind="places_of_sessions",
            table="merchants_membersession",
            old="EXISTS (SELECT FROM django_session AS session"
            " WHERE session.session_key = session_id AND session.expire_date < %(before)s)",
            days="sessions",
        ),
        Expiring(
            kind="sessions",
            table="django_session",
            old="expire_date < %(before)s AND NOT EXISTS (SELECT FROM merchants_membersession"
            " WHERE session_id = session_key)",
            days="sessions",
            key="session_key",
            start="",
        ),
    ],
    sealed=[
        Sealed(
            kind="prepared_files",
            table="merchants_preparedfile",
            column="sealed",
            context=Context.PREPARED_FILE,
            identity=["token"],
            row=row_of_file,
            check=gettext_noop("every request for a prepared file opens"),
            read=open_request,
        ),
        Sealed(
            kind="prepared_parts",
            table="merchants_preparedpart",
            column="sealed",
            context=Context.PREPARED_FILE,
            identity=["token", "number"],
            row=row_of_part,
            check=gettext_noop("every part of a prepared file opens"),
            read=open_part,
            at_once=10,
        ),
    ],
    personal=[
        Personal(
            "merchants_membersession",
            Whose.MEMBERS,
            "shows a person where they are signed in",
            columns=["address", "device"],
            context=["began_at", "seen_at"],
            find="user_id = ANY(%(users)s)",
            delete="DELETE",
        ),
        Personal(
            "django_session",
            Whose.BOTH,
            "who is signed in",
            withheld=["session_key", "session_data"],
            find="session_key IN (SELECT session_id FROM merchants_membersession"
            " WHERE user_id = ANY(%(users)s))",
            delete="DELETE",
        ),
        Personal(
            "merchants_membership",
            Whose.MEMBERS,
            "who acted for an account",
            context=["account_id", "role", "created_at"],
            find="user_id = ANY(%(users)s)",
            delete="blocked_at = NULL",
            kept="the row: it says for which account the audit trail's actor acted",
        ),
        Personal(
            "merchants_invitation",
            Whose.ADDRESSES,
            "who may join an account",
            columns=["email"],
            context=["account_id", "role", "created_at", "expires_at", "accepted_at"],
            find="lower(email) = ANY(%(emails)s)",
            delete="DELETE",
        ),
        Personal(
            "merchants_email",
            Whose.ADDRESSES,
            "emails that are sent, or were",
            columns=["to"],
            withheld=["facts"],
            context=["kind", "created_at", "sent_at"],
            find='"to" = ANY(%(emails)s)',
            delete="DELETE",
            kept="emails to others that name the person, until they expire",
        ),
        Personal(
            "merchants_sentreport",
            Whose.BOTH,
            "for which days a report was sent",
            context=["first_day"],
            find="report_id IN (SELECT id FROM merchants_emailedreport"
            " WHERE user_id = ANY(%(users)s))",
            delete="DELETE",
        ),
        Personal(
            "merchants_emailedreport",
            Whose.BOTH,
            "which reports a person receives",
            columns=["kind"],
            context=["every", "created_at"],
            find="user_id = ANY(%(users)s)",
            delete="DELETE",
        ),
        Personal(
            "merchants_companyproposal",
            Whose.CONTACTS,
            "company data that an owner proposed",
            columns=["contact"],
            withheld=["legal_name", "address", "country", "tax_number", "answer"],
            context=["account_id", "proposed_at"],
            find="lower(contact) = ANY(%(names)s)",
            delete="contact = ''",
            kept=PROPOSAL_KEPT,
        ),
        Personal(
            "merchants_companyproposal",
            Whose.CONTACTS,
            "a receiver of bills that an owner proposed",
            columns=["billing_email"],
            context=["account_id", "proposed_at"],
            find="lower(billing_email) = ANY(%(emails)s)",
            delete="billing_email = ''",
            kept=PROPOSAL_KEPT,
        ),
        Personal(
            "auth_user",
            Whose.BOTH,
            "who signs in, and to which address emails go",
            columns=["username", "first_name", "last_name", "email"],
            withheld=["password"],
            context=["is_staff", "is_active", "date_joined", "last_login"],
            find="id = ANY(%(users)s)",
            # A member's username is an email address.
            delete="first_name = '', last_name = '', email = '', password = '!',"
            " is_superuser = false, username = CASE WHEN is_staff OR NOT EXISTS (SELECT"
            " FROM merchants_membership WHERE user_id = auth_user.id) THEN username"
            " ELSE 'deleted ' || id END",
            kept="the row, which the audit trail names, and the last sign-in: after one, two"
            " administrators must agree to change a name or an address. The username of staff, too:"
            " the ledger names it, and nobody else may get it",
        ),
    ],
    rights={
        "merchants_balancealert": Rights.CHANGE,
        "merchants_bookkey": Rights.KEEP,
        "merchants_companyproposal": Rights.KEEP,
        "merchants_email": Rights.CHANGE,
        "merchants_emailedreport": Rights.CHANGE,
        "merchants_invitation": Rights.CHANGE,
        "merchants_membersession": Rights.CHANGE,
        "merchants_membership": Rights.KEEP,
        "merchants_preparedfile": Rights.CHANGE,
        "merchants_preparedpart": Rights.CHANGE,
        "merchants_sentreport": Rights.CHANGE,
    },
    staff_rights=[
        StaffRight(
            Section.SYSTEM,
            lazy("Receive reports by email"),
            [f"merchants.{verb}_emailedreport" for verb in ("view", "add", "delete")],
            [StaffRole.ADMINISTRATOR, StaffRole.MERCHANT_MANAGER, StaffRole.FINANCE],
        ),
        StaffRight(
            Section.MERCHANTS,
            lazy("See the people of accounts and who is invited"),
            read_access(Membership, Invitation),
            [StaffRole.MERCHANT_MANAGER, StaffRole.SUPPORT],
        ),
        StaffRight(
            Section.MERCHANTS,
            lazy("Invite people into accounts, and approve the invitations of colleagues"),
            ["merchants.add_invitation", *read_access(Invitation)],
            [StaffRole.MERCHANT_MANAGER],
        ),
        StaffRight(
            Section.MERCHANTS,
            lazy("Block people of accounts, end their sessions, and remove a lost second factor"),
            ["merchants.change_membership"],
            [StaffRole.MERCHANT_MANAGER, StaffRole.SUPPORT],
        ),
        StaffRight(
            Section.SYSTEM,
            lazy("See which emails were sent"),
            read_access(Email),
            [StaffRole.ADMINISTRATOR, StaffRole.MERCHANT_MANAGER, StaffRole.SUPPORT],
        ),
    ],
    parts={
        "accounts.account": lambda pk: {
            "merchants.membership": ids_of(Membership.objects.filter(account=pk)),
            "merchants.invitation": ids_of(Invitation.objects.filter(account=pk)),
        }
    },
    seen_with={
        # On an account, but they say a person's email address, and an amount of the wallet.
        AuditAction.MEMBER_JOINED: Membership,
        AuditAction.ALERT_CHANGED: Wallet,
    },
    finders=FINDERS,
    menu=[
        MenuEntry(Section.REPORTS, lazy("Reports by email"), EmailedReport, "outgoing_mail"),
        MenuEntry(Section.MERCHANTS, lazy("People"), Membership, "groups_2"),
        MenuEntry(Section.RECORDS, lazy("Invitations"), Invitation, "person_add"),
        MenuEntry(Section.RECORDS, lazy("Emails"), Email, "outgoing_mail"),
    ],
)
