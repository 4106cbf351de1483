"""Runs the docs' example programs against the live server, over a network that loses answers.

Whatever is lost, there is one debit, and the program gets its order.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from embedded.processes import free_port
from idempotency.models import IdempotencyRecord
from merchants.docs.docs_content import (
    SNIPPETS,
)
from tests.factories import (
    Merchant,
    make_merchant,
    make_product,
    make_topup_product,
)
from tests.live import LiveServer
from tests.merchants.bad_network import FOREIGN, BadNetwork, bad_network
from tests.merchants.docs.programs import (
    SECOND,
    SHORT_SECOND,
    Run,
    debits,
    documented_commands,
    run,
)
from tests.neighbour import ours
from tests.sdk import npm, typescript

pytestmark = pytest.mark.django_db(transaction=True)

PROGRAM = "buy"


def buy(
    program: list[str],
    network: BadNetwork,
    merchant: Merchant,
    *,
    second: float = SECOND,
    **body: Any,
) -> Run:
    return run(
        program,
        json.dumps(body),
        "order-4711",
        base_url=network.base_url,
        key=merchant.key,
        second=second,
    )


@pytest.mark.parametrize(
    "plan", [(), ("lose",), ("half", "gateway", "lose"), ("limit", "lose", "limit")]
)
def test_a_program_buys_once_and_gets_the_codes_whatever_is_lost(
    live: LiveServer, program: list[str], plan: tuple[str, ...]
) -> None:
    merchant = make_merchant(balance="100.00")
    product = make_product(price="9.99", codes=5)

    with bad_network(live.port, *plan) as network:
        done = buy(program, network, merchant, product_id=product.pk, quantity=2)
        again = buy(program, network, merchant, product_id=product.pk, quantity=2)

    assert done.code == 0, done
    order = done.printed
    assert [order["reference"]] == debits()
    assert len(order["codes"]) == 2
    assert again.printed == order


@pytest.mark.parametrize("word", FOREIGN)
def test_only_the_services_own_json_settles_a_purchase(
    live: LiveServer, program: list[str], word: str
) -> None:
    """The purchase was made, and a proxy between answers instead of the service."""
    merchant = make_merchant(balance="100.00")
    product = make_product(price="9.99", codes=5)

    with bad_network(live.port, word) as network:
        done = buy(program, network, merchant, product_id=product.pk, quantity=1)

    assert done.code == 0, done
    assert debits() == [done.printed["reference"]]


@pytest.mark.parametrize("word", ["timeout", "message"])
def test_a_program_says_that_the_outcome_is_unknown_if_only_a_proxy_answers(
    live: LiveServer, program: list[str], word: str
) -> None:
    merchant = make_merchant(balance="100.00")
    product = make_product(price="9.99", codes=5)

    with bad_network(live.port, *[word] * 1000) as network:
        done = buy(
            program, network, merchant, second=SHORT_SECOND, product_id=product.pk, quantity=1
        )

    assert (done.code, done.out) == (2, ""), done
    assert "same idempotency key" in done.err
    assert len(debits()) == 1


def test_a_program_waits_thirty_seconds_after_429_of_a_proxy(
    live: LiveServer, program: list[str]
) -> None:
    merchant = make_merchant(balance="100.00")
    product = make_product(price="9.99", codes=5)

    with bad_network(live.port, "crowd") as network:
        started = time.monotonic()
        done = buy(program, network, merchant, product_id=product.pk, quantity=1)

    assert done.code == 0, done
    assert time.monotonic() - started >= 30 * SECOND


def test_a_program_tells_an_unknown_outcome_from_a_refusal(
    live: LiveServer, program: list[str]
) -> None:
    merchant = make_merchant(balance="100.00")
    product = make_product(price="9.99", codes=5)

    with bad_network(live.port, *["lose"] * 1000) as network:
        lost = buy(
            program, network, merchant, second=SHORT_SECOND, product_id=product.pk, quantity=1
        )
        network.plan.clear()
        found = buy(program, network, merchant, product_id=product.pk, quantity=1)

    assert lost.code == 2
    assert lost.out == ""
    assert "same idempotency key" in lost.err
    assert found.code == 0
    assert debits() == [found.printed["reference"]]


def test_a_program_reads_an_abandoned_order_and_does_not_buy_again(
    live: LiveServer, program: list[str]
) -> None:
    merchant = make_merchant(balance="100.00")
    product = make_product(price="9.99", codes=5)
    bought = merchant.buy("order-4711", product_id=product.pk, quantity=1).json()["data"]
    IdempotencyRecord.objects.update(
        response=None, started_at=timezone.now() - timedelta(minutes=10)
    )

    with bad_network(live.port, "pass", "lose") as network:  # the first read is lost too
        done = buy(program, network, merchant, product_id=product.pk, quantity=1)

    assert done.code == 0, done
    assert done.printed["reference"] == bought["reference"]
    assert [code["code"] for code in done.printed["codes"]] == [
        code["code"] for code in bought["codes"]
    ]
    assert debits() == [bought["reference"]]


def test_a_program_waits_while_the_first_request_runs(live: LiveServer, program: list[str]) -> None:
    merchant = make_merchant(balance="100.00")
    product = make_product(price="9.99", codes=5)
    merchant.buy("order-4711", product_id=product.pk, quantity=1)
    ours(IdempotencyRecord).update(  # as if it had not committed yet
        response=None, order_reference=None, bought_at=None
    )

    with bad_network(live.port) as network:
        started = time.monotonic()
        done = buy(
            program, network, merchant, second=SHORT_SECOND, product_id=product.pk, quantity=1
        )

    assert done.code == 2, done
    assert time.monotonic() - started > 300 * SHORT_SECOND  # a request runs for five minutes
    assert len(network.seen) > 5
    assert {status for _, _, status in network.seen} == {409}


@pytest.mark.parametrize(
    ("change", "code", "reason"),
    [
        ({"quantity": 100}, "order_refused", "insufficient_stock"),
        ({"quantity": 0}, "validation_failed", None),
        ({"product_id": None}, "validation_failed", None),
        ({"merchant_reference": "x"}, "product_reference_ambiguous", None),
    ],
)
def test_a_program_stops_at_a_refusal(
    live: LiveServer, program: list[str], change: dict[str, Any], code: str, reason: str | None
) -> None:
    merchant = make_merchant(balance="1000000.00")
    product = make_product(price="9.99", codes=5)

    with bad_network(live.port) as network:
        done = buy(
            program, network, merchant, **{"product_id": product.pk, "quantity": 1, **change}
        )

    assert done.code == 1, done
    assert done.printed["code"] == code
    assert done.printed.get("reason") == reason
    assert len(network.seen) == 1
    assert debits() == []


@pytest.mark.parametrize(
    ("plan", "stock", "ended", "requests"),
    [
        # It is bought, and the program cannot know it.
        (("lose", "disable"), 5, (2, "client_disabled"), 1),
        (("disable",), 5, (1, "client_disabled"), 0),
        # The first attempt may still arrive when the second is refused.
        (("lose",), 0, (1, "order_refused"), 3),
    ],
)
def test_a_refusal_says_nothing_about_an_attempt_that_may_still_arrive(  # noqa: PLR0917
    live: LiveServer,
    program: list[str],
    plan: tuple[str, ...],
    stock: int,
    ended: tuple[int, str],
    requests: int,
) -> None:
    merchant = make_merchant(balance="100.00")
    product = make_product(price="9.99", codes=stock)

    with bad_network(live.port, *plan) as network:
        done = buy(program, network, merchant, product_id=product.pk, quantity=1)

    is_unknown = ended[0] == 2
    assert done.code == ended[0], done
    if is_unknown:
        assert not done.out, done  # a file of it stays empty
        assert ended[1] in done.err
    else:
        assert done.printed["code"] == ended[1]
    assert ("outcome is unknown" in done.err) == is_unknown
    assert len(network.seen) == requests
    assert len(debits()) == int(is_unknown)


def test_a_program_says_the_status_if_it_did_not_reach_the_api(
    live: LiveServer, program: list[str]
) -> None:
    """A proxy answers in the same shape, so the outcome is unknown."""
    done = run(
        program,
        json.dumps({"product_id": 1, "quantity": 1}),
        "order-4711",
        base_url=f"{live.base_url}/api/v2",
        key="vk_nothing_of_value",
        second=SHORT_SECOND,
    )

    assert (done.code, done.out) == (2, ""), done
    assert "404" in done.err


@pytest.mark.parametrize("wrong", ["vk_secret\n", " vk_secret", "vk_\nsecret", ""])
def test_a_program_does_not_print_a_key_that_it_cannot_send(
    live: LiveServer, program: list[str], wrong: str
) -> None:
    body = json.dumps({"product_id": 1, "quantity": 1})
    base_url = f"{live.base_url}/api/v1"

    done = run(program, body, "order-4711", base_url=base_url, key=wrong, second=SHORT_SECOND)

    assert (done.code, done.out) == (64, ""), done
    assert "VOUCHER_API_KEY" in done.err
    assert "secret" not in done.err


def test_a_program_that_was_started_wrongly_sends_nothing(
    live: LiveServer, program: list[str]
) -> None:
    """1 would mean that the purchase was refused."""
    merchant = make_merchant()
    body = json.dumps({"product_id": 1, "quantity": 1})
    wrong = [
        (),
        (body,),
        (body, "order-4711", "order-4712"),
        ("", "order-4711"),
        ("product_id=1&quantity=1", "order-4711"),
        ("@buy.py", "order-4711"),  # curl would send the file
        ("[]", "order-4711"),
        ("null", "order-4711"),
        (f"{body}{body[:-1]}", "order-4711"),
        (body, ""),
        (body, "order-4711\n"),
        (body, "order-4711\nAuthorization: x"),
        (body, "order-4711\t"),
        (body, "ordre-nº-4711"),
    ]

    with bad_network(live.port) as network:
        ended = [
            run(program, *each, base_url=network.base_url, key=merchant.key, second=SHORT_SECOND)
            for each in wrong
        ]
        without_address = run(program, body, "order-4711", base_url="", key=merchant.key)

    for done in ended:
        assert (done.code, done.out) == (64, ""), done
        assert re.fullmatch(r"Usage: .+ BODY IDEMPOTENCY_KEY: .+\n", done.err), done
    assert (without_address.code, without_address.out) == (64, ""), without_address
    assert without_address.err == "Set VOUCHER_BASE_URL\n"
    assert network.seen == []


def test_a_program_that_crashes_says_that_the_outcome_is_unknown(program: list[str]) -> None:
    """An earlier run with the same idempotency key may have bought."""
    done = run(program, "{}", "order-4711", base_url="no address", key="vk_x", second=0.001)

    assert (done.code, done.out) == (2, ""), done
    assert "same idempotency key" in done.err


def test_a_program_that_cannot_print_its_order_says_that_the_outcome_is_unknown(
    live: LiveServer, program: list[str]
) -> None:
    merchant = make_merchant(balance="100.00")
    body = json.dumps({"product_id": make_product(price="9.99", codes=5).pk, "quantity": 1})
    address = f"http://127.0.0.1:{live.port}/api/v1"

    lost = run(program, body, "order-4711", base_url=address, key=merchant.key, full=True)
    again = run(program, body, "order-4711", base_url=address, key=merchant.key)

    assert lost.code not in {0, 1, 64}, lost
    assert again.code == 0, again
    assert len(debits()) == 1


@pytest.mark.parametrize("given", ["  {}\n", "{\n}\n"])
def test_a_program_sends_any_json_object_and_any_printable_key(
    live: LiveServer, program: list[str], given: str
) -> None:
    merchant = make_merchant()

    with bad_network(live.port) as network:
        done = run(program, given, "order 47~11!", base_url=network.base_url, key=merchant.key)

    assert (done.code, done.printed["code"]) == (1, "validation_failed"), done
    assert len(network.seen) == 1


def test_a_program_follows_no_redirect(live: LiveServer, program: list[str]) -> None:
    """The key would go with it."""
    merchant = make_merchant(balance="100.00")
    product = make_product(price="9.99", codes=5)

    with bad_network(live.port, "move") as network:
        done = buy(program, network, merchant, product_id=product.pk, quantity=1)

    assert done.code == 0, done
    assert {path for _, path, _ in network.seen} == {"/api/v1/orders"}


def test_a_program_buys_a_top_up(live: LiveServer, program: list[str]) -> None:
    merchant = make_merchant(balance="100.00")
    topup_product = make_topup_product(price="4.99")

    with bad_network(live.port, "lose") as network:
        done = buy(
            program,
            network,
            merchant,
            delivery_type="top_up",
            system_product_id=topup_product.pk,
            player_id="0012345",
        )

    assert done.code == 0, done
    assert done.printed["player_id"] == "0012345"
    assert debits() == [done.printed["reference"]]


def test_the_documented_commands_end_with_the_exit_code_of_the_program(
    program: list[str], tmp_path: Path
) -> None:
    """Nothing answers here, so it ends with 2. `go run` would make 1 of it, which means refused."""
    if program[0] == "node":
        npm.install(typescript.LIBRARY)
        (tmp_path / "node_modules").symlink_to(typescript.LIBRARY / "node_modules")
    shutil.copy(SNIPPETS / program[-1], tmp_path)

    done = subprocess.run(
        ["sh", "-c", " && ".join(documented_commands(program[-1]))],
        cwd=tmp_path,
        env={
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "VOUCHER_BASE_URL": f"http://127.0.0.1:{free_port()}",
            "VOUCHER_API_KEY": "vk_x",
            "VOUCHER_SECOND": "0.001",
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert (done.returncode, done.stdout) == (2, ""), done
    assert "same idempotency key" in done.stderr
