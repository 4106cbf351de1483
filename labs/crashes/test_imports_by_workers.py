"""A real worker imports an uploaded file once, even if it is killed in the middle."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from catalogue.models import Shelf, VoucherCode
from operators.imports import jobs
from operators.imports.models import FileImport, FilePart, ImportKind, ImportState
from operators.upkeep.reconcile import reconcile
from tests.concurrency.racing import holding_locks, wait_for_waiting
from tests.factories import make_product, own_shelf
from tests.operators.back_office import make_staff
from tests.tasks.running import Broker, Crew, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]

NUMBER = 3000


def state(row: FileImport) -> str:
    return FileImport.objects.values_list("state", flat=True).get(pk=row.pk)


def upload(content: bytes, shelf: Shelf, staff: User, *, in_parts: bool) -> FileImport:
    if not in_parts:
        return jobs.upload_file(
            kind=ImportKind.CODES,
            content=content,
            file_name="codes.csv",
            shelf=shelf,
            actor=staff,
            token=uuid4(),
        )
    token, size = uuid4(), len(content) // 3 + 1
    for number in range(3):
        part = content[number * size : (number + 1) * size]
        jobs.add_part(upload=token, number=number, content=part, actor=staff)
    return jobs.finish_upload(
        upload=token, size=len(content), file_name="codes.csv", shelf=shelf, actor=staff
    )


@pytest.mark.parametrize("in_parts", [False, True])
def test_a_worker_that_is_killed_in_the_middle_imports_nothing_and_the_next_one_everything(
    broker: Broker, crew: Crew, *, in_parts: bool
) -> None:
    first, staff = crew.imports_worker(), make_staff()
    shelf = own_shelf(make_product())
    content = "code\n" + "".join(f"SECRET-{number}\n" for number in range(NUMBER))
    row = upload(content.encode(), shelf, staff, in_parts=in_parts)
    wait_until(lambda: state(row) == ImportState.READY, "the file is checked")

    # The import updates its shelf last: every code is in the table, and nothing is committed.
    with holding_locks("SELECT id FROM catalogue_shelf WHERE id = %s FOR NO KEY UPDATE", shelf.pk):
        row.refresh_from_db()
        assert jobs.confirm_import(pk=row.pk, actor=staff, seen=row.version)
        wait_for_waiting(1)
        first.kill()
    assert not VoucherCode.objects.exists()
    assert state(row) == ImportState.IMPORTING

    # While the dead worker's transaction is open, its lock says that a worker is busy.
    wait_until(lambda: not jobs._rows_at_work(), "PostgreSQL notices that the worker is dead")
    FileImport.objects.update(touched_at=timezone.now() - timedelta(minutes=2))
    crew.imports_worker()
    assert jobs.sweep_imports()["again"] == 1
    wait_until(lambda: state(row) == ImportState.IMPORTED, "the file is imported")

    assert VoucherCode.objects.count() == NUMBER
    assert not FilePart.objects.exists()
    assert Shelf.objects.get(pk=shelf.pk).available_stock == NUMBER
    assert reconcile()["findings"] == []
    with broker.client() as client:
        kept = b"".join(client.dump(key) or b"" for key in client.scan_iter())
    assert b"SECRET" not in kept + crew.logs.encode()
