"""Which tests must notice a mutant of which file: selection.toml."""

import re
import tomllib
from collections.abc import Sequence

import pytest

from labs.mutants.mutant import FOLDER, Mutant, Stale

# What these tests compare is text, or the presence of a guard, not what the guard does.
NOT_BEHAVIOUR = ("tests/structure/", "labs/mutants/")
# Fixtures that take long to start.
SLOW = {"live", "chromium"}
# Controls install SQL without a guard, and then the text of the file: the mutant would be gone.
WEAKENS_SQL = {"weakened_sql", "unlocked_shelves"}


class Selection:
    """The tests for each file, in the order in which they are listed."""

    def __init__(self) -> None:
        listed = tomllib.loads((FOLDER / "selection.toml").read_text())
        self._tests = {
            path: _names(text) for paths, text in listed.items() for path in paths.split()
        }

    @property
    def tests(self) -> list[str]:
        """Every test file or folder that is listed."""
        return sorted({name.partition("::")[0] for names in self._tests.values() for name in names})

    def names(self, mutant: Mutant) -> list[str]:
        """The entry with the longest matching path. Raises Stale if there is none."""
        places = [place for place in self._tests if mutant.file.startswith(place)]
        if not places:
            raise Stale(f"selection.toml has no tests for {mutant.file}")
        return self._tests[max(places, key=len)]

    def of(self, mutant: Mutant, items: Sequence[pytest.Item]) -> list[pytest.Item]:
        """The collected tests of these names. Raises Stale."""
        chosen: dict[str, pytest.Item] = {}
        for name in self.names(mutant):
            found = {item.nodeid: item for item in items if _is_of(item.nodeid, name)}
            chosen |= found
        if not chosen:
            raise Stale(f"selection.toml: nothing tests {mutant.file}")
        return list(chosen.values())


def _names(text: str) -> list[str]:
    """The names in a text, each of which begins with its folder. A name may contain spaces."""
    return re.split(r" (?=tests/|labs/)", " ".join(text.split()))


def is_of_use(item: pytest.Function) -> bool:
    """Whether a failure of this test shows that a guard is missing."""
    fixtures = set(getattr(item, "fixturenames", ()))
    return not (
        item.nodeid.startswith(NOT_BEHAVIOUR)
        or fixtures & SLOW
        or ("control" in item.nodeid and vars(item.module).keys() & WEAKENS_SQL)
    )


def _is_of(nodeid: str, name: str) -> bool:
    return nodeid == name or nodeid.startswith((f"{name}/", f"{name}::", f"{name}["))
