"""Two hosts on one database while the encryption keys are rotated: no purchase is debited for codes
that the host cannot open, and the rotation of docs/operate/rotate-keys.md loses nothing."""

import base64
import http.client
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

import pytest
from django.conf import settings as django_settings
from pytest_django import Settings

from catalogue.models import VoucherCode
from embedded.environment import PROJECT
from idempotency.models import IdempotencyRecord
from operators.upkeep.reconcile import reconcile
from operators.upkeep.reseal import reseal_all, retire_keys
from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import (
    TIMEOUT,
    age_records,
    codes_of,
    in_background,
    outcome,
    scalar,
    wait_for_waiting,
    weakened_sql,
)
from tests.factories import Merchant, add_codes, make_merchant, make_product, own_shelf
from tests.live import API, LiveServer, database_url, live_server
from tests.quick_starts import QuickProcess

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]

IMPORTED = 5000
NEW = "2:" + base64.urlsafe_b64encode(os.urandom(32)).decode()


@pytest.fixture
def old() -> str:
    """The key with which everything was sealed before the rotation."""
    (key,) = django_settings.CODE_ENCRYPTION_KEYS
    return str(key)


@contextmanager
def host(*keys: str) -> Iterator[LiveServer]:
    """A host whose CODE_ENCRYPTION_KEYS are these."""
    with live_server({**API, "CODE_ENCRYPTION_KEYS": ",".join(keys)}, workers=1) as server:
        yield server


def at(server: LiveServer, merchant: Merchant) -> Merchant:
    """The merchant, calling this host."""
    twin = Merchant.__new__(Merchant)
    twin.client, twin.key, twin.http = merchant.client, merchant.key, server.http
    return twin


def readyz(server: LiveServer) -> tuple[int, bool]:
    probe = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        probe.request("GET", "/readyz")
        answer = probe.getresponse()
        return answer.status, json.loads(answer.read())["keys"]
    finally:
        probe.close()


def balance(merchant: Merchant) -> float:
    return float(merchant.get("/balance").json()["data"]["balance"])


def test_a_host_without_the_new_key_sells_and_debits_nothing(old: str, settings: Settings) -> None:
    """The mistake: one host got the new key, and codes were imported there, before the other."""
    merchant, product = make_merchant(), make_product(price="10.00")
    with host(old) as behind:
        settings.CODE_ENCRYPTION_KEYS = [NEW, old]
        codes = add_codes(own_shelf(product), 2)
        with host(NEW, old) as ahead:
            slow, quick = at(behind, merchant), at(ahead, merchant)

            refused = slow.buy("one", product_id=product.pk, quantity=1)

            assert outcome(refused) == "server_error"
            assert "key that this process does not have" in behind.log
            assert balance(quick) == 100
            assert own_shelf(product).available_stock == 2
            assert readyz(behind) == (503, False)
            assert readyz(ahead) == (200, True)

            # The key stays in progress, as after every 5xx. After five minutes a retry buys.
            again = quick.buy("one", product_id=product.pk, quantity=1)
            assert outcome(again) == "request_in_progress"
            age_records(301)
            bought = quick.buy("one", product_id=product.pk, quantity=1)
            assert codes_of(bought) == codes[:1]
            assert balance(quick) == 90

            # A replay that this host cannot open stays as it is.
            assert outcome(slow.buy("one", product_id=product.pk, quantity=1)) == "server_error"
            replayed = quick.buy("one", product_id=product.pk, quantity=1)
            assert replayed.content == bought.content
            assert balance(quick) == 90
    assert_books_balance()


def test_control_without_the_check_the_host_debits_for_a_code_it_cannot_open(
    old: str, settings: Settings
) -> None:
    merchant, product = make_merchant(), make_product(price="10.00")
    unchecked = ("IF can_open IS NOT TRUE THEN", "IF false THEN")
    with host(old) as behind, weakened_sql("catalogue/sql/take_codes.sql", unchecked):
        settings.CODE_ENCRYPTION_KEYS = [NEW, old]
        add_codes(own_shelf(product), 1)

        refused = at(behind, merchant).buy("one", product_id=product.pk, quantity=1)

    assert outcome(refused) == "server_error"
    assert scalar("SELECT balance FROM wallets_wallet") == 90
    assert own_shelf(product).available_stock == 0


