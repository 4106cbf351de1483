"""A shop that buys through the Python library, and is killed at any call of its journal.

    python -m tests.sdk.shop_program BASE_URL API_KEY JOURNAL PURCHASES SEED PRODUCT TOPUP_PRODUCT

The first process starts a fork for each life of the shop. A life ends with SIGKILL before or after
a random call of the journal, or when everything is settled.
"""

import os
import random
import signal
import sys
from collections.abc import Callable
from typing import Any

from voucher_topup import Client, Refused, Rules, SQLiteJournal, top_up, voucher

DEATH = 0.02  # before and after each call
RULES = Rules(first_pause=0.005, longest_pause=0.02, crowd_pause=0.02, progress_pause=0.1)
PATIENCE = 10_000  # lives


class DeadlyJournal:
    """A journal of SQLite around which the process dies."""

    def __init__(self, journal: SQLiteJournal, chance: random.Random) -> None:
        self._journal = journal
        self._chance = chance

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._journal, name)

        def with_death(*arguments: Any) -> Any:
            self._perhaps_die()
            result = call(*arguments)
            self._perhaps_die()
            return result

        return with_death

    def _perhaps_die(self) -> None:
        if self._chance.random() < DEATH:
            os.kill(os.getpid(), signal.SIGKILL)


def live(arguments: list[str], life: int) -> None:
    """Resumes what the last life left, and buys what is missing."""
    base_url, key, path, purchases, seed, product, topup_product = arguments
    journal = SQLiteJournal(path)
    deadly: Any = DeadlyJournal(journal, random.Random(f"{seed} {life}"))
    rules = Rules(**{**vars(RULES), "patience": 5.0})
    with Client(base_url, key, deadly, rules=rules) as client:
        client.resume()
        bought = {entry.order_number for entry in journal.bought_entries()}
        for number in range(int(purchases)):
            name = f"order-{number}"
            if name in bought:
                continue
            content = (
                top_up(int(topup_product), f"player-{number}")
                if number % 4 == 0
                else voucher(1 + number % 2, product_id=int(product))
            )
            outcome = client.buy(name, content)
            while isinstance(outcome, Refused):  # only the network refuses
                outcome = client.retry(name)
        while journal.open_entries():
            client.resume()


def main() -> None:
    for life in range(PATIENCE):
        if (child := os.fork()) == 0:
            live(sys.argv[1:], life)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status == 0:
            print(life)  # noqa: T201
            return
        if not os.WIFSIGNALED(status):
            sys.exit("the shop failed")
    sys.exit("the shop never finished")


if __name__ == "__main__":
    main()
