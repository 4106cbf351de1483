"""Compares the ledger with the signed roots in the database and in logs that left the host.

Python computes every hash again from the fields of the entries. No function or trigger of the
database takes part, so its owner cannot hide a change by replacing them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from core.database.functions import snapshot
from core.files.log_files import read_events
from core.inputs import InputProblem
from wallets.evidence.chain import Leaf, merkle_root
from wallets.evidence.roots import EVENT, FIRST, Root, read_entries, stored_root
from wallets.models import RootLeaf, SignedRoot

FINDINGS_SHOWN = 100


@dataclass
class _Found:
    findings: list[str] = field(default_factory=list)
    entries: int = 0
    roots: int = 0

    def add(self, finding: str) -> None:
        if len(self.findings) < FINDINGS_SHOWN:
            self.findings.append(finding)


def verify_ledger(*, files: Sequence[Path] = ()) -> dict[str, Any]:
    """Computes every chain and every root again.

    Returns `{"ok", "entries", "roots", "logged", "findings"}`. `files` are logs. A logged root is a
    finding if it is missing in the database, differs there, or does not carry our signature. Reads
    one snapshot. Changes nothing. Raises InputProblem if the files together have no root, or if a
    file or the line of a root cannot be read.
    """
    logged = _roots_in_logs(files)
    found = _Found()
    with snapshot():
        chains = _verify_chains(found)
        roots = _verify_roots(chains, found)
    for place, root in logged:
        stored = roots.get(root.number)
        if not root.is_signed():
            found.add(f"{place}: root {root.number} does not carry our signature")
        elif stored is None:
            found.add(f"{place}: root {root.number} is missing in the database")
        elif stored != root:
            found.add(f"{place}: root {root.number} differs from the one in the database")
    return {
        "ok": not found.findings,
        "entries": found.entries,
        "roots": found.roots,
        "logged": len(logged),
        "findings": found.findings,
    }


def _verify_chains(found: _Found) -> dict[int, bytes]:
    """Adds a finding for each changed entry. Returns the chain's value after each entry that a
    root names, by the entry's id."""
    wanted = set(RootLeaf.objects.values_list("last_entry", flat=True))
    values: dict[int, bytes] = {}
    wallet = 0
    chain: bytes | None = None
    for entry in read_entries():
        found.entries += 1
        if entry.wallet != wallet:
            wallet, chain = entry.wallet, None
        chain = entry.chained(chain)
        if entry.chain != chain:
            found.add(f"entry {entry.pk} of wallet {wallet} was changed, or one before it was")
            chain = entry.chain  # reports the next one only if it was changed too
        if entry.pk in wanted:
            values[entry.pk] = chain
    return values


def _verify_roots(chains: dict[int, bytes], found: _Found) -> dict[int, Root]:
    leaves: dict[int, bytes] = {}  # by wallet
    roots: dict[int, Root] = {}
    before = 0, FIRST
    moved = _leaves_by_root()
    for row in SignedRoot.objects.order_by("number"):
        root = stored_root(row)
        found.roots += 1
        for wallet, last in moved.get(root.number, ()):
            leaves[wallet] = Leaf(wallet, last, chains.get(last, b"")).hash()
        if not root.is_signed():
            found.add(f"root {root.number} does not carry our signature")
        if (root.number - 1, root.previous) != before:
            found.add(f"root {root.number} does not follow the root before it")
        if root.root != merkle_root([leaves[wallet] for wallet in sorted(leaves)]):
            found.add(f"root {root.number} does not fit the ledger: an entry before it was changed")
        roots[root.number], before = root, (root.number, root.digest())
    return roots


def _leaves_by_root() -> dict[int, list[tuple[int, int]]]:
    moved: dict[int, list[tuple[int, int]]] = {}
    for number, wallet, last in RootLeaf.objects.values_list("root", "wallet", "last_entry"):
        moved.setdefault(number, []).append((wallet, last))
    return moved


def _roots_in_logs(files: Sequence[Path]) -> list[tuple[str, Root]]:
    roots: list[tuple[str, Root]] = []
    if not files:
        return roots
    for line in read_events(files, EVENT):
        root = _parse(line.values)
        if root is None:
            raise InputProblem(f"{line.place}: this line is damaged")
        roots.append((line.place, root))
    if not roots:
        raise InputProblem("The files have no line of a root. The logs of workers have them.")
    return roots


def _parse(values: dict[str, Any] | None) -> Root | None:
    """The root of a line; None if it is damaged."""
    try:
        values = values or {}
        return Root(
            number=int(values["number"]),
            signed_at=datetime.fromisoformat(values["signed_at"]),
            previous=bytes.fromhex(values["previous"]),
            wallets=int(values["wallets"]),
            root=bytes.fromhex(values["root"]),
            public_key=bytes.fromhex(values["public_key"]),
            signature=bytes.fromhex(values["signature"]),
        )
    except (KeyError, TypeError, ValueError):
        return None
