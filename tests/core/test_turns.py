"""Requests that wait for their turn: one at a time, owners in turn, and never too many."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from core.http.turns import NoPlace, Turns
from tests.tasks.running import wait_until

PLENTY = 100


def make_turns(*, of_owner: int = PLENTY, of_group: int = PLENTY, places: int = PLENTY) -> Turns:
    return Turns(of_owner=of_owner, of_group=of_group, places=places)


def order_of_turns(turns: Turns, owners: str) -> str:
    """The owners in the order of their turns, if they arrive in this order and each has to wait."""
    went: list[str] = []

    def wait(owner: str) -> None:
        with turns.turn(owner, group="net"):
            went.append(owner)

    with ThreadPoolExecutor(len(owners)) as pool, turns.turn("first", group="net"):
        for number, owner in enumerate(owners, start=2):
            pool.submit(wait, owner)
            wait_until(lambda number=number: len(turns._here) == number, "it waits")  # type: ignore[misc]
    return "".join(went)


def test_owners_take_turns() -> None:
    assert order_of_turns(make_turns(), "aaabcb") == "abcaba"


def test_a_request_that_gives_up_takes_nobody_elses_turn() -> None:
    turns = make_turns()
    first, second = turns._enter("a", "net"), turns._enter("a", "net")
    turns._enter("b", "net")

    turns._leave(second)

    assert turns._next() is first


def test_one_request_has_its_turn_at_a_time() -> None:
    turns, inside, most = make_turns(), 0, 0
    counting = threading.Lock()

    def work(owner: int) -> None:
        nonlocal inside, most
        with turns.turn(owner % 3, group="net"):
            with counting:
                inside += 1
                most = max(most, inside)
            threading.Event().wait(0.001)
            with counting:
                inside -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(60)))
    assert most == 1
    assert not turns._here
    assert not turns._owners


@pytest.mark.parametrize(
    ("limit", "here", "refused", "accepted"),
    [
        ("of_owner", [("a", 1), ("a", 2)], ("a", 3), ("b", 3)),
        ("of_group", [("a", 1), ("b", 1)], ("c", 1), ("c", 2)),
        ("places", [("a", 1), ("b", 2)], ("c", 3), None),
    ],
)
def test_a_request_without_a_place_is_refused_at_once(
    limit: str,
    here: list[tuple[str, int]],
    refused: tuple[str, int],
    accepted: tuple[str, int] | None,
) -> None:
    turns = make_turns(**{limit: 2})
    with ExitStack() as entered:
        for owner, group in here:
            entered.callback(turns._leave, turns._enter(owner, group))
        with pytest.raises(NoPlace):
            turns._enter(*refused)
        if accepted:
            entered.callback(turns._leave, turns._enter(*accepted))
    with turns.turn(refused[0], group=refused[1]):  # there is room again
        pass


def test_a_request_that_fails_gives_its_turn_on() -> None:
    turns = make_turns()
    with pytest.raises(ZeroDivisionError), turns.turn("a", group="net"):
        1 / 0  # noqa: B018
    with turns.turn("b", group="net"):
        pass
