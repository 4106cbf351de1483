"""Accounts that came from another cell, or left for one."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from accounts.models import Account
from config.env import CELL_LENGTH
from config.transfer_file import TRANSFER_REFERENCE_LENGTH


class AccountTransfer(models.Model):
    """The arrival of an account in this cell, or its departure. It never changes
    (operators/sql/transfers.sql).

    The wallet of an account that left is closed. An account arrives at
    most once, and leaves at most once. The sender chooses a reference once, so a transfer is known
    by the sender and the reference.
    """

    reference = models.CharField(max_length=TRANSFER_REFERENCE_LENGTH)
    account = models.ForeignKey(
        Account, on_delete=models.PROTECT, db_index=False, related_name="transfers"
    )
    sent = models.BooleanField()
    cell = models.CharField(max_length=CELL_LENGTH, help_text="The other cell.")
    at = models.DateTimeField(db_default=Now(), editable=False)
    was_enabled = models.BooleanField(db_default=True)  # when it left, or as it came

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                name="operators_account_transferred_once", fields=["account", "sent"]
            ),
            models.UniqueConstraint(
                name="operators_transfer_sent_once",
                fields=["reference"],
                condition=models.Q(sent=True),
            ),
            models.UniqueConstraint(
                name="operators_transfer_received_once",
                fields=["cell", "reference"],
                condition=models.Q(sent=False),
            ),
        ]

    def __str__(self) -> str:
        return self.reference
