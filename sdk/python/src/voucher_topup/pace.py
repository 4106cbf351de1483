"""Keeps a program within its limit of requests per minute. Purchases go before reads."""

import threading
from collections import deque
from typing import Optional

WINDOW = 60.0  # seconds
READS_SHARE = 0.8  # of the limit; the rest is left for purchases


class Pace:
    """Counts the requests of the last minute. Without a limit, nothing waits.

    `/ping` tells the limit. All threads of a program, and no other program, use the API key.
    """

    def __init__(self) -> None:
        self.limit: Optional[int] = None
        self._sent: deque[float] = deque()
        self._waiting_purchases: set[object] = set()
        self._blocked_until = 0.0
        self._lock = threading.Lock()

    def ask(self, token: object, *, is_purchase: bool, now: float) -> float:
        """0 if the request may be sent now, which counts it; otherwise the seconds to wait.

        `token` names the request, so that reads wait while a purchase does.
        """
        with self._lock:
            wait = self._wait(is_purchase, now)
            if wait > 0:
                if is_purchase:
                    self._waiting_purchases.add(token)
                return wait
            self._waiting_purchases.discard(token)
            self._sent.append(now)
            return 0.0

    def forget(self, token: object) -> None:
        """The request will not be sent."""
        with self._lock:
            self._waiting_purchases.discard(token)

    def block(self, until: float) -> None:
        """No request before this time: the service has answered rate_limited."""
        with self._lock:
            self._blocked_until = max(self._blocked_until, until)

    def _wait(self, is_purchase: bool, now: float) -> float:
        if now < self._blocked_until:
            return self._blocked_until - now
        while self._sent and self._sent[0] <= now - WINDOW:
            self._sent.popleft()
        if self.limit is None:
            return 0.0
        allowed = self.limit if is_purchase else max(1, int(self.limit * READS_SHARE))
        if len(self._sent) >= allowed:
            return self._sent[len(self._sent) - allowed] + WINDOW - now
        if self._waiting_purchases and not is_purchase:
            return 0.05
        return 0.0
