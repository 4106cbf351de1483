"""Scheduler and workers write heartbeats, and /readyz/worker says which of them is missing."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.test import Client
from django.utils import timezone

from operators.upkeep.models import Heartbeat, HeartbeatKind, ReconcileRun, RunState
from operators.upkeep.monitoring.readiness import ALIVE_FOR
from operators.upkeep.nightly_reconcile import OVERDUE_AFTER
from tests.tasks.running import Broker, Crew, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def probe() -> tuple[int, dict[str, Any]]:
    answer = Client().get("/readyz/worker")
    return answer.status_code, answer.json()


def hide_heartbeats(kind: HeartbeatKind) -> None:
    """Moves the last heartbeats of this kind so far back that they no longer count."""
    Heartbeat.objects.filter(kind=kind).update(beat_at=F("beat_at") - ALIVE_FOR)


def test_running_processes_are_ready_and_missing_ones_are_named(broker: Broker, crew: Crew) -> None:
    status, body = probe()
    assert (status, body["status"]) == (503, "unready")
    assert body["message"] == "No heartbeat for a minute from: scheduler, worker."

    worker, beat = crew.worker(), crew.beat()
    wait_until(lambda: probe()[0] == 200, "both are ready")
    assert probe()[1]["worker"]["hosts"] == 1
    assert Heartbeat.objects.count() == 2
    assert probe()[1]["status"] == "degraded"
    assert probe()[1]["message"] == "No heartbeat for a minute from: imports."
    crew.imports_worker()
    wait_until(lambda: probe()[1]["status"] == "ok", "a worker reads files, too")

    worker.kill()
    hide_heartbeats(HeartbeatKind.WORKER)
    assert probe()[1]["message"] == "No heartbeat for a minute from: worker."
    assert "scheduler" in probe()[1]

    beat.kill()
    hide_heartbeats(HeartbeatKind.BEAT)
    assert probe()[0] == 503


def test_a_worker_without_its_broker_is_not_alive(broker: Broker, crew: Crew) -> None:
    worker = crew.worker()
    wait_until(lambda: "worker" in probe()[1], "the worker is ready")
    broker.kill()
    wait_until(lambda: "lost" in worker.log.lower(), "the worker has noticed")
    noticed = timezone.now()

    hide_heartbeats(HeartbeatKind.WORKER)

    assert "worker" not in probe()[1]
    assert not Heartbeat.objects.filter(beat_at__gt=noticed).exists()


def test_a_missing_reconcile_is_degraded() -> None:
    for kind in HeartbeatKind:
        beat_at = timezone.now() + timedelta(seconds=30)  # 0 seconds ago on a busy machine, too
        Heartbeat.objects.create(kind=kind, host="one", beat_at=beat_at)
    assert probe() == (
        200,
        {
            "status": "ok",
            "scheduler": {"hosts": 1, "seconds_ago": 0},
            "worker": {"hosts": 1, "seconds_ago": 0},
            "imports": {"hosts": 1, "seconds_ago": 0},
            "reconcile": "ok",
        },
    )
    ended = timezone.now() - OVERDUE_AFTER - timedelta(minutes=1)
    ReconcileRun.objects.create(state=RunState.CLEAN, started_at=ended, finished_at=ended)

    status, body = probe()

    assert (status, body["status"], body["reconcile"]) == (200, "degraded", "overdue")
    assert body["message"] == "The nightly reconcile did not finish."
