"""Signals that other wings listen to."""

from django.dispatch import Signal

# Sent with `user` in the transaction that unlinks a company account.
company_account_unlinked = Signal()
