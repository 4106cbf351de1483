"""`make interleavings`: every schedule of every scenario and of the controls, and every kill.

python -m labs.interleavings [NAME ...] [--limit SCHEDULES]

A name is that of a scenario, of a control, or of an operation that is killed.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import django
from django.conf import settings

from embedded.environment import SERVICE


def main() -> int:
    options = _options()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    os.environ.setdefault("LOG_LEVEL", "CRITICAL")
    django.setup()
    from labs.interleavings.controls import CONTROLS  # noqa: PLC0415  after the set-up
    from labs.interleavings.kills.operations import NAMES  # noqa: PLC0415
    from labs.interleavings.scenarios import SCENARIOS  # noqa: PLC0415

    names = options.names or [*SCENARIOS, *CONTROLS, *NAMES]
    failures: list[str] = []
    settings.SERVICE_ROLE = SERVICE  # this process is the owner, as in conftest.py
    with _test_database():
        for name in (name for name in names if name in SCENARIOS):
            failures += _search(name, options.limit)
        for name in (name for name in names if name in CONTROLS):
            failures += _search_without_guard(name)
    if killed := [name for name in names if name in NAMES]:
        failures += _kill(killed)
    _write("".join(f"{failure}\n" for failure in failures) or "No failures.\n")
    return 1 if failures else 0


def _search(name: str, limit: int | None) -> list[str]:
    from django.core.management import call_command  # noqa: PLC0415

    from labs.interleavings.scenarios import SCENARIOS  # noqa: PLC0415
    from labs.interleavings.search import arena  # noqa: PLC0415

    call_command("flush", interactive=False, verbosity=0)
    begin, cpu = time.monotonic(), time.process_time()
    with arena(name, SCENARIOS[name]) as scene:
        found = scene.search(limit=limit, progress=_progress)
    took, cpu = time.monotonic() - begin, time.process_time() - cpu
    _write(f"{found}; {took:.0f} s, {1000 * cpu / found.schedules:.0f} ms each\n")
    for outcome, number in sorted(found.outcomes.items()):
        _write(f"    {number:6} {', '.join(outcome)}\n")
    return found.failures


def _search_without_guard(name: str) -> list[str]:
    from django.core.management import call_command  # noqa: PLC0415

    from labs.interleavings.controls import CONTROLS  # noqa: PLC0415

    call_command("flush", interactive=False, verbosity=0)
    found = CONTROLS[name].search()
    if not found.failures:
        return [f"without a guard: {name}: no schedule fails"]
    _write(f"without a guard: {name}: schedule {found.schedules} fails\n")
    return []


def _kill(names: list[str]) -> list[str]:
    from labs.installation.postgres import durable_postgres  # noqa: PLC0415
    from labs.interleavings.kills.killing import Victim, kill_everywhere, running_zygote  # noqa: PLC0415
    from labs.interleavings.kills.operations import operations  # noqa: PLC0415
    from operators.upkeep.reconcile import reconcile  # noqa: PLC0415

    failures: list[str] = []
    with durable_postgres() as durable, running_zygote(durable) as zygote, operations() as found:
        for name in names:
            begin = time.monotonic()
            counted = kill_everywhere(zygote, found[name])
            took = time.monotonic() - begin
            kills = ", ".join(f"{counted.kills[victim]} kills of {victim}" for victim in Victim)
            _write(f"{name}: {counted.calls} calls, {kills}; {took:.0f} s\n")
            failures += counted.failures
        failures += [str(finding) for finding in reconcile(decrypt=True)["findings"]]
    return failures


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m labs.interleavings", description=__doc__)
    parser.add_argument("names", nargs="*", help="what to run; everything if none is named")
    parser.add_argument("--limit", type=int, help="the most schedules of one scenario")
    return parser.parse_args()


@contextmanager
def _test_database() -> Iterator[None]:
    from django.db import connection  # noqa: PLC0415

    from tests.flushing import keep_rows, quick_flush  # noqa: PLC0415
    from tests.shortcuts import shortcuts  # noqa: PLC0415

    name = connection.settings_dict["NAME"]
    connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        with quick_flush(), shortcuts():
            keep_rows()
            yield
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)


def _progress(line: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{line}\x1b[K")


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
