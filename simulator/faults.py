"""The faults, and who chooses the fault of a request."""

import json
import random
import threading
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

HEADER = "X-Simulate"
PREFIX = "fault-"  # of a player id: fault-lost_after


class Fault(StrEnum):
    """A fault of one request. The page shows the words behind each name."""

    NONE = "none"
    # On the way
    LOST_BEFORE = "lost_before"
    LOST_AFTER = "lost_after"
    CUT = "cut"
    SLOW = "slow"
    TWICE = "twice"
    AGAIN_LATER = "again_later"
    AGAIN_HOURS_LATER = "again_hours_later"
    LATE = "late"
    # A proxy answers
    ERROR_BEFORE = "error_before"
    ERROR_AFTER = "error_after"
    TIMEOUT = "timeout"
    CROWD = "crowd"
    PORTAL = "portal"
    UNAVAILABLE = "unavailable"
    # The service answers, in a situation that ends after the request
    IN_PROGRESS = "in_progress"
    ABANDONED = "abandoned"
    SERVER_ERROR = "server_error"
    RATE_LIMITED = "rate_limited"
    OUT_OF_STOCK = "out_of_stock"
    OUT_OF_BALANCE = "out_of_balance"
    PRICE_GONE = "price_gone"
    PRICE_CHANGED = "price_changed"
    SWITCHED_OFF = "switched_off"
    NOT_ALLOWED = "not_allowed"
    CLIENT_DISABLED = "client_disabled"
    KEY_EXPIRED = "key_expired"
    ONE_SWITCHED_OFF = "one_switched_off"
    # Time passes before the request
    MINUTES_LATER = "minutes_later"
    A_DAY_LATER = "a_day_later"
    A_WEEK_LATER = "a_week_later"


MEANINGS = {
    Fault.NONE: "The request and its response pass.",
    Fault.LOST_BEFORE: "The connection breaks before the service receives the request.",
    Fault.LOST_AFTER: "The service commits, and the response is lost.",
    Fault.CUT: "Half of the response arrives.",
    Fault.SLOW: "The response arrives in pieces, over five seconds.",
    Fault.TWICE: "The request reaches the service twice at once.",
    Fault.AGAIN_LATER: "The request reaches the service again after ten seconds.",
    Fault.AGAIN_HOURS_LATER: "The request reaches the service again, six hours later for it.",
    Fault.LATE: "No response comes, and the service receives the request ten seconds later.",
    Fault.ERROR_BEFORE: "A proxy answers 502, and the service receives nothing.",
    Fault.ERROR_AFTER: "The service commits, and a proxy answers 502.",
    Fault.TIMEOUT: "The service commits, and a proxy answers 408.",
    Fault.CROWD: "A proxy answers 429 in HTML, and the service receives nothing.",
    Fault.PORTAL: "The service commits, and a proxy answers 201 in HTML.",
    Fault.UNAVAILABLE: "A proxy answers 503 in JSON, and the service receives nothing.",
    Fault.IN_PROGRESS: "The purchase waits for the wallet for three seconds; no response comes.",
    Fault.ABANDONED: "The service dies after the commit: request_abandoned at the next attempt.",
    Fault.SERVER_ERROR: "server_error: the service fails after the commit, then request_abandoned.",
    Fault.RATE_LIMITED: "rate_limited: the limit of the client is one request for this moment.",
    Fault.OUT_OF_STOCK: "insufficient_stock: every code is on hold.",
    Fault.OUT_OF_BALANCE: "insufficient_balance: the wallet was paid out.",
    Fault.PRICE_GONE: "price_unavailable: no product has a price in the account's currency.",
    Fault.PRICE_CHANGED: "Every price is 0.05 higher than before.",
    Fault.SWITCHED_OFF: "product_inactive, or nothing is in the catalogue.",
    Fault.NOT_ALLOWED: "ip_not_allowed: the allowlist of the client has another address.",
    Fault.CLIENT_DISABLED: "client_disabled: the client is switched off.",
    Fault.KEY_EXPIRED: "invalid_token: the key has expired.",
    Fault.ONE_SWITCHED_OFF: "The first product is off. Chosen for a later page, it misses one.",
    Fault.MINUTES_LATER: "For the service, five minutes have passed: unfinished requests are lost.",
    Fault.A_DAY_LATER: "A day has passed: the keys of unfinished requests buy again.",
    Fault.A_WEEK_LATER: "Seven days have passed: every earlier key buys again.",
}
# After these, the program cannot know whether it has bought.
UNKNOWN = frozenset(
    {
        *(Fault.LOST_BEFORE, Fault.LOST_AFTER, Fault.CUT, Fault.ERROR_BEFORE, Fault.ERROR_AFTER),
        *(Fault.TIMEOUT, Fault.PORTAL, Fault.UNAVAILABLE, Fault.LATE),
        *(Fault.IN_PROGRESS, Fault.ABANDONED, Fault.SERVER_ERROR),
    }
)


class Choices:
    """Chooses the fault of each request: by header, player id, product, the page, or a scenario.

    A scenario is `{"seed": 7, "rate": 0.3, "faults": [name, …], "products": {"10": name}}`: of all
    requests, this part meets a fault of the list, and each request for the product meets its fault.
    The fault of a request depends on the seed, on the place of its body among the different bodies,
    and on how often this body came: not on how many other requests came before.
    """

    def __init__(self, scenario: Mapping[str, Any] | None = None) -> None:
        scenario = scenario or {}
        self._seed = scenario.get("seed", 0)
        self._chances = {"{}": random.Random(f"{self._seed}")}  # noqa: S311
        self._rate = float(scenario.get("rate", 0))
        self._faults = [Fault(name) for name in scenario.get("faults", ())]
        self._products = {
            int(product): Fault(name) for product, name in scenario.get("products", {}).items()
        }
        self._next: list[Fault] = []
        self._plans: dict[str, list[Fault]] = {}
        self._lock = threading.Lock()

    @classmethod
    def from_file(cls, path: Path) -> Self:
        return cls(json.loads(path.read_text()))

    def add(self, fault: Fault, requests: int) -> None:
        """The next requests meet the fault. The page adds it."""
        with self._lock:
            self._next += [fault] * requests

    def plan(self, body: Mapping[str, Any], faults: Sequence[Fault]) -> None:
        """The first requests with this body meet these faults, one after the other, and no other
        fault afterwards."""
        self._plans[_name(body)] = [*faults]

    def choose(self, header: str | None, body: bytes) -> Fault:
        """Raises ValueError if the header names no fault."""
        if header:
            return Fault(header)
        content = _content(body)
        player = content.get("player_id")
        if isinstance(player, str) and player.startswith(PREFIX):
            return Fault(player.removeprefix(PREFIX))
        product = content.get("product_id") or content.get("system_product_id")
        with self._lock:
            if isinstance(product, int) and product in self._products:
                return self._products[product]
            if self._next:
                return self._next.pop(0)
            if (plan := self._plans.get(_name(content))) is not None:
                return plan.pop(0) if plan else Fault.NONE
            if self._faults:
                chance = self._chance_of(content)
                if chance.random() < self._rate:
                    return chance.choice(self._faults)
        return Fault.NONE

    def _chance_of(self, content: Mapping[str, Any]) -> random.Random:
        """The chance of this body. All requests without a body share one."""
        name = _name(content)
        if name not in self._chances:
            seed = f"{self._seed} {len(self._chances)}"
            self._chances[name] = random.Random(seed)  # noqa: S311
        return self._chances[name]


def _name(content: Mapping[str, Any]) -> str:
    return json.dumps(content, sort_keys=True)


def _content(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
