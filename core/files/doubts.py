"""Doubts about a file: what a person must confirm before it is imported, one by one."""

from collections import Counter
from collections.abc import Collection, Iterable
from hashlib import sha256

from django.utils.translation import gettext_noop

from core.inputs import InputProblem

ID_LENGTH = 8
ADVICE = gettext_noop("Correct the file, or confirm each doubt.")


class Doubts:
    """Collects doubts while a file is read. The sentences are in English, as they are stored."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], dict[str, object]] = {}
        self._counts = Counter[tuple[str, str]]()

    def add(
        self, template: str, *, name: str = "", line: int = 0, once: str = "", **more: object
    ) -> None:
        """Counts a doubt of this kind about this name. The values of the first one are shown.
        Doubts with the same `once` count as one kind."""
        kind = template, once or name
        if kind not in self._found:
            self._found[kind] = {"name": name, "line": line, **more}
        self._counts[kind] += 1

    def sentences(self) -> list[str]:
        """A sentence for each doubt."""
        return [
            kind[0] % {**values, "count": f"{self._counts[kind]:,}"}
            for kind, values in self._found.items()
        ]


class Doubtful(InputProblem):
    """The file has doubts that nobody has confirmed. `doubts` are all of its doubts."""

    def __init__(self, doubts: list[str], open_doubts: list[str]) -> None:
        texts = [f"[{doubt_id(one)}] {one}" for one in open_doubts]
        super().__init__(" ".join([*texts, ADVICE]), problems=[*texts, ADVICE])
        self.doubts = doubts


def doubt_id(doubt: str) -> str:
    """A short text that identifies a doubt: another count or line is another doubt."""
    return sha256(doubt.encode()).hexdigest()[:ID_LENGTH]


def refuse_doubts(doubts: Iterable[str], confirmed: Collection[str]) -> None:
    """Raises Doubtful unless the id of each doubt is confirmed."""
    every = list(doubts)
    if still := [one for one in every if doubt_id(one) not in confirmed]:
        raise Doubtful(every, still)
