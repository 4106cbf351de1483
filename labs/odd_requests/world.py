"""Clients of every kind, and what they may or may not buy."""

from dataclasses import dataclass
from typing import Any

from tests.factories import (
    Merchant,
    link,
    make_account,
    make_category,
    make_client,
    make_field,
    make_merchant,
    make_product,
    make_topup_product,
    make_variation,
    own_shelf,
)

UNLIMITED = 1_000_000_000  # requests per minute


@dataclass
class World:
    """The things that requests can name."""

    buyers: list[str]  # keys of clients that may buy
    poor: list[str]  # of clients without money or without a wallet
    refused: dict[str, str]  # keys of callers that every endpoint refuses, by the error code
    products: list[int]
    variations: list[tuple[int, int]]
    references: list[str]
    topups: list[tuple[int, dict[str, str]]]  # product and valid fields
    counted: set[int]  # top-up products whose stock is counted


def make_world(*, codes: int) -> World:
    """Makes everything. Every product but a few is cheap; `codes` go to each shelf."""
    rich = [
        make_merchant(balance="100000000.00", rate_limit_per_minute=UNLIMITED) for _ in range(3)
    ]
    broke = Merchant(make_client(make_account(balance="0.01"), rate_limit_per_minute=UNLIMITED))
    walletless = Merchant(make_client(None, rate_limit_per_minute=UNLIMITED))
    off = make_merchant(rate_limit_per_minute=UNLIMITED, enabled=False)
    elsewhere = make_merchant(rate_limit_per_minute=UNLIMITED, allowed_networks=["10.9.8.0/24"])
    closed = make_merchant(rate_limit_per_minute=UNLIMITED)
    _close(closed)
    plain = [make_product(price="0.01", codes=codes) for _ in range(3)]
    stepped = make_product(price="0.03", codes=codes, quantity_step=3)
    large = make_variation(plain[0], codes=codes)
    inactive = make_product(codes=3, active=False)
    hidden = make_product(codes=3, category=make_category(active=False))
    unpriced, sold_out = make_product(price=None, codes=3), make_product(price="1.00")
    for merchant in rich:
        link(merchant.account, "mine", own_shelf(plain[1]))
        link(merchant.account, "Straße 7/a", own_shelf(stepped))
    topups = _topups()
    return World(
        buyers=[merchant.key for merchant in rich],
        poor=[broke.key, walletless.key],
        refused={
            off.key: "client_disabled",
            closed.key: "client_disabled",
            elsewhere.key: "ip_not_allowed",
        },
        products=[each.pk for each in (*plain, stepped, inactive, hidden, unpriced, sold_out)],
        variations=[(plain[0].pk, large.pk), (plain[1].pk, large.pk)],
        references=["mine", "Straße 7/a", "unlinked"],
        topups=topups,
        counted={topups[1][0]},
    )


def _topups() -> list[tuple[int, dict[str, str]]]:
    plain = make_topup_product(price="0.02")
    scarce = make_topup_product(price="0.02", available_stock=5)
    asking = make_topup_product(price="0.02")
    server = make_field(asking, "dropdown", required=True, options=("eu", "us"))
    level = make_field(asking, "number", required=False)
    off = make_topup_product(active=False)
    fields = {str(server.number): "eu", str(level.number): "12"}
    return [(plain.pk, {}), (scarce.pk, {}), (asking.pk, fields), (off.pk, {})]


def _close(merchant: Merchant) -> None:
    account: Any = merchant.client.account
    account.enabled = False
    account.save()
