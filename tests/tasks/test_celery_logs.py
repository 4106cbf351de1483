"""Workers and schedulers log JSON only, with the cause of failures and without secrets."""

import json
import time
from urllib.parse import urlsplit

import pytest

from core.version import VERSION
from tests.concurrency.racing import execute
from tests.factories import buy_topup, make_merchant, make_operator, make_topup_product, move_now
from tests.live import database_url
from tests.tasks.running import Broker, Crew, wait_until
from topups.fulfilment.transitions import Move
from topups.models import Fulfilment

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]

# Celery's signal handler writes these lines to stderr without any logger.
SHUTDOWN_LINES = ("", "worker: Warm shutdown (MainProcess)")


def test_workers_and_scheduler_log_json_without_secrets(broker: Broker, crew: Crew) -> None:
    merchant, damaged = make_merchant(), make_merchant()
    worker, beat = crew.worker(), crew.beat("sweep-refunds")
    operator = make_operator()
    references = []
    for one in (merchant, damaged):
        references.append(buy_topup(one, make_topup_product(), player_id="player77"))
    execute("SET session_replication_role = replica")
    execute("DELETE FROM wallets_wallet WHERE account_id = %s", damaged.client.account_id)
    execute("SET session_replication_role = origin")
    for reference in references:
        move_now(reference=reference, move=Move.REJECT, operator=operator, note="note77")
    wait_until(lambda: worker.events("refund_failed"), "the damaged refund is reported")
    wait_until(lambda: worker.events("task_failed"), "the failure of its task is reported")
    broker.kill()
    time.sleep(3)
    broker.start()
    swept = len(worker.events("refund_failed"))
    wait_until(lambda: len(worker.events("refund_failed")) > swept, "the sweep continues")
    worker.stop()
    beat.stop()

    assert Fulfilment.objects.filter(refunded_at=None).count() == 1
    assert worker.events("refund_failed")[0]["order"] == references[1]
    for celery, process in ((worker, "worker"), (beat, "beat")):
        (started,) = celery.events("process_started")
        assert (started["process"], started["version"]) == (process, VERSION)
        lines = [line for line in celery.log.splitlines() if line not in SHUTDOWN_LINES]
        assert lines
        for line in lines:
            assert {"event", "level", "timestamp"} <= json.loads(line).keys(), line
    for secret in (broker.password, urlsplit(database_url()).password, merchant.key):
        assert str(secret) not in crew.logs
    for text in ("player77", "note77"):
        assert text not in crew.logs


def test_unsafe_settings_stop_worker_and_scheduler(crew: Crew) -> None:
    for celery in (crew.worker(CODE_ENCRYPTION_KEYS=""), crew.beat(CODE_ENCRYPTION_KEYS="")):
        wait_until(lambda one=celery: one.exit_code() is not None, "the end")  # type: ignore[misc]
        assert celery.exit_code() == 1
        assert "voucher.E003" in celery.log
        assert "Traceback" not in celery.log
