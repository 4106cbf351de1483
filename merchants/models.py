"""Members of an account, their invitations and sessions, and the emails they receive."""

from __future__ import annotations

from uuid import uuid4

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower, Now
from django.utils import timezone
from django.utils.translation import get_language

from accounts.models import KEY_PREFIX_LENGTH, Account, CompanyData
from core.database.columns import MONEY_DECIMALS, MONEY_DIGITS, NOTE_LENGTH
from core.texts import lazy


class Role(models.TextChoices):
    """The rights of a member. Each role may do everything that the roles after it may do.

    A viewer reads. A developer also manages clients, keys and references. An owner also manages
    people and the balance alert.
    """

    OWNER = "owner", lazy("Owner")
    DEVELOPER = "developer", lazy("Developer")
    VIEWER = "viewer", lazy("Viewer")

    @property
    def in_sentence(self) -> str:
        """The label within a sentence. A German noun keeps its capital."""
        return self.label if get_language() == "de" else self.label.lower()

    def includes(self, other: Role) -> bool:
        """Whether this role may do what `other` may."""
        ranks = list(Role)
        return ranks.index(self) <= ranks.index(other)


class Membership(models.Model):
    """A person's role in one account. Staff have no membership: they use the back office.

    When a member leaves, their user is deactivated and never deleted: the audit trail names them.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="membership"
    )
    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    blocked_at = models.DateTimeField(null=True, editable=False)  # by staff, until they unblock

    class Meta:
        verbose_name = "member"
        constraints = [
            models.CheckConstraint(
                name="merchants_membership_role_is_known", condition=Q(role__in=Role.values)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} ({self.role})"


class ProposalState(models.TextChoices):
    """The state of proposed company data."""

    WAITING = "waiting", lazy("Waiting")
    ACCEPTED = "accepted", lazy("Accepted")
    REJECTED = "rejected", lazy("Rejected")
    WITHDRAWN = "withdrawn", lazy("Withdrawn")


class CompanyProposal(CompanyData):
    """Company data that an owner proposes for their account, until staff decide."""

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="+")
    state = models.CharField(
        max_length=16, choices=ProposalState, db_default=ProposalState.WAITING.value
    )
    proposed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    proposed_at = models.DateTimeField(db_default=Now(), editable=False)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True)
    answer = models.CharField(max_length=NOTE_LENGTH, blank=True, db_default="")

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                name="merchants_proposal_waits_once",
                fields=["account"],
                condition=Q(state="waiting"),
            ),
            models.CheckConstraint(
                name="merchants_proposal_is_decided_by_a_person",
                condition=Q(state="waiting", decided_by=None, decided_at=None)
                | (
                    Q(state__in=["accepted", "rejected", "withdrawn"])
                    & Q(decided_by__isnull=False, decided_at__isnull=False)
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"proposal {self.pk}"


class BookKey(models.Model):
    """A secret with which a program downloads the account's books (merchants/money/book_keys.py).

    It is stored as an API key is. `form` is the id of the form that asked for it: a form that is
    sent twice issues one key.
    """

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="book_keys")
    prefix = models.CharField(max_length=KEY_PREFIX_LENGTH, unique=True)
    digest = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    revoked_at = models.DateTimeField(null=True, editable=False)
    last_used_at = models.DateTimeField(null=True, editable=False)
    form = models.UUIDField(null=True, unique=True, editable=False)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.prefix


class Invitation(models.Model):
    """Invites a person into an account. It works once, until it expires or is withdrawn.

    One that staff make for an account in use waits until another member of staff approves it
    (`needs_approval`).

    The link is signed when the email is sent (merchants/email/secret_links.py), so the stored
    invitation opens nothing.
    """

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="invitations")
    email = models.EmailField()
    role = models.CharField(max_length=16, choices=Role)
    invited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="invitations_sent"
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, editable=False)
    withdrawn_at = models.DateTimeField(null=True, editable=False)
    needs_approval = models.BooleanField(db_default=False, editable=False)
    approved_at = models.DateTimeField(null=True, editable=False)
    approved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        editable=False,
        related_name="invitations_approved",
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="merchants_invitation_approved_by_another",
                condition=Q(approved_by=None, approved_at=None)
                | (
                    Q(approved_by__isnull=False, approved_at__isnull=False)
                    & ~Q(approved_by=F("invited_by"))
                ),
            ),
            models.CheckConstraint(
                name="merchants_invitation_accepted_if_approved",
                condition=Q(accepted_at=None)
                | Q(needs_approval=False)
                | Q(approved_at__isnull=False),
            ),
            models.CheckConstraint(
                name="merchants_invitation_role_is_known", condition=Q(role__in=Role.values)
            ),
            models.CheckConstraint(
                name="merchants_invitation_ends_once",
                condition=Q(accepted_at=None) | Q(withdrawn_at=None),
            ),
            models.UniqueConstraint(
                Lower("email"),
                "account",
                name="merchants_invitation_one_open",
                condition=Q(accepted_at=None, withdrawn_at=None),
            ),
        ]

    def __str__(self) -> str:
        return f"Invitation {self.pk}"

    @property
    def state(self) -> str:
        """`accepted`, `withdrawn`, `expired`, `waiting` (for approval) or `open`."""
        if self.accepted_at:
            return "accepted"
        if self.withdrawn_at:
            return "withdrawn"
        if self.expires_at <= timezone.now():
            return "expired"
        return "waiting" if self.needs_approval and not self.approved_at else "open"


class EmailKind(models.TextChoices):
    """The kinds of email. Each has a template in templates/merchants/email/."""

    INVITATION = "invitation", lazy("Invitation")
    PASSWORD_RESET = "password_reset", lazy("Password reset")  # the name of a kind
    CHANGE = "change", lazy("Notice of a change")
    LOW_BALANCE = "low_balance", lazy("Low balance")
    STAFF_NOTICE = "staff_notice", lazy("Staff notice")
    CASE = "case", lazy("Case")
    REPORT = "report", lazy("Report")
    TRANSFER = "transfer", lazy("Transfer booked")


class Email(models.Model):
    """An email, stored in the transaction of the change it reports and sent after the commit.

    `facts` fill its template and hold no secret. `about` is the id that its secret link is made
    for when it is sent: an invitation's or a user's. None if it has no link, or nobody to go to.
    """

    kind = models.CharField(max_length=16, choices=EmailKind)
    to = models.EmailField()
    facts = models.JSONField(default=dict)
    about = models.BigIntegerField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField(db_default=Now())
    created_at = models.DateTimeField(db_default=Now())
    sent_at = models.DateTimeField(null=True)
    given_up_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "emails"
        constraints = [
            models.CheckConstraint(
                name="merchants_email_kind_is_known", condition=Q(kind__in=EmailKind.values)
            ),
            models.CheckConstraint(
                name="merchants_email_ends_once", condition=Q(sent_at=None) | Q(given_up_at=None)
            ),
        ]
        indexes = [
            models.Index(
                name="merchants_email_due",
                fields=["due_at"],
                condition=Q(sent_at=None, given_up_at=None),
            ),
            models.Index(name="merchants_email_address", fields=["to", "id"]),
            models.Index(  # strangers may ask for these, so each request counts the recent ones
                name="merchants_email_asked_for",
                fields=["to", "created_at"],
                condition=Q(kind__in=["password_reset", "invitation"]),
            ),
        ]

    def __str__(self) -> str:
        return f"Email {self.pk}: {self.get_kind_display()}"

    @property
    def state(self) -> str:
        """`given up`, `sent` or `waiting`."""
        if self.given_up_at:
            return "given up"
        return "sent" if self.sent_at else "waiting"

    @property
    def is_to_a_stranger(self) -> bool:
        """Whether this is a password email to an address of no member. It is not sent.
        The row exists because asking must take the same work for every address, or the person has
        another address by now."""
        is_invitation = self.kind == EmailKind.STAFF_NOTICE and self.about is not None
        if not is_invitation and self.kind != EmailKind.PASSWORD_RESET:
            return False
        return not User.objects.filter(pk=self.about or 0, email__iexact=self.to).exists()


class Frequency(models.TextChoices):
    """The period of a report by email."""

    DAY = "day", lazy("Every day")
    WEEK = "week", lazy("Every week")
    MONTH = "month", lazy("Every month")


class EmailedReport(models.Model):
    """A report that a person receives by email. `kind` is that of a declared `Report`."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField("report", max_length=32)
    every = models.CharField("how often", max_length=8, choices=Frequency)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        verbose_name = "report by email"
        verbose_name_plural = "reports by email"
        default_permissions = ("view", "add", "delete")
        constraints = [
            models.UniqueConstraint(name="merchants_report_once", fields=["user", "kind", "every"]),
            models.CheckConstraint(
                name="merchants_report_frequency_is_known",
                condition=Q(every__in=Frequency.values),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind}, {self.get_every_display().lower()}"


class SentReport(models.Model):
    """A period of a report, for which one email was written."""

    report = models.ForeignKey(EmailedReport, on_delete=models.CASCADE, related_name="sent")
    first_day = models.DateField()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                name="merchants_report_sent_once", fields=["report", "first_day"]
            ),
        ]

    def __str__(self) -> str:
        return f"report {self.report_id} of {self.first_day}"


