"""The probes of the bot and of the workers, `/readyz/bot` and `/readyz/worker`."""

from datetime import timedelta
from http import HTTPStatus
from typing import Any

from django.db import DatabaseError
from django.db.models import Count
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse

from core.api.envelope import json_response
from core.api.views import get_only
from operators.frame.limits import ALIVE_SECONDS
from operators.telegram.updates.bot_cache import seconds_since_beat
from operators.upkeep.models import AGE, Heartbeat, HeartbeatKind
from operators.upkeep.nightly_reconcile import is_overdue

ALIVE_FOR = timedelta(seconds=ALIVE_SECONDS)
NAMES = {
    HeartbeatKind.BEAT: "scheduler",
    HeartbeatKind.WORKER: "worker",
    HeartbeatKind.IMPORTS: "imports",
}
NEEDED = ("scheduler", "worker")  # money and messages wait for these


@get_only
def readyz_bot(request: HttpRequest) -> HttpResponse:
    """GET /readyz/bot: 200 while the bot reaches Telegram, otherwise 503."""
    try:
        seconds_ago = seconds_since_beat()
    except Exception:  # the probe answers even without a cache
        seconds_ago = None
    if seconds_ago is None:
        return json_response(HTTPStatus.SERVICE_UNAVAILABLE, {"status": "unready"})
    return json_response(HTTPStatus.OK, {"status": "ok", "seconds_ago": seconds_ago})


@get_only
def readyz_worker(request: HttpRequest) -> HttpResponse:
    """GET /readyz/worker: 200 while the scheduler and a worker are alive, otherwise 503.

    The response names what is missing. A worker of imports that is missing, or a nightly
    `reconcile` that did not run, is reported as `degraded` with 200.
    """
    try:
        alive, overdue = _live_processes(), is_overdue()
    except DatabaseError:
        return _answer("unready", "The database does not respond.", {})
    missing = _missing_names(alive)
    facts = {**alive, "reconcile": "overdue" if overdue else "ok"}
    if missing:
        return _answer("unready", f"No heartbeat for a minute from: {', '.join(missing)}.", facts)
    if "imports" not in alive:
        return _answer("degraded", "No heartbeat for a minute from: imports.", facts)
    if overdue:
        return _answer("degraded", "The nightly reconcile did not finish.", facts)
    return json_response(HTTPStatus.OK, {"status": "ok", **facts})


def missing_processes() -> list[str]:
    """Which of scheduler and workers have not shown a sign of life for a minute."""
    return _missing_names(_live_processes())


def _missing_names(alive: dict[str, Any]) -> list[str]:
    return [name for name in NEEDED if name not in alive]


def _live_processes() -> dict[str, Any]:
    """For each kind of process that is alive, its hosts and the seconds since its heartbeat."""
    rows = Heartbeat.objects.filter(beat_at__gt=Now() - ALIVE_FOR).values_list("kind")
    return {
        NAMES[HeartbeatKind(kind)]: {
            "hosts": hosts,
            "seconds_ago": max(0, round(age.total_seconds())),
        }
        for kind, hosts, age in rows.annotate(Count("host"), age=AGE)
    }


def _answer(status: str, message: str, facts: dict[str, Any]) -> HttpResponse:
    code = HTTPStatus.SERVICE_UNAVAILABLE if status == "unready" else HTTPStatus.OK
    return json_response(code, {"status": status, "message": message, **facts})
