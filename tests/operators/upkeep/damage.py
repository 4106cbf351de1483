"""Damage to the rows and the schema of a service, for tests of `reconcile`."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pytest
from django.db import transaction

from tests.concurrency.racing import execute, without_triggers

# No rollback takes back what a sequence gave out.
LAST_ORDER = "SELECT setval('orders_order_id_seq', (SELECT max(id) FROM orders_order))"


@contextmanager
def damaged(statement: str = "") -> Iterator[None]:
    """A transaction with this damage, done with all triggers off. It ends in a rollback.
    `reconcile` reads inside it."""
    try:
        with pytest.MonkeyPatch.context() as patch, transaction.atomic():
            patch.setattr("operators.upkeep.reconcile.snapshot", nullcontext)
            if statement:
                without_triggers(statement)
            yield
            transaction.set_rollback(True)
    finally:
        execute(LAST_ORDER)
