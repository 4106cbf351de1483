"""Asks each database host without a pause whether it is a primary, on that host itself.

So a host is asked even while it is cut off from the others, as programs on it would.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg

from labs.installation.cluster import Node

PAUSE = 0.03  # seconds between two questions


@dataclass
class Sightings:
    """When one host said that it is a primary: the first and the last time of each period.

    `since` is when the first answer arrived, and `until` when the last question was asked: the host
    was certainly a primary at both. In seconds of the monotonic clock.
    """

    host: str
    since: float
    until: float


@dataclass
class Watch:
    found: list[Sightings] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    def two_primaries(self) -> list[tuple[Sightings, Sightings]]:
        """Each pair of hosts that were primaries at the same time."""
        return [
            (one, other)
            for one in self.found
            for other in self.found
            if one.host < other.host and one.since <= other.until and other.since <= one.until
        ]

    def ask(self, node: Node, url: str) -> None:
        node.host.enter_network()
        period: Sightings | None = None
        connection: psycopg.Connection | None = None
        while not self._over.wait(PAUSE):
            asked = time.monotonic()
            try:
                if connection is None or connection.closed:
                    connection = psycopg.connect(url, autocommit=True, connect_timeout=2)
                row = connection.execute("SELECT pg_is_in_recovery()").fetchone()
                is_primary = row == (False,)
            except psycopg.Error:
                is_primary, connection = False, None
            if not is_primary:
                period = None
            elif period is None:
                period = Sightings(node.name, since=time.monotonic(), until=asked)
                self.found.append(period)
            else:
                period.until = asked
        if connection is not None:
            connection.close()

    def stop(self) -> None:
        self._over.set()


@contextmanager
def watching(nodes: Sequence[Node], password: str) -> Iterator[Watch]:
    watch = Watch()
    threads = [
        threading.Thread(
            target=watch.ask,
            args=[node, f"postgresql://voucher:{password}@{node.address}/voucher?sslmode=require"],
        )
        for node in nodes
    ]
    for thread in threads:
        thread.start()
    try:
        yield watch
    finally:
        watch.stop()
        for thread in threads:
            thread.join()
