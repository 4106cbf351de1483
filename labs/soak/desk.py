"""Operators who end the top-ups while they are bought, and remember what they were told."""

import random
import threading
from collections import Counter
from collections.abc import Sequence

from django.db import Error, connection

from tests.factories import move_now
from topups.fulfilment.fulfilments import MoveRefused, Operator
from topups.fulfilment.transitions import ENDING, OPEN, Move
from topups.models import Fulfilment, RejectReason

AT_ONCE = 100
# How an operator goes on with an order: the moves, and how often of 100.
WAYS = [
    ((Move.COMPLETE,), 55),
    ((Move.CLAIM, Move.COMPLETE), 18),
    ((Move.REJECT,), 20),
    ((Move.CLAIM, Move.REVIEW, Move.REJECT), 3),
    ((Move.CLAIM, Move.REVIEW, Move.REJECT_UNREFUNDED), 2),
    ((Move.CLAIM, Move.RELEASE, Move.COMPLETE), 2),
]


class Desk(threading.Thread):
    """One operator. `told` has the move by which each order ended, as the service confirmed it."""

    def __init__(self, operator: Operator, seed: int) -> None:
        super().__init__(name=f"desk of {operator.user}")
        self._operator = operator
        self._chance = random.Random(seed)
        self._over = threading.Event()
        self.told: dict[str, Move] = {}
        self.counted: Counter[str] = Counter()

    def run(self) -> None:
        while not self._over.wait(0.2):
            try:
                self._work()
            except Error:  # the database is gone; look again when it is back
                self.counted["database lost"] += 1
                connection.close()
        connection.close()

    def finish(self) -> None:
        self._over.set()
        self.join()

    def _work(self) -> None:
        newest_last = Fulfilment.objects.filter(status__in=OPEN).order_by("pk")
        found = list(newest_last.values_list("order_reference", flat=True)[:AT_ONCE])
        self._chance.shuffle(found)
        for reference in found:
            self._end(reference)

    def _end(self, reference: str) -> None:
        moves: Sequence[Move] = self._chance.choices(*zip(*WAYS, strict=True))[0]
        for move in moves:
            try:
                move_now(
                    reference=reference,
                    move=move,
                    operator=self._operator,
                    reason=self._chance.choice(list(RejectReason)),
                )
            except MoveRefused:  # another operator was faster
                self.counted["refused"] += 1
                return
            self.counted[move] += 1
            if move in ENDING:
                self.told[reference] = move
