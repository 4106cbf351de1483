"""A shop that is killed around any write of its journal, behind a bad network, loses nothing.

`make client-proof` runs it with 10,000 purchases.
"""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from voucher_topup import SQLiteJournal

from tests.factories import make_merchant, make_product, make_topup_product
from tests.live import LiveServer
from tests.merchants.bad_network import bad_network
from tests.neighbour import ours
from wallets.models import EntryKind, LedgerEntry

pytestmark = pytest.mark.django_db(transaction=True)

PURCHASES = int(os.environ.get("CLIENT_PURCHASES", "40"))
SEED = os.environ.get("CLIENT_SEED", "7")
FAULTS = ["lose", "half", "gateway", "timeout", "crowd", "portal", "message", "text", "disable"]


def test_a_killed_shop_doubles_and_loses_nothing(live: LiveServer, tmp_path: Path) -> None:
    merchant = make_merchant(balance="9000000", rate_limit_per_minute=100_000)
    product = make_product(price="1.00", codes=2 * PURCHASES)
    topup_product = make_topup_product(price="2.00")
    chance = random.Random(SEED)
    plan = [chance.choice(["pass", *FAULTS]) for _ in range(3 * PURCHASES)]
    path = tmp_path / "purchases.db"

    with bad_network(live.port, *plan) as network:
        program = subprocess.run(
            [
                *(sys.executable, "-m", "tests.sdk.shop_program"),
                *(network.base_url, merchant.key, path, str(PURCHASES), SEED),
                *(str(product.pk), str(topup_product.pk)),
            ],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": "sdk/python/src"},
        )

    assert program.returncode == 0, program.stderr
    assert int(program.stdout) > 0, "it was never killed"
    assert len(network.plan) < len(plan) / 2, "the network hardly failed"
    journal = SQLiteJournal(path)
    bought = {entry.reference: entry.total for entry in journal.bought_entries()}
    debits = ours(LedgerEntry).filter(kind=EntryKind.PURCHASE)
    assert journal.open_entries() == []
    assert len(bought) == PURCHASES
    debited = list(debits.values_list("order_reference", "amount"))
    assert len(debited) == PURCHASES
    assert {reference: f"{-amount:.2f}" for reference, amount in debited} == {
        reference: f"{float(total or 0):.2f}" for reference, total in bought.items()
    }
    journal.close()
