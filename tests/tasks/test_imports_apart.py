"""Files that staff upload have workers of their own, and no file ends them for ever."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone

from merchants.email.outbox import write_email
from merchants.models import Email, EmailKind
from operators.imports import jobs
from operators.imports.models import FileImport, ImportKind, ImportState
from operators.telegram.models import PlatformSettings
from tests.concurrency.racing import holding_locks, wait_for_waiting
from tests.factories import (
    buy_topup,
    make_merchant,
    make_operator,
    make_product,
    make_topup_product,
    move_now,
    own_shelf,
)
from tests.live import with_settings
from tests.operators.back_office import make_staff, signed_in, text_of, url
from tests.tasks.running import Broker, Crew, wait_until
from tests.telegram.fake_bot_api.server import running_bot_api
from topups.fulfilment.transitions import Move
from topups.models import Fulfilment

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]

NO_EMAILS = "django.core.mail.backends.dummy.EmailBackend"
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


def take(step: str, row: FileImport) -> None:
    address = reverse("admin:imports_fileimport_step", args=[row.pk, step])
    signed_in(make_staff(superuser=True)).post(address)


def test_refunds_emails_and_telegram_do_not_wait_for_checks(
    broker: Broker, crew: Crew, settings: Any
) -> None:
    """More files than the workers have processes; a person stops one, and tries it again."""
    with running_bot_api() as api:
        settings.TELEGRAM_BOT_TOKEN, settings.TELEGRAM_API_URL = api.token, api.url
        group = api.add_group("Operators")
        PlatformSettings.objects.create(announcing=True, chat_id=group.id)
        telegram = {"TELEGRAM_BOT_TOKEN": api.token, "TELEGRAM_API_URL": api.url}
        worker = crew.worker(**telegram, **with_settings(EMAIL_BACKEND=NO_EMAILS))
        crew.imports_worker()
        merchant, operator, row = make_merchant(), make_operator(), upload(make_staff())
        first, rejected = buy_topup(merchant), buy_topup(merchant)
        move_now(reference=first, move=Move.REJECT, operator=operator)
        refunded = Fulfilment.objects.exclude(refunded_at=None)
        wait_until(refunded.exists, "the worker runs")
        wait_until(lambda: now(row).state == ImportState.READY, "the imports worker runs")
        with holding_locks(SLOW_CHECKS):
            rows = [upload(make_staff()) for _ in range(3)]
            wait_for_waiting(1)
            move_now(reference=rejected, move=Move.REJECT, operator=operator)
            reference = buy_topup(merchant, make_topup_product(announce=True))
            facts = {"change": "Your password was changed."}
            email = write_email(kind=EmailKind.STAFF_NOTICE, to="a@b.example", facts=facts)
            wait_until(refunded.filter(order_reference=rejected).exists, "it is refunded")
            sent = Email.objects.filter(pk=email.pk).exclude(sent_at=None)
            wait_until(sent.exists, "it is sent")
            wait_until(
                lambda: [one for one in api.bot_messages(group) if reference in one.text],
                "it is announced",
            )
            take("stop", rows[2])
            states = [now(one).state for one in rows]
            assert states == [ImportState.CHECKING, ImportState.CHECKING, ImportState.STOPPED]
    assert not [one for one in worker.events("task_succeeded") if "run_import" in str(one)]
    # A check that waited for ten seconds has failed, and is tried once more.
    FileImport.objects.update(touched_at=timezone.now() - timedelta(minutes=2))
    wait_until(lambda: not jobs._rows_at_work(), "the checks have ended or failed")
    jobs.sweep_imports()
    wait_until(
        lambda: all(now(one).state == ImportState.READY for one in rows[:2]), "two are checked"
    )
    assert now(rows[2]).state == ImportState.STOPPED
    take("retry", rows[2])
    wait_until(lambda: now(rows[2]).state == ImportState.READY, "the third is checked")


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
