"""`make soak`: buys, breaks things, and checks. See `python -m labs.soak --help`.

Run it with `python -m embedded exec --fast -- python -m labs.soak`; the servers of the run are its
own.
"""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

import django

INSIDE = "SOAK_INSIDE"  # set in the mount namespace of the run


def main() -> int:
    """Returns 0 when nothing was lost, doubled, unreported or leaked."""
    options = _options()
    if INSIDE not in os.environ:
        _enter_namespace()
    os.environ["LOG_LEVEL"] = "WARNING"  # of this process, which shows the progress
    django.setup()
    from labs.soak.run import run  # noqa: PLC0415  needs Django

    with tempfile.TemporaryDirectory(
        prefix="voucher-soak-", dir=options.folder, ignore_cleanup_errors=True
    ) as folder:
        result = run(options, Path(folder))
        if options.result:
            options.result.write_text(json.dumps(result, indent=1) + "\n")
        if result["problems"] and options.keep:
            shutil.copytree(folder, options.keep, symlinks=False, ignore_dangling_symlinks=True)
    print(json.dumps(result, indent=1))  # noqa: T201
    return 1 if result["problems"] else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m labs.soak", description=__doc__)
    add = parser.add_argument
    add("--vouchers", type=int, default=1_000_000, help="voucher purchases")
    add("--topups", type=int, default=100_000, help="top-up purchases")
    add("--minutes", type=float, default=float("inf"), help="stop buying after so many minutes")
    add("--pause", type=float, default=15.0, help="seconds between two faults, on average")
    add("--longest", type=float, default=2.0, help="seconds that something stays dead, at most")
    add("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="of the faults")
    add("--threads", type=int, default=8, help="merchants that send requests at the same time")
    add("--workers", type=int, default=2, help="web processes of each of the two hosts")
    add("--result", type=Path, help="where to write the result, as JSON")
    add("--folder", type=Path, help="where the data of the run is, until it ends")
    add("--keep", type=Path, help="where to copy everything to, if a check fails")
    return parser.parse_args()


def _enter_namespace() -> None:
    """Starts again in a mount namespace: the log disk ends with this process, however it ends."""
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    environment = {**os.environ, INSIDE: "1"}
    command = ["unshare", "--mount", *user, sys.executable, "-m", "labs.soak", *sys.argv[1:]]
    os.execvpe(command[0], command, environment)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    sys.exit(main())
