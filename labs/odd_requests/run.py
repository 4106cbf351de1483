"""Sends odd requests and judges them."""

import random
import sys
import time
from collections import Counter
from dataclasses import dataclass

from labs.odd_requests.judging import Judge
from labs.odd_requests.making import Maker
from labs.odd_requests.sending import InProcess, OverHttp
from labs.odd_requests.world import World
from tests.live import LiveServer

BATCH = 25  # requests between two looks at the books; more when looks take longer:
LOOKING = 0.1  # the share of the time that looks may take
HTTP = 0.03  # of all requests travel over a socket
GARBAGE = 0.002
ENOUGH = 20  # problems that end the run


@dataclass(frozen=True)
class Result:
    """The result of a run: the answers by outcome, and every problem."""

    sent: int
    over_http: int
    seconds: float
    counted: Counter[str]
    problems: list[str]


def send_all(
    world: World,
    *,
    count: int,
    seed: int,
    server: LiveServer,
    minutes: float = float("inf"),
    progress: bool = False,
) -> Result:
    """Sends `count` requests of a seed, one after the other, or fewer in so many minutes."""
    maker, judge = Maker(world, seed), Judge(world)
    inside, http = InProcess(), OverHttp(server, seed)
    chance = random.Random(seed)
    began, shown, over_http = time.monotonic(), time.monotonic(), 0
    judge.books()
    number = told = 0
    looked, look_seconds = began, 0.0
    for number in range(1, count + 1):
        odd = maker.make(number)
        if chance.random() < HTTP and http.can_send(odd):
            over_http += 1
            reply = http.send(odd)
        else:
            reply = inside.send(odd)
        if reply is None:
            judge.counted["refused as HTTP"] += 1
        else:
            judge.answer(odd, reply)
        if chance.random() < GARBAGE:
            status = http.send_garbage()
            judge.counted[f"garbage: {status}"] += 1
            if status is not None and status >= 500:
                judge.problems.append(f"garbage after request {number}: {status}")
        now = time.monotonic()
        due = number % BATCH == 0 and now - looked >= look_seconds / LOOKING
        late = now > began + 60 * minutes
        if due or late or number == count:
            judge.books()
            looked, look_seconds = time.monotonic(), time.monotonic() - now
            if late or len(judge.problems) >= ENOUGH:
                break
        if progress and time.monotonic() > shown + 10:
            shown = time.monotonic()
            rate = number / (shown - began)
            new, told = judge.problems[told:], len(judge.problems)
            print(f"{number:,} requests, {rate:.0f}/s", *new, sep="\n", file=sys.stderr)  # noqa: T201
    seconds = time.monotonic() - began
    return Result(number, over_http, seconds, judge.counted, judge.problems)
