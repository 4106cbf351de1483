"""A shop that is killed around any write of its journal, behind a bad network, and its judge.

Each client library has a program that buys (`killed_shop.py`, `killed_shop.mjs`). The network, the
judge and the control are the same for all.
"""

import json
import os
import random
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from tests.factories import make_merchant, make_product, make_topup_product
from tests.live import LiveServer
from tests.merchants.bad_network import bad_network
from tests.neighbour import ours
from wallets.models import EntryKind, LedgerEntry

PURCHASES = int(os.environ.get("CLIENT_PURCHASES", "40"))
SEED = os.environ.get("CLIENT_SEED", "7")
FAULTS = ["lose", "half", "gateway", "timeout", "crowd", "portal", "message", "text", "disable"]
DEATH = 0.02  # before and after each call or statement of the journal
# The journal as all libraries store it. The file is read with its own driver.
BOOKS = "SELECT order_number, state, reference, total FROM voucher_purchases"

Row = tuple[str, str, str | None, str | None]


def mistakes_of_killed_shop(
    live: LiveServer,
    program: Sequence[str | os.PathLike[str]],
    *,
    journal: str,
    read: Callable[[str], Sequence[Row]],
    purchases: int = PURCHASES,
    death: float = DEATH,
    late: bool = False,
) -> list[str]:
    """Runs the program until everything is settled, and returns what it did wrong.

    `journal` is where the program keeps it. `read` carries out BOOKS there. `late`: the control,
    whose journal is not written first.
    """
    merchant = make_merchant(balance="9000000", rate_limit_per_minute=100_000)
    product = make_product(price="1.00", codes=2 * purchases if not late else 8 * purchases)
    topup_product = make_topup_product(price="2.00")
    chance = random.Random(SEED)
    plan = [chance.choice(["pass", *FAULTS]) for _ in range(3 * purchases)]

    with bad_network(live.port, *plan) as network:
        task = {
            "base_url": network.base_url,
            "key": merchant.key,
            "journal": journal,
            "purchases": purchases,
            "seed": SEED,
            "product": product.pk,
            "topup_product": topup_product.pk,
            "death": death,
            "late": late,
        }
        shop = subprocess.run(
            [*program, json.dumps(task)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": "sdk/python/src"},
        )

    assert shop.returncode == 0, shop.stderr
    assert int(shop.stdout) > 0, "it was never killed"
    assert len(network.plan) < len(plan) / 2, "the network hardly failed"
    print(f"{purchases} purchases, {shop.stdout.strip()} kills")  # noqa: T201
    return _judge(read(BOOKS), purchases)


def _judge(rows: Sequence[Row], purchases: int) -> list[str]:
    """Compares the books of the shop with the ledger."""
    debits: dict[Any, Decimal] = dict(
        ours(LedgerEntry).filter(kind=EntryKind.PURCHASE).values_list("order_reference", "amount")
    )
    bought = {
        reference: Decimal(total or 0) for _, state, reference, total in rows if state == "bought"
    }
    mistakes = Counter(
        {
            "unsettled": sum(state != "bought" for _, state, _, _ in rows),
            "lost": len(
                {f"order-{number}" for number in range(purchases)} - {row[0] for row in rows}
            ),
            "doubled": len(debits.keys() - bought.keys()),
            "without a debit": len(bought.keys() - debits.keys()),
            "other amount": sum(
                -debits[reference] != total
                for reference, total in bought.items()
                if reference in debits
            ),
        }
    )
    return [f"{count} {name}" for name, count in mistakes.items() if count]