class BalanceAlert(models.Model):
    """The level below which an account's owners get an email, and whether the balance is below it.

    Only merchants/money/balance_alerts.py writes `below`: the owners get one email per crossing.
    """

    account = models.OneToOneField(
        Account, on_delete=models.PROTECT, primary_key=True, related_name="balance_alert"
    )
    level = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS)
    below = models.BooleanField(default=False, editable=False)
    crossed_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="merchants_balancealert_level_is_positive", condition=Q(level__gt=0)
            ),
        ]

    def __str__(self) -> str:
        return f"balance alert of {self.account}"


class MemberSession(models.Model):
    """The browser and address of a session, shown to its user. Deleted with the session."""

    session = models.OneToOneField(Session, on_delete=models.CASCADE)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="member_sessions"
    )
    address = models.CharField(max_length=45, blank=True)
    device = models.CharField(max_length=200, blank=True)
    began_at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"session {self.pk}"


class FileState(models.TextChoices):
    """The state of a file that a worker builds (merchants/frame/prepared_files.py changes it)."""

    WAITING = "waiting", lazy("Waiting")
    BUILDING = "building", lazy("In work")
    READY = "ready", lazy("Ready")
    FAILED = "failed", lazy("Failed")


UNFINISHED_FILE = [FileState.WAITING, FileState.BUILDING]


