"""Two participants in every order of their database calls, and a sample of crashes and of three.

`make interleavings` runs every schedule of every scenario, with a crash after each call.
"""

import os

import pytest

from labs.interleavings.scenarios import PAIRS, SCENARIOS
from labs.interleavings.search import Search, arena

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]

CRASHES, THREE = 4, 8  # schedules of each scenario, chosen by seeds
# The most schedules of each scenario, with crashes; 0 for the sample.
MOST = int(os.environ.get("INTERLEAVINGS", "0"))


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_order_breaks_the_promise(name: str) -> None:
    with arena(name, SCENARIOS[name]) as scene:
        if MOST:
            found = scene.search(limit=MOST)
            print(found, dict(found.outcomes))  # noqa: T201  what the run counted
        elif name in PAIRS:
            found = scene.search(crashes=0)
            check(scene.sample(CRASHES))
        else:
            found = scene.sample(THREE)
        check(found)

    assert found.schedules > 1


def check(found: Search) -> None:
    assert not found.failures, found.failures[0]
