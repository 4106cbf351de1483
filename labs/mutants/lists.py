"""The lists in `lists/`: mutants of Python, and of SQL where no rule makes them.

    "wallets/views.py: another account's wallet" = ['filter(account=caller)', 'order_by("pk")']

An entry is a name, the old text and the new text. The name begins with the file, in which the first
old text is replaced.
equivalent.toml names the mutants that no test can tell from the service, each with the reason.
"""

import tomllib

from labs.mutants.mutant import FOLDER, PROJECT, Mutant, Stale


def listed_mutants() -> list[Mutant]:
    """Every mutant of the lists. Raises Stale if a file no longer has the old text."""
    mutants = []
    for path in sorted((FOLDER / "lists").glob("*.toml")):
        for name, (old, new) in tomllib.loads(path.read_text()).items():
            file = name.partition(": ")[0]
            text = (PROJECT / file).read_text()
            if old not in text:
                raise Stale(f"{path.name}: the file no longer has the text of: {name}")
            mutants.append(Mutant(name, file, text.replace(old, new, 1), before=text))
    return mutants


def equivalents() -> dict[str, str]:
    """The written reason for each mutant that survives, by the name of the mutant."""
    return tomllib.loads((FOLDER / "equivalent.toml").read_text())


def unguarded() -> list[str]:
    """The files that have no mutant, with *; unguarded.toml has the reasons."""
    reasons = tomllib.loads((FOLDER / "unguarded.toml").read_text())
    return " ".join(reasons.values()).split()
