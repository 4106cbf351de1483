"""Prepaid money: one wallet per account, and the ledger that explains every cent of it.

A balance changes in one way only: a ledger entry is inserted, and a trigger changes the balance and
sets `balance_after` in the same statement (wallets/sql/post_entry.sql). Triggers refuse every other
change of a balance and every change of an entry (wallets/sql/guards.sql). They also refuse to pay
back more than an order cost (wallets/sql/paid_back.sql).
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import F, Func, Q
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from accounts.models import Account
from core.database.columns import (
    ACTOR_LENGTH,
    BOOKING_REFERENCE_LENGTH,
    CURRENCY_CODE,
    CURRENCY_LENGTH,
    MONEY_DECIMALS,
    MONEY_DIGITS,
    NOTE_LENGTH,
    ORDER_REFERENCE_LENGTH,
    validate_currency,
)
from core.inputs import is_id
from core.texts import lazy, local_figure

CLOSE_DIGITS = MONEY_DIGITS + 8  # sums of many wallets


class Wallet(models.Model):
    """The prepaid balance of an account, in the account's currency."""

    account = models.OneToOneField(
        Account, on_delete=models.PROTECT, primary_key=True, related_name="wallet"
    )
    balance = models.DecimalField(
        max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS, default=0, editable=False
    )
    # The hash of the last entry. NULL before the first entry.
    chain = models.BinaryField(null=True)

    class Meta:
        permissions = [("move_money", "Can book deposits, payouts, adjustments and credits")]
        constraints = [
            models.CheckConstraint(
                name="wallets_wallet_balance_not_negative", condition=Q(balance__gte=0)
            ),
        ]

    def __str__(self) -> str:
        return f"Wallet of {self.account}"


class EntryKind(models.TextChoices):
    """Why money moved."""

    DEPOSIT = "deposit", lazy("Deposit")
    PAYOUT = "payout", lazy("Payout")
    ADJUSTMENT = "adjustment", lazy("Adjustment")
    PURCHASE = "purchase", lazy("Purchase")
    REFUND = "refund", lazy("Refund")
    CREDIT = "credit", lazy("Credit")
    REPLACEMENT = "replacement", lazy("Replacement")


class Counterpart(models.TextChoices):
    """The other side of an entry: where the money came from or went to."""

    BANK = "bank", lazy("Bank")
    CORRECTIONS = "corrections", lazy("Corrections")
    SALES = "sales", lazy("Sales")


COUNTERPARTS = {
    EntryKind.DEPOSIT: Counterpart.BANK,
    EntryKind.PAYOUT: Counterpart.BANK,
    EntryKind.ADJUSTMENT: Counterpart.CORRECTIONS,
    EntryKind.PURCHASE: Counterpart.SALES,
    EntryKind.REFUND: Counterpart.SALES,
    EntryKind.CREDIT: Counterpart.SALES,
    EntryKind.REPLACEMENT: Counterpart.SALES,
}
# An order has one entry of these kinds: what it cost, or that a replacement cost nothing.
OF_ORDERS = [EntryKind.PURCHASE, EntryKind.REPLACEMENT]


# The booking reference of a reversal: this, and the id of the entry that it reverses. So an entry
# is reversed once.
REVERSAL_OF = "reversal-of-entry:"
# The booking reference of an order that replaces a code: this, and the number of its case.
REPLACEMENT_OF = "replacement-of-case:"


def _reversed_entry(booking_reference: str | None) -> int | None:
    text = (booking_reference or "").removeprefix(REVERSAL_OF)
    return int(text) if text != booking_reference and is_id(text) else None


def bank_reference_of(kind: str, booking_reference: str | None) -> str:
    """The booking reference of a deposit or payout, unless the service made it."""
    made = (REVERSAL_OF, "form:", "opening:")
    if kind not in (EntryKind.DEPOSIT, EntryKind.PAYOUT) or booking_reference is None:
        return ""
    return "" if booking_reference.startswith(made) else booking_reference


