"""Costly requests that wait for each other in a web process, so that the others do not wait.

A process has more threads than can work at the same time (WEB_THREADS in embedded/commands.py).
Requests that wait here take no processor time. Each line has fewer places than a process has
threads.
"""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition


class NoPlace(Exception):
    """Too many such requests are here already."""


@dataclass(frozen=True, eq=False)
class _Request:
    owner: Hashable
    group: Hashable


class Turns:
    """One request at a time. Owners take turns; requests of one owner go in order of arrival.

    At most `of_owner` requests of one owner may be here, `of_group` of one group, such as an
    address or an account, and `places` of all together. The one that has its turn counts, too. All
    of it is in memory, so a process that ends leaves nothing behind.
    """

    def __init__(self, *, of_owner: int, of_group: int, places: int) -> None:
        self._of_owner, self._of_group, self._places = of_owner, of_group, places
        self._changed = Condition()
        self._here: list[_Request] = []  # in order of arrival
        self._owners: list[Hashable] = []  # of requests that are here, in order of their turns

    @contextmanager
    def turn(self, owner: Hashable, *, group: Hashable) -> Iterator[None]:
        """Waits until it is the turn of this request, which lasts as long as the block.

        Raises NoPlace at once if too many requests are here.
        """
        request = self._enter(owner, group)
        try:
            with self._changed:
                self._changed.wait_for(lambda: self._next() is request)
            yield
        finally:
            self._leave(request)

    def _enter(self, owner: Hashable, group: Hashable) -> _Request:
        with self._changed:
            of_owner = sum(one.owner == owner for one in self._here)
            of_group = sum(one.group == group for one in self._here)
            if (
                of_owner >= self._of_owner
                or of_group >= self._of_group
                or len(self._here) >= self._places
            ):
                raise NoPlace
            request = _Request(owner, group)
            self._here.append(request)
            if owner not in self._owners:
                self._owners.append(owner)
            return request

    def _next(self) -> _Request:
        return next(one for one in self._here if one.owner == self._owners[0])

    def _leave(self, request: _Request) -> None:
        with self._changed:
            had_its_turn = self._next() is request
            self._here.remove(request)
            still_here = any(one.owner == request.owner for one in self._here)
            if had_its_turn or not still_here:
                self._owners.remove(request.owner)
            if had_its_turn and still_here:
                self._owners.append(request.owner)
            self._changed.notify_all()
