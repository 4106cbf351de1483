"""A client that buys while something else runs, so that its purchases can be compared."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from tests.factories import Merchant


@dataclass
class Buyer:
    """Notes when each purchase began, and how many milliseconds it took.

    pause: seconds between two purchases.
    """

    merchant: Merchant
    product: int
    pause: float = 0
    took: list[tuple[float, float]] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def buying(self) -> Iterator[None]:
        """Buys in a thread during the block."""
        thread = threading.Thread(target=self._buy)
        thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            thread.join()

    def between(self, first: float, last: float) -> list[float]:
        """The milliseconds of the purchases that began in this time."""
        return [took for start, took in self.took if first <= start < last]

    def _buy(self) -> None:
        while not self._stopping.wait(self.pause):
            start = time.perf_counter()
            answer = self.merchant.buy(product_id=self.product, quantity=1)
            assert answer.status_code == 201
            self.took.append((start, 1000 * (time.perf_counter() - start)))
        connection.close()


def say(kind: str, **facts: Any) -> None:
    print(json.dumps({"kind": kind, **facts}), flush=True)  # noqa: T201  the figures are the result
