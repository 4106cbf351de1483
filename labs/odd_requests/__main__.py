"""`make odd-requests COUNT=1000000 SEED=7`: see labs/odd_requests/__init__.py."""

import argparse
import json
import os
import random
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ["LOG_LEVEL"] = "CRITICAL"
django.setup()

from django.conf import settings  # noqa: E402  after setup
from django.core.management import call_command  # noqa: E402

from embedded.environment import SERVICE  # noqa: E402
from labs.odd_requests.run import send_all  # noqa: E402
from labs.odd_requests.world import make_world  # noqa: E402
from tests.live import live_server  # noqa: E402


def main() -> int:
    """Returns 0 when no answer was wrong."""
    parser = argparse.ArgumentParser(prog="python -m labs.odd_requests", description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--minutes", type=float, default=float("inf"), help="end after so long")
    options = parser.parse_args()
    print(f"COUNT={options.count} SEED={options.seed}", file=sys.stderr)  # noqa: T201  repeats this
    settings.SERVICE_ROLE = SERVICE
    call_command("migrate", verbosity=0)
    world = make_world(codes=2_000 + options.count // 20)
    with live_server({"LOG_LEVEL": "CRITICAL"}, workers=1) as server:
        result = send_all(
            world,
            count=options.count,
            seed=options.seed,
            server=server,
            minutes=options.minutes,
            progress=True,
        )
    shown = {
        **{"seed": options.seed, "sent": result.sent, "over HTTP": result.over_http},
        "seconds": round(result.seconds),
        "answers": dict(sorted(result.counted.items())),
        "problems": result.problems,
    }
    print(json.dumps(shown, indent=1))  # noqa: T201
    return 1 if result.problems else 0


if __name__ == "__main__":
    sys.exit(main())
