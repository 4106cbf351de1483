"""One mutant: the service with one guard removed or weakened."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

FOLDER = Path(__file__).parent
PROJECT = FOLDER.parents[1]


@dataclass(frozen=True)
class Mutant:
    """A changed text of one file, or statements that change the schema of a database."""

    name: str  # unique: the file, and what was changed in it
    file: str  # from the project's root; for a constraint, the folder of its app
    text: str  # SQL to run, or the whole new text of a Python file
    before: str = ""  # the text without the mutant, if there is one

    @property
    def is_python(self) -> bool:
        return self.file.endswith(".py")

    @property
    def app(self) -> str:
        return self.file.partition("/")[0]


class Stale(Exception):
    """The lists name text, tests or mutants that the code no longer has."""


def numbered(mutants: Iterable[Mutant]) -> list[Mutant]:
    """Adds a number to each repeated name, so that every name means one mutant."""
    seen: Counter[str] = Counter()
    unique = []
    for mutant in mutants:
        seen[mutant.name] += 1
        number = seen[mutant.name]
        unique.append(replace(mutant, name=f"{mutant.name} ({number})") if number > 1 else mutant)
    return unique
