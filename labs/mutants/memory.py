"""Remembers in killed.json which test killed which mutant.

A run goes on where the last one stopped, and tries first what killed a mutant before. The file is
committed: CI tries some of its mutants again.
"""

import json
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

import pytest

from labs.mutants.mutant import FOLDER, PROJECT, Mutant

KILLED = FOLDER / "killed.json"


class Memory:
    """The killers of earlier runs. One counts as long as the mutant and the test are the same."""

    def __init__(self, *, forget: bool, writes: bool) -> None:
        self._forget = forget
        self._writes = writes
        self._known = _read() if KILLED.exists() else {}

    def killer_of(self, mutant: Mutant) -> str:
        """The id of the test that killed the mutant, or ''. With `forget`, always ''."""
        killer, digest = self._known.get(mutant.name, ("", ""))
        return killer if not self._forget and killer and digest == _digest(mutant, killer) else ""

    def keep(self, names: set[str]) -> None:
        """Forgets mutants with other names: their code is gone."""
        self._known = {name: known for name, known in self._known.items() if name in names}

    def was_killed(self, mutant: Mutant) -> bool:
        """Whether any earlier run killed a mutant of this name."""
        return mutant.name in self._known

    def best_first(self, mutant: Mutant, items: Sequence[pytest.Item]) -> list[pytest.Item]:
        """The tests in the order in which they are likely to fail: the one that killed this mutant
        before, then those that killed most of the same file's mutants."""
        before = self._known.get(mutant.name, [""])[0]
        kills = Counter(
            killer for name, (killer, _) in self._known.items() if name.startswith(mutant.file)
        )
        return sorted(items, key=lambda item: (item.nodeid != before, -kills[item.nodeid]))

    def remember(self, mutant: Mutant, killer: str) -> None:
        """Writes the whole file, so that nothing is lost when a run is stopped."""
        self._known[mutant.name] = [killer, _digest(mutant, killer)]
        if self._writes:
            _write(self._known)


def _read() -> dict[str, list[str]]:
    """The killer and the digest, by the name of the mutant. The file has one line for each file
    with mutants: {file: {what was changed: "digest killer"}}."""
    return {
        f"{file}: {change}": known.split(" ", 1)[::-1]
        for file, changes in json.loads(KILLED.read_text()).items()
        for change, known in changes.items()
    }


def _write(known: dict[str, list[str]]) -> None:
    files: dict[str, dict[str, str]] = {}
    for name, (killer, digest) in sorted(known.items()):
        file, _, change = name.partition(": ")
        files.setdefault(file, {})[change] = f"{digest} {killer}"
    lines = [f" {json.dumps(file)}: {json.dumps(files[file])}" for file in sorted(files)]
    KILLED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _digest(mutant: Mutant, killer: str) -> str:
    """Changes with the text of the mutant and with the file of the test."""
    path = PROJECT / killer.partition("::")[0]
    test = path.read_bytes() if path.is_file() else b""
    return sha256(mutant.text.encode() + b"\0" + test).hexdigest()[:8]
