"""Prepaid money: one wallet per account, and the ledger that explains every cent of it.

A balance changes in one way only: a ledger entry is inserted, and a trigger changes the balance and
sets `balance_after` in the same statement (wallets/sql/post_entry.sql). Triggers refuse every other
change of a balance and every change of an entry (wallets/sql/guards.sql). They also refuse to pay
back more than an order cost (wallets/sql/paid_back.sql).
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from accounts.models import Account
from core.database.columns import (
    ACTOR_LENGTH,
    BOOKING_REFERENCE_LENGTH,
    MONEY_DECIMALS,
    MONEY_DIGITS,
    NOTE_LENGTH,
    ORDER_REFERENCE_LENGTH,
)


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

    DEPOSIT = "deposit"
    PAYOUT = "payout"
    ADJUSTMENT = "adjustment"
    PURCHASE = "purchase"
    REFUND = "refund"
    CREDIT = "credit"


class Counterpart(models.TextChoices):
    """The other side of an entry: where the money came from or went to."""

    BANK = "bank"
    CORRECTIONS = "corrections"
    SALES = "sales"


COUNTERPARTS = {
    EntryKind.DEPOSIT: Counterpart.BANK,
    EntryKind.PAYOUT: Counterpart.BANK,
    EntryKind.ADJUSTMENT: Counterpart.CORRECTIONS,
    EntryKind.PURCHASE: Counterpart.SALES,
    EntryKind.REFUND: Counterpart.SALES,
    EntryKind.CREDIT: Counterpart.SALES,
}


class LedgerEntry(models.Model):
    """One movement of a wallet's money. It is never changed or deleted.

    `amount` is positive if the wallet gains money. `actor` is who did it: `client:7`, `admin:anna`,
    `shell:anna` or `system`. Purchases and refunds are unique by their order. Every other entry has
    a booking reference, which is unique in the whole ledger: a booking that is repeated by mistake
    is refused, even for another account.
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
            models.CheckConstraint(
                name="wallets_entry_balance_not_negative", condition=Q(balance_after__gte=0)
            ),
            models.CheckConstraint(
                name="wallets_entry_kind_agrees",
                condition=(
                    Q(kind="deposit", counterpart="bank", amount__gt=0, order_reference=None)
                    | Q(kind="payout", counterpart="bank", amount__lt=0, order_reference=None)
                    | (
                        Q(kind="adjustment", counterpart="corrections", order_reference=None)
                        & ~Q(amount=0)
                    )
                    | Q(
                        kind="purchase",
                        counterpart="sales",
                        amount__lt=0,
                        order_reference__isnull=False,
                    )
                    | Q(
                        kind__in=["refund", "credit"],
                        counterpart="sales",
                        amount__gt=0,
                        order_reference__isnull=False,
                    )
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"Ledger entry {self.pk}"

    @property
    def merchant_note(self) -> str:
        """The note, if it is for the merchant: only notes of credits are."""
        return self.note if self.kind == EntryKind.CREDIT else ""


class SignedRoot(models.Model):
    """A signed hash over the chains of all wallets at one moment (wallets/roots.py).

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
