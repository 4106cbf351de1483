"""A schedule runs again from the line that a failure prints.

SCHEDULE="same-key:0,1,1,0c" make test ARGS="-n0 labs/interleavings/test_replay.py"
"""

import os
import re

import pytest

from labs.interleavings.controls import CONTROLS
from labs.interleavings.scenarios import SCENARIOS
from labs.interleavings.scheduler import NotDeterministic
from labs.interleavings.search import arena

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]

SCHEDULE = os.environ.get("SCHEDULE", "last-money:0,0,1,0,0c,1")


def test_the_chosen_schedule() -> None:
    name, _, choices = SCHEDULE.partition(":")
    with arena(name, SCENARIOS[name]) as scene:
        trace, problems = scene.run(choices.split(","))

    assert trace.schedule.startswith(choices), trace.steps()
    assert not problems, f"{problems}\n{trace.steps()}"


def test_a_failing_schedule_fails_again_from_its_line() -> None:
    control = CONTROLS["two refunds without the row lock"]
    with control.arena() as scene:
        found = scene.search()
        line = found.failures[0].splitlines()[0]
        choices = re.findall(r":([0-9c,]+)\"", line)[0].split(",")

        trace, problems = scene.run(choices)

    assert problems, trace.steps()
    assert trace.schedule == ",".join(choices)


def test_an_impossible_schedule_is_refused() -> None:
    with arena("last-money", SCENARIOS["last-money"]) as scene:
        with pytest.raises(NotDeterministic, match="5 is none of"):
            scene.run(["5"])
        _, problems = scene.run([])

    assert problems == []
