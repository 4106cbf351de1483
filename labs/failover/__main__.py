"""Loses the leader of the database again and again, in every way that `drills` knows.

    python -m embedded exec --fast -- python -m labs.failover 3

The number says how often. Prints a line for each drill. Ends with 1 if one of them failed, or if
sales stood still for 10 seconds.
Requires root.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import django
from django.conf import settings

from embedded.environment import SERVICE

LONGEST_PAUSE = 10.0  # seconds without a sale


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("times", type=int, nargs="?", default=3)
    parser.add_argument("--only", action="append", help="the name of a drill")
    arguments = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    settings.SERVICE_ROLE = SERVICE

    from labs.failover.drills import DRILLS, running_service  # noqa: PLC0415
    from labs.installation.cluster import running_cluster  # noqa: PLC0415  after Django's set-up

    paused: list[float] = []
    with (
        tempfile.TemporaryDirectory(prefix="voucher-failover-") as place,
        running_cluster(Path(place)) as cluster,
        running_service(cluster) as server,
    ):
        for _ in range(arguments.times):
            for each in DRILLS:
                if not arguments.only or each.__name__ in arguments.only:
                    paused.append(each(cluster, server).pause)
    return 0 if max(paused) < LONGEST_PAUSE else 1


if __name__ == "__main__":
    sys.exit(main())
