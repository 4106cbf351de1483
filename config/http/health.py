"""/healthz: is the process alive. /readyz: can it reach what it needs."""

from collections.abc import Callable

import structlog
from django.core.cache import cache
from django.db import connection
from django.http import HttpRequest, HttpResponse

from config.api.envelope import json_response

logger = structlog.get_logger(__name__)


def healthz(request: HttpRequest) -> HttpResponse:
    """200 as long as the process answers at all."""
    return json_response(200, {"status": "ok"})


def readyz(request: HttpRequest) -> HttpResponse:
    """200 when the database answers, otherwise 503.

    A lost cache is reported and does not make the service unready: purchases go on without it.
    """
    parts = {"database": _works(_ask_database), "cache": _works(_ask_cache)}
    ready = parts["database"]
    body = {"status": "ok" if all(parts.values()) else "degraded" if ready else "unready", **parts}
    return json_response(200 if ready else 503, body)


def _ask_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _ask_cache() -> None:
    cache.get("readyz")


def _works(ask: Callable[[], None]) -> bool:
    try:
        ask()
    except Exception as error:  # whatever it is, the probe answers
        logger.warning("not_ready", part=ask.__name__, cause=type(error).__name__)
        return False
    return True
