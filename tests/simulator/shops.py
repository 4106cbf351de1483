"""Shops for the exam, right and wrong: `python shops.py NAME`. A right one buys as the
documentation says, one order after the other or four at once."""

import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

SECOND = float(os.environ["VOUCHER_SECOND"])
LATE = 90 * SECOND
PAUSE = 0.3
RESULTS, FOLDER = Path(os.environ["EXAM_RESULTS"]), Path(os.environ["EXAM_FOLDER"])


class Shop:
    """A right shop. It keeps the key of an order in a file, and rests as long as a 429 says."""

    workers = 1

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.rest_until = 0.0

    def run(self) -> None:
        text = RESULTS.read_text() if RESULTS.exists() else ""
        orders = map(json.loads, Path(os.environ["EXAM_ORDERS"]).read_text().splitlines())
        with ThreadPoolExecutor(self.workers) as pool:
            todo = (order for order in orders if f'"{order["order_number"]}", "out' not in text)
            list(pool.map(self.settle, todo))

    def settle(self, order: dict[str, Any]) -> None:
        bought = self.buy(order)
        result = {"order_number": order["order_number"], "outcome": "refused"}
        if bought:
            result |= {"outcome": "bought", "reference": bought["reference"]}
            result["total"] = bought["total_price"]
        with self.lock, RESULTS.open("a") as file:
            file.write("\n" + json.dumps(result) + "\n")  # a kill may have cut the line before

    def buy(self, order: dict[str, Any]) -> dict[str, str] | None:
        """The order, or None if it is refused."""
        place = FOLDER / order["order_number"]
        started_before = place.exists()
        if not started_before:
            place.with_suffix(".new").write_text(str(uuid.uuid4()))
            place.with_suffix(".new").rename(place)
        unknown_at = time.monotonic() if started_before else None
        while True:
            self.rest()
            sent = time.monotonic()
            status, answer = self.call("POST", "/orders", order["body"], self.key(place))
            error = answer.get("error", {})
            if error.get("code") == "request_abandoned":
                status, answer = self.call("GET", f"/orders/{error['reference']}")
            if status in (200, 201) and answer.get("success"):
                return dict(answer["data"])
            pause = PAUSE
            if error.get("code") == "rate_limited":
                self.limit(error["retry_after_seconds"])
            elif self.is_unknown(status, error):
                unknown_at = time.monotonic()
            elif unknown_at is None:
                return None
            elif error["code"] == "order_refused":
                if self.is_final(sent, unknown_at):
                    return None
                pause = unknown_at + LATE - time.monotonic()
            time.sleep(max(PAUSE, pause))

    def key(self, place: Path) -> str:
        return place.read_text()

    def is_unknown(self, status: int, error: dict[str, Any]) -> bool:
        codes = (None, "request_in_progress", "request_abandoned")
        return not 400 <= status < 500 or error.get("code") in codes

    def is_final(self, sent: float, unknown_at: float) -> bool:
        return sent >= unknown_at + LATE

    def limit(self, seconds: float) -> None:
        self.rest_until = time.monotonic() + seconds

    def rest(self) -> None:
        while (wait := self.rest_until - time.monotonic()) > 0:
            time.sleep(wait)

    def call(
        self, method: str, path: str, body: dict[str, Any] | None = None, key: str = ""
    ) -> tuple[int, dict[str, Any]]:
        """Status 0, or an answer without content, is not from the service."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(os.environ["VOUCHER_BASE_URL"] + path, data, method=method)
        request.add_header("Authorization", f"Bearer {os.environ['VOUCHER_API_KEY']}")
        if key:
            request.add_header("Content-Type", "application/json")
            request.add_header("Idempotency-Key", key)
        try:
            try:
                with urllib.request.urlopen(request, timeout=35) as response:
                    status, text = response.status, response.read()
            except urllib.error.HTTPError as error:
                status, text = error.code, error.read()
            answer = json.loads(text, parse_float=str)
        except (OSError, ValueError, urllib.error.URLError):
            return 0, {}
        return status, answer if isinstance(answer, dict) else {}


class Concurrent(Shop):
    workers = 4


class RefusesEverything(Shop):
    def buy(self, _order: dict[str, Any]) -> None:
        return None


class BelievesTheFirstRefusal(Shop):
    def is_final(self, _sent: float, _unknown_at: float) -> bool:
        return True


class TakesAnyErrorForARefusal(Concurrent):
    def is_unknown(self, _status: int, _error: dict[str, Any]) -> bool:
        return False


class ChangesItsKey(Concurrent):
    def key(self, _place: Path) -> str:
        return str(uuid.uuid4())


class IgnoresTheLimit(Concurrent):
    def limit(self, seconds: float) -> None:
        """Sends again after the usual pause."""


if __name__ == "__main__":
    globals()[sys.argv[1]]().run()
