"""A shop that buys through the Python library, and is killed at any call of its journal.

    python -m tests.sdk.killed_shop TASK

TASK is the JSON of tests.sdk.kills. The first process starts a fork for each life of the shop. A
life ends with SIGKILL before or after a random call of the journal, or when everything is settled.
Prints the number of kills.
"""

import json
import os
import random
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

from voucher_topup import Client, MemoryJournal, Refused, Rules, SQLiteJournal, top_up, voucher
from voucher_topup.journal import Entry

RULES = Rules(
    patience=5.0, first_pause=0.005, longest_pause=0.02, crowd_pause=0.02, progress_pause=0.1
)
PATIENCE = 10_000  # lives


class DeadlyJournal:
    """A journal around whose calls the process dies."""

    def __init__(self, journal: Any, chance: random.Random, death: float) -> None:
        self._journal = journal
        self._chance = chance
        self._death = death  # the chance of it, before and after each call

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._journal, name)

        def with_death(*arguments: Any) -> Any:
            self._perhaps_die()
            result = call(*arguments)
            self._perhaps_die()
            return result

        return with_death

    def _perhaps_die(self) -> None:
        if self._chance.random() < self._death:
            os.kill(os.getpid(), signal.SIGKILL)


class LateJournal(MemoryJournal):
    """The control: it writes a purchase to the file only when it was bought."""

    def __init__(self, file: SQLiteJournal) -> None:
        super().__init__()
        self._file = file

    def settle_bought(self, order_number: str, reference: str, total: str) -> None:
        super().settle_bought(order_number, reference, total)
        if entry := self.find(order_number):
            self._file.write(entry)
        self._file.settle_bought(order_number, reference, total)

    def bought_entries(self) -> Sequence[Entry]:
        return self._file.bought_entries()


def live(task: dict[str, Any], life: int) -> None:
    """Resumes what the last life left, and buys what is missing."""
    file = SQLiteJournal(task["journal"])
    journal = LateJournal(file) if task["late"] else file
    deadly: Any = DeadlyJournal(journal, random.Random(f"{task['seed']} {life}"), task["death"])
    with Client(task["base_url"], task["key"], deadly, rules=RULES) as client:
        client.resume()
        bought = {entry.order_number for entry in journal.bought_entries()}
        for number in range(task["purchases"]):
            name = f"order-{number}"
            if name in bought:
                continue
            content = (
                top_up(task["topup_product"], f"player-{number}")
                if number % 4 == 0
                else voucher(1 + number % 2, product_id=task["product"])
            )
            outcome = client.buy(name, content)
            while isinstance(outcome, Refused):  # only the network refuses
                outcome = client.retry(name)
        while journal.open_entries():
            client.resume()


def main() -> None:
    for life in range(PATIENCE):
        if (child := os.fork()) == 0:
            live(json.loads(sys.argv[1]), life)
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
