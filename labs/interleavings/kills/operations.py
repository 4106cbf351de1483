"""The operations that are killed, and the documented rules that finish each of them."""

import csv
import itertools
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.test import override_settings

from catalogue.models import VoucherCode
from labs.interleavings.contract import ENDS_WITH_ORDER
from labs.interleavings.kills.killing import Operation
from labs.interleavings.world import World, make_world, retry
from operators.telegram.models import Announcement
from orders.models import Order
from tests.commands import refusal, run
from tests.factories import buy_topup, make_topup_product, move_now
from tests.telegram.announcing import DOUBT, Place, later, operators_chat, sweep
from topups.fulfilment.refunds import sweep_refunds
from topups.fulfilment.transitions import Move
from topups.fulfilment.versions import version_of
from topups.models import Fulfilment, TopUpProduct
from wallets.models import EntryKind, LedgerEntry

NAMES = ["voucher", "top_up", "refund", "move", "announcement", "import"]
_numbers = itertools.count(1)


@contextmanager
def operations() -> Iterator[dict[str, Operation]]:
    """Every operation by its name, on the present database."""
    world = make_world(money=1_000_000, codes=2000, packages=50_000)
    with (
        tempfile.TemporaryDirectory(prefix="voucher-") as folder,
        override_settings(),
        operators_chat(settings) as place,
    ):
        voucher = {"product_id": world.product, "quantity": 1}
        topup = {"delivery_type": "top_up", "system_product_id": world.topup, "player_id": "001"}
        found = [
            purchase("voucher", world, voucher),
            purchase("top_up", world, topup),
            refund(world),
            move(world),
            announcement(world, place),
            code_import(world, Path(folder)),
        ]
        yield {operation.name: operation for operation in found}


def purchase(name: str, world: World, body: dict[str, Any]) -> Operation:
    """POST /orders. The merchant retries with the same key and content; after five minutes the
    outcome is known."""

    def begin() -> tuple[dict[str, Any], Any]:
        key = f"{name}-{next(_numbers)}"
        headers = {"Authorization": f"Bearer {world.merchant.key}", "Idempotency-Key": key}
        orders = Order.objects.filter(client=world.merchant.client).count()
        order = {"do": "buy", "arguments": {"headers": headers, "body": body}}
        return order, (key, orders)

    def finish(needed: Any, result: Any) -> list[str]:
        key, before = needed
        end, reference = retry(partial(world.merchant.buy, key, **body))
        wrong = [] if end in ENDS_WITH_ORDER else [f"the retries end with {end}"]
        made = Order.objects.filter(client=world.merchant.client).count() - before
        if made != 1:
            wrong.append(f"{made} orders")
        if result and result["status"] == 201 and result["body"]["data"]["reference"] != reference:
            wrong.append("the order of the response is not the order of the retry")
        shown = world.merchant.get(f"/orders/{reference}")
        codes = 1 if "product_id" in body else 0
        if shown.status_code != 200 or len(shown.json()["data"]["codes"]) != codes:
            wrong.append(f"GET shows {shown.status_code} {shown.content!r}")
        return wrong

    return Operation(name, begin, finish)


def refund(world: World) -> Operation:
    """A worker pays a refund. The sweep finds what it left."""

    def begin() -> tuple[dict[str, Any], Any]:
        found = _ordered(world)
        move_now(reference=found.order_reference, move=Move.REJECT, operator=world.operators[0])
        arguments = {"name": "topups.tasks.refund_fulfilment", "arguments": [found.pk]}
        return {"do": "task", "arguments": arguments}, found

    return Operation("refund", begin, _refunded_once)


def move(world: World) -> Operation:
    """A command rejects an order. Its operator enters it again; the sweep pays the refund."""

    def begin() -> tuple[dict[str, Any], Any]:
        found = _ordered(world)
        operator: User = world.operators[0].user
        command = [
            "fulfilment",
            "reject",
            found.order_reference,
            f"--version={version_of(found)}",
            f"--operator={operator.get_username()}",
        ]
        arguments = {"name": command[0], "arguments": command[1:]}
        return {"do": "command", "arguments": arguments}, (found, command)

    def finish(needed: Any, result: Any) -> list[str]:
        found, command = needed
        run(*command)  # if the first one moved the order, this one says so and moves nothing
        wrong = []
        if found.events.filter(move="reject").count() != 1:
            wrong.append("the history has not one rejection")
        return wrong + _refunded_once(found, result)

    return Operation("move", begin, finish)


def announcement(world: World, place: Place) -> Operation:
    """A worker announces an order in Telegram. The sweep finds what it left, and announces once
    more if it cannot know whether the first message was posted."""
    product = make_topup_product(price="10.00", announce=True)
    _ordered(world, product)
    sweep()  # the first announcement makes more calls: it creates the row of the chat

    def begin() -> tuple[dict[str, Any], Any]:
        found = _ordered(world, product)
        arguments = {"name": "operators.telegram.tasks.show_order", "arguments": [found.pk]}
        return {"do": "task", "arguments": arguments}, found

    def finish(found: Any, result: Any) -> list[str]:
        for _ in range(3):
            later(minutes=10)
            sweep()
        posted = [one for one in place.posted() if found.order_reference in one.text]
        row = Announcement.objects.get(fulfilment=found)
        wrong = [] if row.message_id else ["the order is not announced"]
        if len(posted) not in (1, 2):
            wrong.append(f"{len(posted)} messages")
        if len(posted) == 2 and DOUBT not in posted[-1].text:
            wrong.append("the second message does not say that there may be two")
        return wrong

    telegram = {
        name: getattr(place.settings, name)
        for name in ("TELEGRAM_BOT_TOKEN", "TELEGRAM_API_URL", "TELEGRAM_TIMEOUT_SECONDS")
    }
    return Operation("announcement", begin, finish, telegram)


def code_import(world: World, folder: Path) -> Operation:
    """A command imports codes. It is started again with the same file."""

    def begin() -> tuple[dict[str, Any], Any]:
        number = next(_numbers)
        file = folder / f"{number}.csv"
        with file.open("w", newline="") as output:
            rows = [["code"], *([f"IMPORTED-{number}-{line}"] for line in range(3))]
            csv.writer(output).writerows(rows)
        command = ["import_codes", str(world.product), str(file)]
        arguments = {"name": command[0], "arguments": command[1:]}
        return {"do": "command", "arguments": arguments}, (command, _codes(world))

    def finish(needed: Any, result: Any) -> list[str]:
        command, before = needed
        if _codes(world) == before:
            run(*command)
            wrong = []
        else:
            said = refusal(*command)
            wrong = [] if "already in stock" in said else [f"imported again, it says: {said}"]
        added = _codes(world) - before
        return wrong if added == 3 else [*wrong, f"{added} codes"]

    return Operation("import", begin, finish)


def _ordered(world: World, product: TopUpProduct | None = None) -> Fulfilment:
    product = product or TopUpProduct.objects.get(pk=world.topup)
    reference = buy_topup(world.merchant, product)
    return Fulfilment.objects.get(order_reference=reference)


def _refunded_once(found: Fulfilment, result: Any) -> list[str]:
    sweep_refunds()
    found.refresh_from_db()
    refunds = LedgerEntry.objects.filter(
        order_reference=found.order_reference, kind=EntryKind.REFUND
    )
    amounts = [entry.amount for entry in refunds]
    if not found.refunded or amounts != [found.amount]:
        return [f"refunded: {found.refunded}, refunds: {amounts}"]
    return []


def _codes(world: World) -> int:
    return VoucherCode.objects.filter(shelf__product=world.product).count()
