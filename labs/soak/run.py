"""One run: opens the shop, lets everybody work while faults happen, and judges what is left."""

import argparse
import secrets
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import Error, connection

from embedded.environment import SERVICE
from labs.bench.machine import describe_machine
from labs.soak.desk import Desk
from labs.soak.faults import Faults
from labs.soak.logs import LogReader
from labs.soak.merchants import Merchants
from labs.soak.service import Service, log_disk
from labs.soak.shop import Shop, open_shop
from labs.soak.verdict import Told, counts, judge, leaks_in_cache
from labs.soak.watch import Happened, Watch, figures
from orders.recovery.logged_purchases import read_purchases
from simulator.exam import repeating
from tests.database import django_uses, load_schema
from topups.fulfilment.refunds import refunds_due
from topups.fulfilment.transitions import OPEN
from topups.models import Fulfilment

DESK_SECONDS = 3600.0  # until the operators have ended every top-up: they may be far behind
BYTES_PER_PURCHASE = 3000  # of all logs
AFTER_A_FULL_DISK = 5.0  # seconds in which an answer may still belong to a lost line


def run(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Runs the soak in an empty folder. Returns its result; `problems` is empty if all is well."""
    began = datetime.now(UTC)
    settings.SERVICE_ROLE = SERVICE  # this process is the owner
    mark = f"CANARY{secrets.token_hex(5)}"
    megabytes = 64 + BYTES_PER_PURCHASE * (options.vouchers + options.topups) // 1_000_000
    with ExitStack() as stack:
        disk = stack.enter_context(log_disk(folder, megabytes=megabytes))
        service = Service(stack, folder, disk, workers=options.workers)
        load_schema(service.postgres.url)
        stack.enter_context(django_uses(service.postgres.url))  # as the owner
        group = service.telegram.add_group("Operators")
        shop = open_shop(mark, vouchers=options.vouchers, topups=options.topups, chat_id=group.id)
        hidden = secrets_of(shop, service)
        logs = LogReader([disk.folder, folder], hidden)
        service.start()
        merchants = Merchants(
            [merchant.key for merchant in shop.clients],
            [],
            [host.web for host in service.hosts],
            shop=shop,
            wanted=Counter({"voucher": options.vouchers, "top_up": options.topups}),
            folder=folder,
        )
        watch, happened, desks = buy(options, service, shop, logs, merchants)
        leaks = {f"{each} in the cache" for each in leaks_in_cache(service.broker.url, hidden)}
        service.stop()
        logs.read()
        web_logs = sorted(disk.folder.glob("web*.log"))
        since = datetime.fromtimestamp(0, UTC)
        told = Told(
            folder=folder,
            ended={reference: move for desk in desks for reference, move in desk.told.items()},
            logged={
                each.reference
                for each in read_purchases(
                    web_logs, since=since, skip_damaged=True, skip_missing=True
                )
            },
            full_disk=[
                (each.began - 1, each.healed + AFTER_A_FULL_DISK)
                for each in happened
                if each.kind == "fill the log disk"
            ],
        )
        problems = judge(told)
        if leaks | logs.leaks:
            problems["leaked"] = sorted(leaks | logs.leaks)
        result = {
            "began": began.isoformat(timespec="seconds"),
            "seed": options.seed,
            "machine": describe_machine(),
            "problems": problems,
            **counts(),
            "requests": dict(merchants.seen),
            "moves": dict(sum((desk.counted for desk in desks), Counter[str]())),
            "log_bytes": logs.bytes,
            "log_errors": dict(logs.errors),
            **figures(watch, merchants.times, merchants.took, happened),
        }
        connection.close()
    return result


def buy(
    options: argparse.Namespace,
    service: Service,
    shop: Shop,
    logs: LogReader,
    merchants: Merchants,
) -> tuple[Watch, list[Happened], list[Desk]]:
    """Everybody works and faults happen, until everything is bought and every outcome is known."""
    watch, happened = Watch(), list[Happened]()
    desks = [Desk(operator, options.seed + n) for n, operator in enumerate(shop.operators)]
    faults = Faults(service, merchants, logs.read, options.seed, options.pause, options.longest)
    for desk in desks:
        desk.start()

    def look() -> None:
        logs.read()
        watch.sample(service.processes(), merchants.outcomes.total())
        watch.show(len(happened), merchants.outcomes)

    with repeating(look, 1.0):
        with merchants.running(options.threads):
            end = time.monotonic() + 60 * options.minutes
            for fault in faults.happen():
                happened.append(fault)
                enough = time.monotonic() > end or merchants.done
                if enough and len(happened) >= len(faults.kinds):  # each kind at least once
                    break
            faults.heal()
        merchants.close()
        wait(lambda: not Fulfilment.objects.filter(status__in=OPEN).exists())
        for desk in desks:
            desk.finish()
        wait(lambda: not refunds_due().exists())
    return watch, happened, desks


def wait(condition: Callable[[], bool]) -> None:
    """Waits for a condition of the database. What has not come true by then is a problem that
    `judge` finds."""
    deadline = time.monotonic() + DESK_SECONDS
    while time.monotonic() < deadline:
        try:
            if condition():
                return
        except Error:
            connection.close()
        time.sleep(0.2)


def secrets_of(shop: Shop, service: Service) -> dict[str, str]:
    """The secrets that no log and no cache may hold, by name. The mark begins every code, serial
    number, PIN, player id and idempotency key."""
    keys = {
        f"API key {n}": key.rpartition("_")[2] for n, key in enumerate(one.key for one in shop.all)
    }
    return {
        "a code, a player id or an idempotency key": shop.mark,
        **keys,
        "the bot's token": service.telegram.token.partition(":")[2],
        "the secret key": settings.SECRET_KEY,
        "the encryption key": settings.CODE_ENCRYPTION_KEYS[0].partition(":")[2],
        "the owner's password": _password(service.postgres.url),
        "the password of the service's role": _password(service.environment["DATABASE_URL"]),
        "Valkey's password": service.broker.password,
    }


def _password(url: str) -> str:
    return urlsplit(url).password or ""