class PreparedFile(models.Model):
    """A file that was too large or too slow for a request. A worker builds it, and only the person
    or the program that asked for it may download it, for a day.

    - `account`: the account whose members or programs wait for it; null for a file of staff.
    - `sealed`: the request, encrypted, because an address may contain what people searched for.
    - `size`, `parts`: how much is stored.
    - `touched_at`: when a worker last did something.
    """

    token = models.UUIDField(unique=True, default=uuid4, editable=False)
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="+"
    )
    key = models.OneToOneField(BookKey, on_delete=models.CASCADE, null=True, related_name="+")
    account = models.ForeignKey(Account, on_delete=models.CASCADE, null=True, related_name="+")
    name = models.CharField(max_length=200)
    content_type = models.CharField(max_length=100)
    sealed = models.BinaryField()
    state = models.CharField(max_length=16, choices=FileState, default=FileState.WAITING)
    problem = models.CharField(max_length=200, blank=True)
    size = models.PositiveBigIntegerField(default=0)
    parts = models.PositiveIntegerField(default=0)
    attempts = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now())
    touched_at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()
        constraints = [
            models.CheckConstraint(
                name="merchants_prepared_state_is_known", condition=Q(state__in=FileState.values)
            ),
            models.CheckConstraint(
                name="merchants_prepared_for_a_person_or_a_key",
                condition=Q(user__isnull=False, key=None)
                | Q(user=None, key__isnull=False, account__isnull=False),
            ),
            models.UniqueConstraint(
                name="merchants_prepared_one_of_an_account",
                fields=["account"],
                condition=Q(state__in=UNFINISHED_FILE),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class PreparedPart(models.Model):
    """A part of a prepared file, compressed and encrypted. `token` is that of the file."""

    file = models.ForeignKey(PreparedFile, on_delete=models.CASCADE, related_name="pieces")
    token = models.UUIDField()
    number = models.PositiveIntegerField()
    sealed = models.BinaryField()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                name="merchants_prepared_part_has_a_place", fields=["file", "number"]
            )
        ]

    def __str__(self) -> str:
        return f"part {self.number} of file {self.file_id}"
