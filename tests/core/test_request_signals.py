"""A web process does only what its requests need before and after each of them."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core.cache import close_caches
from django.core.handlers.base import reset_urlconf
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, connection, reset_queries
from django.dispatch import Signal

from core.http.receivers import drop_idle_receivers

DROPPED: dict[Callable[..., Any], Signal] = {
    reset_queries: request_started,
    close_old_connections: request_finished,
    close_caches: request_finished,
    reset_urlconf: request_finished,
}


@pytest.fixture(autouse=True)
def own_receivers(monkeypatch: pytest.MonkeyPatch) -> None:
    for signal in (request_started, request_finished):
        monkeypatch.setattr(signal, "receivers", list(signal.receivers))


def test_django_connects_what_is_dropped() -> None:
    assert all(signal.disconnect(receiver) for receiver, signal in DROPPED.items())


def test_the_idle_receivers_are_dropped() -> None:
    drop_idle_receivers()
    assert not any(signal.disconnect(receiver) for receiver, signal in DROPPED.items())


@pytest.mark.django_db(transaction=True)
def test_an_old_connection_is_closed_when_a_request_starts() -> None:
    drop_idle_receivers()
    connection.ensure_connection()
    connection.close_at = 0
    request_started.send(None)
    assert connection.connection is None
