"""The report of a run."""

from collections.abc import Iterator, Sequence

from labs.mutants.runner import Verdict

COLUMNS = "{:<14}{:>9}{:>9}{:>12}{:>10}{:>8}"


def report(verdicts: Sequence[Verdict]) -> str:
    """A table by app, the written reasons, and what has failed."""
    return "\n".join(_lines(verdicts))


def _lines(verdicts: Sequence[Verdict]) -> Iterator[str]:
    for verdict in verdicts:
        if verdict.equivalent:
            yield f"equivalent: {verdict.mutant.name}\n    {verdict.equivalent}"
    for verdict in verdicts:
        if verdict.failed:
            yield f"{verdict.stale or 'SURVIVED'}: {verdict.mutant.name}"
    yield COLUMNS.format("", "mutants", "killed", "equivalent", "survived", "stale")
    for app in sorted({verdict.mutant.app for verdict in verdicts}):
        yield _row(app, [verdict for verdict in verdicts if verdict.mutant.app == app])
    yield _row("all", verdicts)


def _row(title: str, verdicts: Sequence[Verdict]) -> str:
    killed = sum(bool(verdict.killer) for verdict in verdicts)
    equivalent = sum(bool(verdict.equivalent) for verdict in verdicts)
    stale = sum(bool(verdict.stale) for verdict in verdicts)
    survived = len(verdicts) - killed - equivalent - stale
    return COLUMNS.format(title, len(verdicts), killed, equivalent, survived, stale)
