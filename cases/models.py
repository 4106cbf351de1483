"""Cases: complaints of merchants about an order or one of its codes.

A case ends once: it is rejected, a code is replaced, or money is credited. The last two are entries
of the ledger, and the entry itself closes the case (cases/sql/outcomes.sql). So no case is closed
without its outcome, and none has two outcomes (docs/decisions/0099-cases.md).
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Account
from catalogue.models import VoucherCode
from core.database.sealing import Context
from core.files.uploads import AttachedFile
from core.texts import lazy
from orders.models import Order

MESSAGE_LENGTH = 4000
# The booking reference of the credit of a case: this, and the number of the case.
CREDIT_OF = "credit-of-case:"


class CaseState(models.TextChoices):
    """The state of a case. The last three are its outcomes."""

    OPEN = "open", lazy("Open")
    CREDITING = "crediting", lazy("Waits for approval of a credit")
    REJECTED = "rejected", lazy("Closed without credit")
    REPLACED = "replaced", lazy("Code replaced")
    CREDITED = "credited", lazy("Credited")


UNDECIDED = [CaseState.OPEN, CaseState.CREDITING]
OUTCOMES = [CaseState.REJECTED, CaseState.REPLACED, CaseState.CREDITED]


class Case(models.Model):
    """A complaint about an order, or about one code of it, and its outcome.

    - `paid_order`: the order that was paid. It differs from `order` if that replaced a code.
    - `waits_since`: when the case began to wait for staff; null if staff have answered.
    - `assigned_to`: the member of staff who takes care of it.
    - `version`: counts messages and decisions. A form names the version that its reader saw.
    - `decided_by`: who decided, or asked for the credit that waits.
    - `email_due`: the merchant has not received the email about the last answer or the outcome.
    """

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="+", db_index=False)
    order = models.ForeignKey(Order, on_delete=models.PROTECT, related_name="cases")
    code = models.ForeignKey(
        VoucherCode, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    paid_order = models.ForeignKey(Order, on_delete=models.PROTECT, related_name="+")
    state = models.CharField(max_length=16, choices=CaseState, db_default=CaseState.OPEN.value)
    version = models.PositiveIntegerField(db_default=1)
    opened_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    opened_at = models.DateTimeField(db_default=Now(), editable=False)
    waits_since = models.DateTimeField(null=True, db_default=Now(), editable=False)
    assigned_to = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        db_index=False,
        verbose_name=lazy("assigned to"),
    )
    replacement_proposed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    closed_at = models.DateTimeField(null=True, editable=False)
    email_due = models.BooleanField(db_default=False, editable=False)

    class Meta:
        default_permissions = ("view",)
        permissions = [
            ("answer_case", "Can open, answer and reject cases, and propose outcomes"),
            ("replace_code", "Can replace the code of a case"),
        ]
        indexes = [
            models.Index(name="cases_case_of_account", fields=["account", "id"]),
            models.Index(
                name="cases_case_waiting",
                fields=["waits_since"],
                condition=Q(waits_since__isnull=False),
            ),
            models.Index(
                name="cases_case_assigned",
                fields=["assigned_to", "id"],
                condition=Q(closed_at__isnull=True),
            ),
            models.Index(name="cases_case_email_due", fields=["id"], condition=Q(email_due=True)),
        ]
        constraints = [
            # A code that was replaced or credited gets no second case. After a rejection it may.
            models.UniqueConstraint(
                name="cases_case_once_per_code",
                fields=["code"],
                condition=Q(code__isnull=False) & ~Q(state="rejected"),
            ),
            models.UniqueConstraint(
                name="cases_case_one_open_per_order",
                fields=["order"],
                condition=Q(code=None, state__in=["open", "crediting"]),
            ),
            models.CheckConstraint(
                name="cases_case_state_is_known", condition=Q(state__in=CaseState.values)
            ),
            models.CheckConstraint(
                name="cases_case_is_closed_by_a_person",
                condition=Q(state__in=UNDECIDED, closed_at=None)
                | Q(
                    state__in=OUTCOMES,
                    closed_at__isnull=False,
                    decided_by__isnull=False,
                    waits_since=None,
                ),
            ),
            models.CheckConstraint(
                name="cases_case_replaces_one_code",
                condition=~Q(state="replaced") | Q(code__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"Case {self.pk}"

    @property
    def title(self) -> str:
        """The name of the case on pages, in the reader's language."""
        return _("Case %(name)s") % {"name": self.pk}

    @property
    def is_new(self) -> bool:
        """Whether it was opened within the last minute."""
        return self.opened_at > timezone.now() - timedelta(minutes=1)

    @property
    def is_open(self) -> bool:
        """Whether nobody has decided yet."""
        return self.state in UNDECIDED

    @property
    def waits_for_decision(self) -> bool:
        """Whether a replacement is proposed: the case waits for those who may replace codes."""
        return self.state == CaseState.OPEN and self.replacement_proposed_by_id is not None

    @property
    def waits_for_merchant(self) -> bool:
        """Whether staff have answered, and nothing is proposed."""
        is_open = self.state == CaseState.OPEN and not self.waits_for_decision
        return is_open and self.waits_since is None

    @property
    def state_in_words(self) -> str:
        """The state as staff read it, with whose turn it is."""
        if self.waits_for_decision:
            return _("Replacement proposed")
        if self.waits_for_merchant:
            return _("Waits for the merchant")
        return self.get_state_display()

    @property
    def credit_reference(self) -> str:
        """The booking reference of its credit."""
        return f"{CREDIT_OF}{self.pk}"


class CaseMessage(models.Model):
    """A message of a member or of staff. It is never changed."""

    case = models.ForeignKey(Case, on_delete=models.PROTECT, related_name="messages")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    from_staff = models.BooleanField()
    text = models.TextField(max_length=MESSAGE_LENGTH)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"message {self.pk}"


class CaseFile(AttachedFile):
    """A file of a message. A picture may show a code."""

    context = Context.CASE_FILE

    message = models.ForeignKey(CaseMessage, on_delete=models.PROTECT, related_name="files")
