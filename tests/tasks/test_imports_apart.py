"""Files that staff upload have workers of their own, and no file ends them for ever."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from operators.imports import jobs
from operators.imports.models import FileImport, ImportKind, ImportState
from tests.concurrency.racing import holding_locks, wait_for_waiting
from tests.factories import (
    buy_topup,
    make_merchant,
    make_operator,
    make_product,
    move_now,
    own_shelf,
)
from tests.operators.back_office import make_staff, signed_in, text_of, url
from tests.tasks.running import Broker, Crew, wait_until
from topups.fulfilment.transitions import Move
from topups.models import Fulfilment

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]

# A check looks its codes up in this table. A service's connection waits for up to ten seconds.
SLOW_CHECKS = "LOCK TABLE catalogue_vouchercode IN ACCESS EXCLUSIVE MODE"


def upload(staff: User) -> FileImport:
    return jobs.upload_file(
        kind=ImportKind.CODES,
        content=b"code\nSECRET-1\nSECRET-2\n",
        file_name="codes.csv",
        shelf=own_shelf(make_product()),
        actor=staff,
        token=uuid4(),
    )


def now(row: FileImport) -> FileImport:
    return FileImport.objects.get(pk=row.pk)


def test_refunds_do_not_wait_for_a_check(broker: Broker, crew: Crew) -> None:
    worker, _ = crew.worker(), crew.imports_worker()
    merchant, operator = make_merchant(), make_operator()
    reference, row = buy_topup(merchant), upload(make_staff())
    wait_until(lambda: now(row).state == ImportState.READY, "both workers run")
    with holding_locks(SLOW_CHECKS):
        rows = [upload(make_staff()) for _ in range(3)]  # more than the workers' processes
        wait_for_waiting(1)
        move_now(reference=reference, move=Move.REJECT, operator=operator)
        wait_until(
            lambda: not Fulfilment.objects.filter(refunded_at=None).exists(), "it is refunded"
        )
        assert ImportState.READY not in [now(row).state for row in rows]
    assert not [one for one in worker.events("task_succeeded") if "run_import" in str(one)]
    wait_until(
        lambda: all(now(row).state == ImportState.READY for row in rows), "the files are checked"
    )


def test_a_file_that_ends_its_worker_is_tried_twice(broker: Broker, crew: Crew) -> None:
    staff = make_staff(superuser=True)
    for attempt in (1, 2):
        worker = crew.imports_worker()
        with holding_locks(SLOW_CHECKS):
            if attempt == 1:
                row = upload(staff)
            else:
                assert jobs.sweep_imports() == {"stopped": 0, "again": 1, "discarded": 0}
            wait_for_waiting(1)
            worker.kill()
        wait_until(lambda: not jobs._rows_at_work(), "PostgreSQL notices that the worker is dead")
        assert (now(row).state, now(row).attempts) == (ImportState.CHECKING, attempt)
        FileImport.objects.update(touched_at=timezone.now() - timedelta(minutes=2))

    assert jobs.sweep_imports() == {"stopped": 1, "again": 0, "discarded": 0}
    page = text_of(signed_in(staff).get(url(row)))
    assert "Nothing was imported." in page
    assert "The work on this file ended twice before it was done." in page
    assert "Try again" in page
    assert broker.waiting() == 0
