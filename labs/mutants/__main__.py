"""`make mutants`: every guard is removed or weakened once, and a test of behaviour must fail.

python -m labs.mutants                   all mutants; goes on where the last run stopped
python -m labs.mutants 'wallets/.*drop'  those whose name matches a regular expression
python -m labs.mutants --sample 12       some that were killed before, others for each commit
python -m labs.mutants --list            only their names
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from hashlib import sha256

import pytest

from labs.mutants.memory import Memory
from labs.mutants.mutant import PROJECT, Mutant
from labs.mutants.report import report
from labs.mutants.runner import Runner


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 if every mutant was killed or has a written reason."""
    options = _parser().parse_args(arguments)
    memory = Memory(forget=options.again or options.sample > 0, writes=not options.sample)
    runner = Runner(partial(_choose, options, memory), memory)
    quiet = ["-q", "--no-header", "--no-summary", "--capture=no", "-p", "no:cacheprovider"]
    code = pytest.main([*quiet, "--reuse-db", *runner.arguments], plugins=[runner])
    if runner.verdicts:
        print(report(runner.verdicts))  # noqa: T201
    return int(code) or int(any(verdict.failed for verdict in runner.verdicts))


def _choose(options: argparse.Namespace, memory: Memory, mutants: list[Mutant]) -> list[Mutant]:
    """The mutants that the command line names. A sample is of mutants that were killed before."""
    chosen = [mutant for mutant in mutants if re.search(options.pattern, mutant.name)]
    if options.sample:
        commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=PROJECT)
        chosen = [mutant for mutant in chosen if memory.was_killed(mutant)]
        chosen.sort(key=lambda mutant: sha256(commit + mutant.name.encode()).digest())
        chosen = chosen[: options.sample]
    if options.list:
        print(*(mutant.name for mutant in chosen), sep="\n")  # noqa: T201
        return []
    return chosen


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m labs.mutants", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("pattern", nargs="?", default="", help="a regular expression")
    parser.add_argument(
        "--sample", type=int, default=0, metavar="N", help="try N again that were killed"
    )
    parser.add_argument("--again", action="store_true", help="try those that were killed before")
    parser.add_argument("--list", action="store_true", help="only print their names")
    return parser


if __name__ == "__main__":
    sys.exit(main())
