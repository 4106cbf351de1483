"""Two participants in every order of their database calls, and a sample of crashes and of three.

`make interleavings` runs every schedule of every scenario, with a crash after each call
(labs/interleavings/__main__.py).
"""

import pytest

from labs.interleavings.scenarios import INSIDE, PAIRS, SCENARIOS, TRIOS
from labs.interleavings.search import Search, arena

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]

CRASHES, THREE = 4, 8  # schedules of each scenario, chosen by seeds


@pytest.mark.parametrize("name", PAIRS)
def test_every_order_of_two(name: str) -> None:
    with arena(name, PAIRS[name]) as scene:
        found = scene.search(crashes=0)
        check(found)
        check(scene.sample(CRASHES))

    assert found.schedules > 1


@pytest.mark.parametrize("name", [*TRIOS, *INSIDE])
def test_some_orders_of_three(name: str) -> None:
    with arena(name, SCENARIOS[name]) as scene:
        check(scene.sample(THREE))


def check(found: Search) -> None:
    assert not found.failures, found.failures[0]
