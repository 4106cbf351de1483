"""Probes of a web process: /healthz (it is alive) and /readyz (it can serve)."""

from collections.abc import Callable

import structlog
from django.core.cache import cache
from django.db import connection
from django.http import HttpRequest, HttpResponse

from core.api.envelope import json_response
from core.api.views import get_only
from core.database.applied_migrations import missing_migrations
from core.database.key_ring import WrongKeys, check_keys

logger = structlog.get_logger(__name__)


class MigrationsMissing(Exception):
    """The code needs migrations that were not applied. Run `manage.py migrate`."""


@get_only
def healthz(request: HttpRequest) -> HttpResponse:
    """200 while the process responds."""
    return json_response(200, {"status": "ok"})


@get_only
def readyz(request: HttpRequest) -> HttpResponse:
    """200 when the database responds, has all migrations, and fits the encryption keys; else 503.

    An unreachable cache is reported as `degraded` with 200, because purchases work without it.
    """
    parts = {
        "database": _works("database", _query_database),
        "migrations": _works("migrations", _check_migrations),
        "keys": _works("keys", _check_keys),
        "cache": _works("cache", _read_cache),
    }
    ready = parts["database"] and parts["migrations"] and parts["keys"]
    body = {"status": "ok" if all(parts.values()) else "degraded" if ready else "unready", **parts}
    return json_response(200 if ready else 503, body)


def _query_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _check_keys() -> None:
    """Opens the root secret with each key: one short query of a table with one row per key, so the
    result is not cached and a wrong key shows at once."""
    try:
        check_keys()
    except WrongKeys as error:  # its message names no key
        logger.error("wrong_keys", reason=str(error))
        raise


def _check_migrations() -> None:
    if missing := missing_migrations():
        logger.error("migrations_missing", missing=missing)
        raise MigrationsMissing


def _read_cache() -> None:
    cache.get("readyz")


def _works(part: str, probe: Callable[[], None]) -> bool:
    try:
        probe()
    except Exception as error:  # the endpoint must respond whatever fails
        logger.warning("not_ready", part=part, cause=type(error).__name__)
        return False
    return True
