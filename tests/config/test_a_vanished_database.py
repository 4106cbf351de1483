"""A database host that vanishes without a word is given up, and no request hangs for the many
minutes that the kernel would wait by itself."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

pytestmark = pytest.mark.django_db

SILENCE = 30  # seconds, at most


@contextmanager
def database_socket() -> Iterator[socket.socket]:
    """A second handle of the socket of Django's own connection."""
    connection.ensure_connection()
    handle = socket.socket(fileno=os.dup(connection.connection.fileno()))
    try:
        yield handle
    finally:
        handle.close()


def test_what_was_sent_and_is_not_confirmed_ends_the_connection() -> None:
    with database_socket() as wire:
        timeout = wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    assert 0 < timeout <= SILENCE * 1000


def test_a_connection_that_only_waits_asks_whether_anybody_is_there() -> None:
    with database_socket() as wire:
        on = wire.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        idle, interval, count = (
            wire.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        )
    assert on
    assert idle + interval * count <= SILENCE