class LedgerEntry(models.Model):
    """One movement of a wallet's money. It is never changed or deleted.

    `amount` is positive if the wallet gains money. `actor` is who did it: `client:7`, `admin:anna`,
    `shell:anna` or `system`. Purchases and refunds are unique by their order. Every other entry has
    a booking reference, which is unique in the whole ledger: a booking that is repeated by mistake
    is refused, even for another account.

    A reversal has the kind of the entry that it reverses and the opposite amount. A trigger
    compares both (wallets/sql/reversals.sql).

    `note` is for staff. `reason` is for the merchant, who reads the note of a credit, too.

    A replacement moves no money: it records the order that replaces a code of another one.
    """

    wallet = models.ForeignKey(
        Wallet, on_delete=models.PROTECT, related_name="entries", db_index=False
    )
    kind = models.CharField(max_length=16, choices=EntryKind)
    counterpart = models.CharField(max_length=16, choices=Counterpart)
    amount = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS)
    balance_after = models.DecimalField(
        max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS, editable=False
    )
    order_reference = models.CharField(max_length=ORDER_REFERENCE_LENGTH, null=True, blank=True)
    actor = models.CharField(max_length=ACTOR_LENGTH)
    note = models.CharField(max_length=NOTE_LENGTH, blank=True, db_default="")
    reason = models.CharField("for the merchant", max_length=NOTE_LENGTH, null=True)
    booking_reference = models.CharField(
        max_length=BOOKING_REFERENCE_LENGTH, null=True, editable=False
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    # The trigger sets both (wallets/sql/post_entry.sql). Purchases and refunds have no salt.
    chain = models.BinaryField()
    salt = models.UUIDField(null=True, editable=False)

    class Meta:
        verbose_name_plural = "ledger entries"
        indexes = [
            models.Index(name="wallets_entry_of_wallet", fields=["wallet", "id"]),
            # For statements of one kind. Partial: nearly all entries are purchases.
            models.Index(
                name="wallets_entry_of_rare_kind",
                fields=["wallet", "kind", "id"],
                condition=~Q(kind="purchase"),
            ),
            # For the list of staff, of one kind and all wallets.
            models.Index(
                name="wallets_entry_by_rare_kind",
                fields=["kind", "id"],
                condition=~Q(kind="purchase"),
            ),
        ]
        constraints = [
            # One debit and one refund per order, even after crashes, retries and races. Neither has
            # a booking reference, and the index counts two missing ones as equal
            # (nulls_distinct=False). An order may have several credits; each has its own reference.
            models.UniqueConstraint(
                name="wallets_entry_once_per_order",
                fields=["order_reference", "kind", "booking_reference"],
                condition=Q(order_reference__isnull=False),
                nulls_distinct=False,
            ),
            # Partial: purchases have no booking reference.
            models.UniqueConstraint(
                name="wallets_entry_once_per_booking",
                fields=["booking_reference"],
                condition=Q(booking_reference__isnull=False),
            ),
            models.CheckConstraint(
                name="wallets_entry_booking_reference_is_known",
                condition=Q(kind__in=["purchase", "refund"], booking_reference=None)
                | (
                    ~Q(kind__in=["purchase", "refund"])
                    & Q(booking_reference__isnull=False)
                    & ~Q(booking_reference="")
                ),
            ),
            # The chain covers the reason of these alone (wallets/sql/post_entry.sql).
            models.CheckConstraint(
                name="wallets_entry_reason_is_of_a_booking",
                condition=Q(reason=None) | Q(booking_reference__isnull=False),
            ),
            models.CheckConstraint(
                name="wallets_entry_balance_not_negative", condition=Q(balance_after__gte=0)
            ),
            models.CheckConstraint(
                name="wallets_entry_agrees_with_its_kind",
                condition=Func(
                    *("kind", "counterpart", "amount", "order_reference", "booking_reference"),
                    function="wallets_agrees_with_kind",
                    output_field=models.BooleanField(),
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"Ledger entry {self.pk}"

    @property
    def reversal_reference(self) -> str:
        """The booking reference of the entry that reverses this one."""
        return f"{REVERSAL_OF}{self.pk}"

    @property
    def reversed_entry(self) -> int | None:
        """The id of the entry that this one reverses."""
        return _reversed_entry(self.booking_reference)

    @property
    def can_be_reversed(self) -> bool:
        """Whether it is a booking that moved money, and no reversal. It may be reversed already."""
        return self.kind in BOOKINGS and self.reversed_entry is None

    @property
    def bank_reference(self) -> str:
        """The bank's reference of a deposit or payout, as merchants see it."""
        return bank_reference_of(self.kind, self.booking_reference)

    @property
    def merchant_note(self) -> str:
        """The text for the merchant: the reason; of credits without one, the note."""
        return self.reason or (self.note if self.kind == EntryKind.CREDIT else "")


class BookingKey(models.Model):
    """A booking reference without case, spaces and punctuation, and the entry that has it.

    A trigger adds the key of each booking, and a second booking with the same key is refused
    (wallets/sql/booking_keys.sql). Of older bookings with the same key, the first has it.
    """

    # Twice as long as a reference: a letter in lower case may be two.
    key = models.CharField(max_length=2 * BOOKING_REFERENCE_LENGTH, primary_key=True)
    entry = models.OneToOneField(LedgerEntry, on_delete=models.PROTECT, related_name="+")

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"key of ledger entry {self.entry_id}"


BOOKINGS = [EntryKind.DEPOSIT, EntryKind.PAYOUT, EntryKind.ADJUSTMENT, EntryKind.CREDIT]


class BookingLimit(models.Model):
    """The largest booking of a kind that people with a role make alone, and the largest sum of such
    bookings in a day (wallets/limits.py).

    A limit without a currency is for all currencies that have none of their own.
    """

    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=16, choices=[(kind.value, kind.label) for kind in BOOKINGS])
    currency = models.CharField(
        max_length=CURRENCY_LENGTH, blank=True, db_default="", validators=[validate_currency]
    )
    amount = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS)
    per_day = models.DecimalField(
        "sum of a day",
        max_digits=MONEY_DIGITS,
        decimal_places=MONEY_DECIMALS,
        null=True,
        blank=True,
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="wallets_limit_once", fields=["group", "kind", "currency"]
            ),
            models.CheckConstraint(
                name="wallets_limit_per_day_not_negative",
                condition=Q(per_day=None) | Q(per_day__gte=0),
                violation_error_message=lazy(
                    "The sum of a day must be at least 0. Leave it empty for no limit."
                ),
            ),
            models.CheckConstraint(
                name="wallets_limit_is_of_a_booking", condition=Q(kind__in=BOOKINGS)
            ),
            models.CheckConstraint(
                name="wallets_limit_currency_is_a_code",
                condition=Q(currency="") | Q(currency__regex=CURRENCY_CODE),
            ),
            models.CheckConstraint(
                name="wallets_limit_amount_not_negative",
                condition=Q(amount__gte=0),
                violation_error_message=lazy("Enter an amount of at least 0."),
            ),
        ]

    def __str__(self) -> str:
        money = f"{self.amount:,.2f} {self.currency}".rstrip()
        values = {
            "kind": self.get_kind_display(),
            "amount": local_figure(money),
            "role": self.group,
        }
        return _("%(kind)s up to %(amount)s by %(role)s") % values


class BookedAlone(models.Model):
    """The sum of the bookings of a kind that a person made alone on a day (UTC)."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    day = models.DateField()
    kind = models.CharField(max_length=16, choices=[(kind.value, kind.label) for kind in BOOKINGS])
    currency = models.CharField(max_length=CURRENCY_LENGTH)
    amount = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                name="wallets_alone_once", fields=["user", "day", "kind", "currency"]
            ),
            models.CheckConstraint(
                name="wallets_alone_is_of_a_booking", condition=Q(kind__in=BOOKINGS)
            ),
            models.CheckConstraint(
                name="wallets_alone_amount_not_negative", condition=Q(amount__gte=0)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} bookings of user {self.user_id} on {self.day}"


class ApprovalState(models.TextChoices):
    """The state of a booking that needs a second person."""

    WAITING = "waiting", lazy("Waiting")
    BOOKED = "booked", lazy("Booked")
    REJECTED = "rejected", lazy("Rejected")
    WITHDRAWN = "withdrawn", lazy("Withdrawn")
    EXPIRED = "expired", lazy("Expired")


class BookingApproval(models.Model):
    """A booking above its maker's limit. It waits until another person decides.

    `amount` is that of the ledger entry: negative if the wallet loses money. `entry` is the
    booking, once it is made. A trigger keeps what was asked for, and a decision
    (wallets/sql/approvals.sql).
    """

    wallet = models.ForeignKey(
        Wallet, on_delete=models.PROTECT, related_name="+", verbose_name=lazy("account")
    )
    kind = models.CharField(max_length=16, choices=[(kind.value, kind.label) for kind in BOOKINGS])
    amount = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS)
    order_reference = models.CharField(max_length=ORDER_REFERENCE_LENGTH, null=True)
    note = models.CharField(max_length=NOTE_LENGTH, blank=True, db_default="")
    reason = models.CharField("for the merchant", max_length=NOTE_LENGTH, null=True)
    booking_reference = models.CharField(max_length=BOOKING_REFERENCE_LENGTH)
    state = models.CharField(
        max_length=16, choices=ApprovalState, db_default=ApprovalState.WAITING.value
    )
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    asked_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField()
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True)
    entry = models.OneToOneField(
        LedgerEntry, on_delete=models.PROTECT, null=True, related_name="approval"
    )

    class Meta:
        default_permissions = ("view",)
        permissions = [("approve_booking", "Can approve bookings of other people")]
        constraints = [
            # A form that is sent twice asks once.
            models.UniqueConstraint(
                name="wallets_approval_waits_once",
                fields=["booking_reference"],
                condition=Q(state=ApprovalState.WAITING),
            ),
            models.CheckConstraint(
                name="wallets_approval_is_of_a_booking", condition=Q(kind__in=BOOKINGS)
            ),
            models.CheckConstraint(
                name="wallets_approval_state_is_known", condition=Q(state__in=ApprovalState.values)
            ),
            models.CheckConstraint(
                name="wallets_approval_by_another",
                condition=~Q(state__in=["booked", "rejected"]) | ~Q(decided_by=F("asked_by")),
            ),
            models.CheckConstraint(
                name="wallets_approval_is_decided_by_a_person",
                condition=Q(state__in=["waiting", "expired"], decided_by=None, decided_at=None)
                | Q(
                    state__in=["booked", "rejected", "withdrawn"],
                    decided_by__isnull=False,
                    decided_at__isnull=False,
                ),
            ),
            models.CheckConstraint(
                name="wallets_approval_booked_has_its_entry",
                condition=Q(state="booked", entry__isnull=False)
                | (~Q(state="booked") & Q(entry=None)),
            ),
        ]

    def __str__(self) -> str:
        return f"Approval {self.pk}"

    @property
    def reversed_entry(self) -> int | None:
        """The id of the ledger entry that this booking reverses."""
        return _reversed_entry(self.booking_reference)


class CloseSums(models.Model):
    """The sums of the entries of one day (UTC), by kind, between two balances."""

    day = models.DateField()
    opening = models.DecimalField(max_digits=CLOSE_DIGITS, decimal_places=MONEY_DECIMALS)
    purchases = models.DecimalField(max_digits=CLOSE_DIGITS, decimal_places=MONEY_DECIMALS)
    refunds = models.DecimalField(max_digits=CLOSE_DIGITS, decimal_places=MONEY_DECIMALS)
    credits = models.DecimalField(max_digits=CLOSE_DIGITS, decimal_places=MONEY_DECIMALS)
    deposits = models.DecimalField(max_digits=CLOSE_DIGITS, decimal_places=MONEY_DECIMALS)
    payouts = models.DecimalField(max_digits=CLOSE_DIGITS, decimal_places=MONEY_DECIMALS)
    adjustments = models.DecimalField(max_digits=CLOSE_DIGITS, decimal_places=MONEY_DECIMALS)
    closing = models.DecimalField(max_digits=CLOSE_DIGITS, decimal_places=MONEY_DECIMALS)

    class Meta:
        abstract = True


_ADDS_UP = Q(
    closing=F("opening")
    + F("purchases")
    + F("refunds")
    + F("credits")
    + F("deposits")
    + F("payouts")
    + F("adjustments")
)


class WalletClose(CloseSums):
    """The close of a wallet for a day on which it moved (wallets/evidence/closes.py)."""

    wallet = models.ForeignKey(Wallet, on_delete=models.PROTECT, related_name="+", db_index=False)

    class Meta:
        default_permissions = ("view",)
        verbose_name = "close of a wallet"
        verbose_name_plural = "closes of wallets"
        indexes = [models.Index(name="wallets_close_by_day", fields=["day"])]
        constraints = [
            models.UniqueConstraint(name="wallets_close_once", fields=["wallet", "day"]),
            models.CheckConstraint(name="wallets_close_adds_up", condition=_ADDS_UP),
        ]

    def __str__(self) -> str:
        return f"close of wallet {self.wallet_id} on {self.day}"


class DailyClose(CloseSums):
    """The close of all wallets in a currency. There is one for each day, without gaps.

    wallets: how many of them moved.
    """

    currency = models.CharField(max_length=CURRENCY_LENGTH)
    wallets = models.BigIntegerField()
    closed_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(name="wallets_day_once", fields=["day", "currency"]),
            models.CheckConstraint(name="wallets_day_adds_up", condition=_ADDS_UP),
        ]

    def __str__(self) -> str:
        return f"{local_figure(str(self.day))}, {self.currency}"


class MonthlyStatement(models.Model):
    """The statement of a closed month: its number, and the companies and bank details at that time.

    It is written with the close of the month's last day (wallets/evidence/closes.py) and never
    changed, so a statement stays as it was when a company moves. Its amounts are in the closes.

    issuer, recipient: the columns of OwnCompany and Company, and the `name` of the account; empty
    if nobody had entered them.
    """

    wallet = models.ForeignKey(Wallet, on_delete=models.PROTECT, related_name="+", db_index=False)
    month = models.DateField()  # its first day
    issued_at = models.DateTimeField(db_default=Now(), editable=False)
    issuer = models.JSONField()
    recipient = models.JSONField()
    bank_details = models.TextField(blank=True)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(name="wallets_statement_once", fields=["month", "wallet"]),
        ]

    def __str__(self) -> str:
        return self.number

    @property
    def number(self) -> str:
        """The number of the statement: the month and the account, in four digits: no day."""
        return f"{self.month:%Y-%m}-{self.wallet_id:04}"


class AnnouncedTransfer(models.Model):
    """A bank transfer that a merchant says is on its way.

    It has been received once a deposit of the account has its reference (wallets/transfers.py). It
    is closed if the merchant withdraws it, or if staff say that it did not arrive.

    `seen_received` is set some minutes later, so that lists of open transfers leave out old ones.
    """

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="+", db_index=False)
    amount = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS)
    reference = models.CharField(max_length=BOOKING_REFERENCE_LENGTH)
    announced_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    announced_at = models.DateTimeField(db_default=Now(), editable=False)
    closed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    closed_at = models.DateTimeField(null=True)
    seen_received = models.BooleanField(db_default=False, editable=False)

    class Meta:
        default_permissions = ("view",)
        indexes = [
            models.Index(name="wallets_transfer_of_account", fields=["account", "id"]),
            models.Index(
                name="wallets_transfer_open",
                fields=["account"],
                condition=Q(closed_at=None, seen_received=False),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                name="wallets_transfer_announced_once",
                fields=["account", "reference"],
                condition=Q(closed_at=None),
            ),
            models.CheckConstraint(
                name="wallets_transfer_amount_is_positive", condition=Q(amount__gt=0)
            ),
            models.CheckConstraint(
                name="wallets_transfer_is_closed_by_a_person",
                condition=Q(closed_at=None, closed_by=None)
                | Q(closed_at__isnull=False, closed_by__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"Announced transfer {self.pk}"


class BankDetails(models.Model):
    """The bank account to which merchants with a wallet in this currency send money."""

    currency = models.CharField(
        max_length=CURRENCY_LENGTH, unique=True, validators=[validate_currency]
    )
    details = models.TextField(max_length=1000)

    class Meta:
        verbose_name_plural = "bank details"
        constraints = [
            models.CheckConstraint(
                name="wallets_bank_details_currency_is_a_code",
                condition=Q(currency__regex=CURRENCY_CODE),
            ),
        ]

    def __str__(self) -> str:
        return _("Bank details for %(name)s") % {"name": self.currency}


class SignedRoot(models.Model):
    """A signed hash over the chains of all wallets at one moment (wallets/evidence/roots.py).

    number: 1, 2, 3, … without gaps. previous: the hash of the root before. wallets: how many.
    """

    number = models.BigIntegerField(primary_key=True)
    signed_at = models.DateTimeField()
    previous = models.BinaryField()
    wallets = models.BigIntegerField()
    root = models.BinaryField()
    public_key = models.BinaryField()
    signature = models.BinaryField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"root {self.number}"


class RootLeaf(models.Model):
    """The last entry of a wallet in a root. A root has leaves only of wallets with an entry since
    the root before. For each other wallet, its newest leaf in an earlier root still counts."""

    root = models.ForeignKey(
        SignedRoot, on_delete=models.PROTECT, related_name="leaves", db_index=False
    )
    wallet = models.ForeignKey(Wallet, on_delete=models.PROTECT, related_name="+", db_index=False)
    last_entry = models.BigIntegerField()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(name="wallets_leaf_once_per_root", fields=["wallet", "root"])
        ]

    def __str__(self) -> str:
        return f"wallet {self.wallet_id} in root {self.root_id}"
