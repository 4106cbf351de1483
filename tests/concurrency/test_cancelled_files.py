"""A person cancels a file while its worker stores a part: neither the part nor an error is left."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from decimal import Decimal
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from merchants.frame import downloads, prepared_files
from merchants.frame.prepared_files import build_file, cancel_file
from merchants.models import PreparedFile, PreparedPart
from tests.concurrency.racing import TIMEOUT, start, wait_for_waiting
from tests.factories import deposit
from tests.merchants.people import browser_of, make_member
from tests.tasks.running import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch) -> PreparedFile:
    monkeypatch.setattr(downloads, "WHOLE_BYTES", -1)
    monkeypatch.setattr(prepared_files, "PART_BYTES", 1)
    monkeypatch.setattr("core.files.table_files.LINES_AT_ONCE", 1)
    member = make_member()
    deposit(account=member.account, amount=Decimal(1))
    browser_of(member).get("/merchant/wallet/statement.csv")
    return PreparedFile.objects.get()


def build_and_cancel(
    file: PreparedFile, monkeypatch: pytest.MonkeyPatch, *, until: Callable[[], object]
) -> None:
    """Builds the file. Just before its worker stores the first part, another thread cancels it."""
    create, seal_part = PreparedPart.objects.create, prepared_files.seal_part

    def cancel_first(**values: Any) -> PreparedPart:
        cancelled.append(start(pool, cancel_file, file))
        start(pool, until).result(TIMEOUT)
        return create(**values)

    def seal_later(content: bytes, bound: bytes) -> bytes:
        assert all(one.result(TIMEOUT) for one in cancelled)
        return seal_part(content, bound)

    cancelled: list[Future[bool]] = []
    monkeypatch.setattr(prepared_files, "seal_part", seal_later)
    monkeypatch.setattr(PreparedPart.objects, "create", cancel_first)
    with ThreadPoolExecutor(2) as pool:
        build_file(pk=file.pk)
    assert len(cancelled) == 1


def test_a_file_that_is_cancelled_while_a_part_is_stored_leaves_nothing(
    file: PreparedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_and_cancel(file, monkeypatch, until=wait_for_waiting)

    assert not PreparedFile.objects.exists()
    assert not PreparedPart.objects.exists()


def test_control_without_the_transaction_the_part_has_no_file(
    file: PreparedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = threading.current_thread()

    def atomic() -> Any:
        return nullcontext() if threading.current_thread() is worker else transaction.atomic()

    gone = partial(wait_until, lambda: not PreparedFile.objects.exists(), "the file is deleted")
    monkeypatch.setattr(prepared_files, "transaction", SimpleNamespace(atomic=atomic))
    with pytest.raises(IntegrityError):
        build_and_cancel(file, monkeypatch, until=gone)
