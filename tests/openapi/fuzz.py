"""Runs schemathesis against a live server, with the checks of schemathesis.toml.

python -m embedded exec --fast -- python -m tests.openapi.fuzz
"""

import os
import subprocess
import sys
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.conf import settings  # noqa: E402  after setup
from django.core.management import call_command  # noqa: E402

from embedded.environment import PROJECT, SERVICE  # noqa: E402
from tests.factories import (  # noqa: E402
    Merchant,
    link,
    make_merchant,
    make_product,
    make_topup_product,
    make_variation,
    own_shelf,
)
from tests.live import live_server  # noqa: E402


def main() -> int:
    """Returns the exit code of schemathesis: 0 when it found no problem."""
    settings.SERVICE_ROLE = SERVICE
    call_command("migrate", verbosity=0)
    merchant = stock_a_shop()
    with live_server() as server:
        return subprocess.run(
            [
                Path(sys.executable).with_name("schemathesis"),
                "--config-file=schemathesis.toml",
                "run",
                f"{server.base_url}/api/v1/openapi.json",
                f"--header=Authorization: Bearer {merchant.key}",
                "--checks=all",
                "--workers=2",
                "--seed=1",
                *sys.argv[1:],
            ],
            cwd=PROJECT,
            check=False,
        ).returncode


def stock_a_shop() -> Merchant:
    """Creates a merchant and products with small ids, which schemathesis tries first."""
    merchant = make_merchant(balance="1000000.00", rate_limit_per_minute=1_000_000)
    account = merchant.account
    product = make_product(price="0.01", codes=5_000)
    make_variation(product, codes=100)
    make_product(price=None)
    make_topup_product(price="0.01")
    link(account, "mine", own_shelf(product))
    return merchant


if __name__ == "__main__":
    sys.exit(main())
