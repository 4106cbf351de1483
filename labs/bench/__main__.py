"""Runs the benchmarks, prints a table of all measures and writes the report."""

import argparse
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import django

from embedded.commands import WEB_THREADS
from embedded.supervisor import WEB_WORKERS

django.setup()

from labs.bench.data import wait_until_idle  # noqa: E402
from labs.bench.load import MISSING, BenchError, find_wrk  # noqa: E402
from labs.bench.machine import describe_machine  # noqa: E402
from labs.bench.measures import MEASURES, Measure  # noqa: E402
from labs.bench.report import show_table, write_report  # noqa: E402
from labs.bench.subjects import SUBJECTS  # noqa: E402
from labs.bench.world import FULL, QUICK, TINY, Sizes, World, make_world, screen  # noqa: E402

REPORT = Path("docs/benchmarks.md")
SIZES = {"full": FULL, "quick": QUICK, "tiny": TINY}


def main(arguments: Sequence[str] | None = None) -> int | str:
    """Runs the command line. Returns an exit code, or one line that says what failed."""
    options = _parser().parse_args(arguments)
    measures = [m for m in MEASURES if not options.only or m.name in options.only]
    sizes: Sizes = SIZES[options.size]
    if options.rounds:
        sizes = replace(sizes, rounds=options.rounds)
    if find_wrk() is None:
        return MISSING
    machine = describe_machine() | {
        "web": f"{options.workers} processes; with WSGI, {options.threads} threads each"
    }
    try:
        with (
            tempfile.TemporaryDirectory(prefix="voucher-bench-") as folder,
            make_world(
                sizes, Path(folder), workers=options.workers, threads=options.threads
            ) as world,
        ):
            rounds = run_rounds(world, measures)
    except BenchError as error:
        return str(error)
    print(show_table(measures, rounds, sizes=sizes))  # noqa: T201
    if options.report:
        write_report(options.report, measures, rounds, sizes=sizes, machine=machine)
        screen.line(f"\nWritten: {options.report}")
    return 0


def run_rounds(world: World, measures: Sequence[Measure]) -> dict[str, list[float]]:
    """Runs each subject once per round, and returns the figures of all rounds by name.

    Each round has another order, the same in every run: a program may pay for the one before it.
    """
    wanted = {figure for measure in measures for figure in measure.figures}
    subjects = [subject for subject in SUBJECTS if wanted & set(subject.figures)]
    rounds: dict[str, list[float]] = defaultdict(list)
    for subject in subjects:
        if subject.warm and world.sizes.warm:
            screen.line(f"warming up: {', '.join(subject.figures)}")
            subject.run(world)
    for number in range(world.sizes.rounds):
        due = [subject for subject in subjects if number < (subject.rounds or world.sizes.rounds)]
        Random(number).shuffle(due)
        for place, subject in enumerate(due, start=1):
            wait_until_idle(os.environ["DATABASE_URL"])
            figures = subject.run(world)
            for name in subject.figures:
                rounds[name].append(figures[name])
                where = f"round {number + 1} of {world.sizes.rounds}, {place:>2} of {len(due)}"
                screen.line(f"{where}  {name:<44} {figures[name]:>12,.2f}")
    return {name: rounds[name] for subject in subjects for name in subject.figures}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument(
        "--size", choices=SIZES, default="full", help="amount of data and length of a run"
    )
    parser.add_argument(
        "--quick", dest="size", action="store_const", const="quick", help="same as --size quick"
    )
    parser.add_argument("--rounds", type=int, help="number of runs of each subject")
    parser.add_argument("--workers", type=int, default=WEB_WORKERS, help="processes per program")
    parser.add_argument("--threads", type=int, default=WEB_THREADS, help="threads per WSGI process")
    parser.add_argument("--report", type=Path, help=f"file of the report, such as {REPORT}")
    parser.add_argument(
        "--only", action="append", choices=[measure.name for measure in MEASURES], metavar="NAME",
        help="run only this measure (repeatable): " + ", ".join(m.name for m in MEASURES),
    )  # fmt: skip
    return parser


if __name__ == "__main__":
    sys.exit(main())