def test_rotation_of_two_hosts_while_codes_are_imported(
    old: str, settings: Settings, tmp_path: Path
) -> None:
    """Every step of docs/operate/rotate-keys.md; both hosts work after each."""
    merchant, product = make_merchant(), make_product(price="1.00", codes=20)
    bought: dict[str, bytes] = {}

    def both_work(first: LiveServer, second: LiveServer) -> None:
        """Each host buys, and replays and reads what the other has sold."""
        for one, other in ((first, second), (second, first)):
            assert (readyz(one), readyz(other)) == ((200, True), (200, True))
            key = f"key {len(bought)}"
            answer = at(one, merchant).buy(key, product_id=product.pk, quantity=1)
            assert outcome(answer) == "bought", answer.content
            bought[key] = answer.content
            for known, content in bought.items():
                replay = at(other, merchant).buy(known, product_id=product.pk, quantity=1)
                assert (replay.status_code, replay.content) == (201, content)
            reference = answer.json()["data"]["reference"]
            read = at(other, merchant).get(f"/orders/{reference}")
            assert codes_of(read) == codes_of(answer)

    with ExitStack() as stack:
        one = stack.enter_context(host(old))
        two = stack.enter_context(host(old))
        both_work(one, two)

        # Phase 1: every host opens with the new key, none seals with it.
        one_opens = stack.enter_context(host(old, NEW))
        both_work(one_opens, two)
        two_opens = stack.enter_context(host(old, NEW))
        one.stop()
        two.stop()
        both_work(one_opens, two_opens)

        # Phase 2: the new key seals.
        one_seals = stack.enter_context(host(NEW, old))
        both_work(one_seals, two_opens)
        two_seals = stack.enter_context(host(NEW, old))
        one_opens.stop()

        two_opens.stop()
        both_work(one_seals, two_seals)

        # `reseal` waits for an import that still seals with the old key; purchases go on.
        settings.CODE_ENCRYPTION_KEYS = [NEW, old]
        with importing_slowly(product.pk, tmp_path / "codes.fifo", keys=[old, NEW]) as writer:
            with in_background(reseal_all) as resealing:
                wait_for_waiting(1)
                both_work(one_seals, two_seals)
                writer.close()
            assert resealing.result()["codes"] == 20 + IMPORTED
        assert retire_keys() == [2]
        both_work(one_seals, two_seals)

        # The old key is removed.
        settings.CODE_ENCRYPTION_KEYS = [NEW]
        one_new = stack.enter_context(host(NEW))
        both_work(one_new, two_seals)
        two_new = stack.enter_context(host(NEW))
        both_work(one_new, two_new)

    assert keys_of_codes() == {2}
    assert reconcile(decrypt=True)["findings"] == []
    assert IdempotencyRecord.objects.count() == len(bought)
    assert_books_balance()


def keys_of_codes() -> set[int]:
    return {bytes(sealed)[0] for sealed in VoucherCode.objects.values_list("sealed", flat=True)}


@contextmanager
def importing_slowly(product_id: int, fifo: Path, *, keys: list[str]) -> Iterator[TextIO]:
    """`import_codes` in a process with these keys. It has copied codes and waits for more of its
    file until the yielded file is closed."""
    os.mkfifo(fifo)
    command = QuickProcess(
        "import",
        [sys.executable, "manage.py", "import_codes", str(product_id), str(fifo)],
        environment={
            **os.environ,
            "DATABASE_URL": database_url(),
            "CODE_ENCRYPTION_KEYS": ",".join(keys),
        },
        folder=PROJECT,
        log=fifo.with_suffix(".log"),
    )
    with fifo.open("w") as writer:
        writer.write("code\n" + "".join(f"NEW-{number}\n" for number in range(IMPORTED)))
        writer.flush()
        deadline = time.monotonic() + TIMEOUT
        while not scalar("SELECT max(tuples_processed) FROM pg_stat_progress_copy"):
            assert time.monotonic() < deadline, "the import does not begin"
            time.sleep(0.01)
        yield writer
    assert command.popen.wait(TIMEOUT) == 0
