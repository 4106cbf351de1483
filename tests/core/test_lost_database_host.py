"""Connections to a database host that stops responding end within 30 seconds.

With the kernel's defaults, a request would hang for many minutes.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

pytestmark = pytest.mark.django_db

MAX_SECONDS = 30


@contextmanager
def database_socket() -> Iterator[socket.socket]:
    """A duplicate of the socket of Django's connection."""
    connection.ensure_connection()
    handle = socket.socket(fileno=os.dup(connection.connection.fileno()))
    try:
        yield handle
    finally:
        handle.close()


def test_unacknowledged_data_ends_the_connection() -> None:
    with database_socket() as wire:
        timeout = wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    assert 0 < timeout <= MAX_SECONDS * 1000


def test_an_idle_connection_sends_keepalives() -> None:
    with database_socket() as wire:
        on = wire.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        idle, interval, count = (
            wire.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        )
    assert on
    assert idle + interval * count <= MAX_SECONDS
