"""Runs the docs' example programs against the live server, over a network that loses answers.

Whatever is lost, there is one debit, and the program gets its order.
"""

import atexit
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from embedded.processes import free_port
from idempotency.models import IdempotencyRecord
from merchants.docs.docs_content import (
    RECONCILE_SNIPPETS,
    RETRY_SNIPPETS,
    SNIPPETS,
    WAIT_SNIPPETS,
)
from tests.factories import (
    Merchant,
    buy_topup,
    make_merchant,
    make_operator,
    make_product,
    make_topup_product,
    move_now,
)
from tests.live import LiveServer
from tests.merchants.bad_network import FOREIGN, BadNetwork, bad_network
from tests.neighbour import ours
from tests.sdk import npm, typescript
from topups.fulfilment.refunds import sweep_refunds
from topups.fulfilment.transitions import Move
from wallets.models import EntryKind, LedgerEntry

pytestmark = pytest.mark.django_db(transaction=True)

# Only what Node removes itself, so `node buy.mts` runs the program, too.
STRICT = ["--strict", "--target", "es2022", "--module", "nodenext", "--erasableSyntaxOnly"]
STRICT += ["--typeRoots", str(typescript.LIBRARY / "node_modules" / "@types"), "--types", "node"]
SECOND = 0.05  # of the programs
SHORT_SECOND = 0.01  # where a program gives up


def in_any_language(name: str) -> pytest.MarkDecorator:
    """Runs a test with the program of this name in each language."""
    return pytest.mark.parametrize(
        "program",
        [
            pytest.param(["sh", f"{name}.sh"], id="curl"),
            pytest.param([sys.executable, f"{name}.py"], id="python"),
            pytest.param(["node", f"{name}.mts"], id="typescript", marks=pytest.mark.npm),
            pytest.param(["php", f"{name}.php"], id="php", marks=pytest.mark.php),
            pytest.param(["go", f"{name}.go"], id="go", marks=pytest.mark.go),
            pytest.param(["java", f"{name.capitalize()}.java"], id="java", marks=pytest.mark.java),
        ],
    )


ANY_LANGUAGE = in_any_language("buy")


@cache
def compiled(*program: str) -> list[str]:
    """The command of a program. Go, Java and TypeScript are compiled once: the documented commands
    compile each time."""
    compiler, file = program[0], SNIPPETS / program[-1]
    if compiler not in ("go", "java", "node"):
        return list(program)
    folder = Path(tempfile.mkdtemp(prefix="voucher-program-"))
    atexit.register(shutil.rmtree, folder)
    if compiler == "node":
        npm.install(typescript.LIBRARY)
        command = [str(typescript.LIBRARY / "node_modules" / ".bin" / "tsc"), *STRICT]
        command += ["--outDir", str(folder), str(file)]
        run_it = ["node", str(folder / f"{file.stem}.mjs")]
    elif compiler == "go":
        built = folder / file.stem
        command = ["go", "build", "-o", str(built), str(file)]
        run_it = [str(built)]
    else:
        command = ["javac", "-d", str(folder), str(file)]
        run_it = ["java", "-XX:TieredStopAtLevel=1", "-cp", str(folder), file.stem]
    cache_of_go = {"GOCACHE": str(folder / "cache"), "GOFLAGS": "-mod=mod", "GO111MODULE": "off"}
    subprocess.run(command, check=True, env={**os.environ, **cache_of_go})
    return run_it


@dataclass(frozen=True)
class Run:
    """The exit code and the output of a program."""

    code: int
    out: str
    err: str

    @property
    def printed(self) -> Any:
        """The printed order or error, without the envelope that the curl program prints."""
        value = json.loads(self.out, parse_float=Decimal)
        return value.get("data") or value.get("error") or value


def run(
    program: list[str],
    *arguments: str,
    base_url: str,
    key: str,
    typed: str | None = None,
    second: float = SECOND,
    full: bool = False,
) -> Run:
    """Runs a program of the docs pages. `typed` is its standard input, and its standard output a
    file on a full disk if `full`."""
    command = [*compiled(*program), *arguments]
    if full:
        command = ["sh", "-c", 'exec "$@" >/dev/full', "sh", *command]
    environment = {
        "PATH": os.environ["PATH"],
        "VOUCHER_BASE_URL": base_url,
        "VOUCHER_API_KEY": key,
        "VOUCHER_SECOND": str(second),
    }
    done = subprocess.run(
        command,
        cwd=SNIPPETS,
        env=environment,
        input=typed,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert not key or key not in done.stdout + done.stderr
    return Run(done.returncode, done.stdout, done.stderr)


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


def debits() -> list[str | None]:
    purchases = ours(LedgerEntry).filter(kind=EntryKind.PURCHASE).order_by("pk")
    return list(purchases.values_list("order_reference", flat=True))


@ANY_LANGUAGE
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


@ANY_LANGUAGE
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


@ANY_LANGUAGE
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


@ANY_LANGUAGE
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


@ANY_LANGUAGE
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


@ANY_LANGUAGE
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


@ANY_LANGUAGE
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


@ANY_LANGUAGE
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


@ANY_LANGUAGE
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


@ANY_LANGUAGE
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
    )

    assert (done.code, done.out) == (2, ""), done
    assert "404" in done.err


@ANY_LANGUAGE
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


@ANY_LANGUAGE
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


@ANY_LANGUAGE
def test_a_program_that_crashes_says_that_the_outcome_is_unknown(program: list[str]) -> None:
    """An earlier run with the same idempotency key may have bought."""
    done = run(program, "{}", "order-4711", base_url="no address", key="vk_x", second=0.001)

    assert (done.code, done.out) == (2, ""), done
    assert "same idempotency key" in done.err


@ANY_LANGUAGE
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


@ANY_LANGUAGE
@pytest.mark.parametrize("given", ["  {}\n", "{\n}\n"])
def test_a_program_sends_any_json_object_and_any_printable_key(
    live: LiveServer, program: list[str], given: str
) -> None:
    merchant = make_merchant()

    with bad_network(live.port) as network:
        done = run(program, given, "order 47~11!", base_url=network.base_url, key=merchant.key)

    assert (done.code, done.printed["code"]) == (1, "validation_failed"), done
    assert len(network.seen) == 1


@ANY_LANGUAGE
def test_a_program_follows_no_redirect(live: LiveServer, program: list[str]) -> None:
    """The key would go with it."""
    merchant = make_merchant(balance="100.00")
    product = make_product(price="9.99", codes=5)

    with bad_network(live.port, "move") as network:
        done = buy(program, network, merchant, product_id=product.pk, quantity=1)

    assert done.code == 0, done
    assert {path for _, path, _ in network.seen} == {"/api/v1/orders"}


@ANY_LANGUAGE
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


def test_the_first_calls_work(live: LiveServer) -> None:
    merchant = make_merchant(balance="12.34")
    make_product(name="Card", codes=1)
    make_topup_product(name="Gems")

    done = run(["sh", "first_calls.sh"], base_url=f"{live.base_url}/api/v1", key=merchant.key)

    ping, balance, products, topup_products = (
        json.loads(line, parse_float=Decimal)["data"] for line in done.out.splitlines()
    )
    assert done.code == 0, done
    assert ping["client"] == merchant.client.name
    assert balance["balance"] == Decimal("12.34")
    assert [item["name"] for item in products["items"]] == ["Card"]
    assert [item["name"] for item in topup_products["items"]] == ["Gems"]


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_shell_programs_can_be_pasted_into_a_terminal(live: LiveServer, shell: str) -> None:
    merchant = make_merchant(balance="100")
    shelf = make_product(price="9.99", codes=1)
    pasted = f"""
{(SNIPPETS / "first_calls.sh").read_text()}
{(SNIPPETS / "buy.sh").read_text()}
buy '{{"product_id": {shelf.pk}, "quantity": 1}}' pasted; echo "exit $?"
buy '{{"product_id": {shelf.pk}, "quantity": 1}}' refused; echo "exit $?"
unset VOUCHER_API_KEY
call /ping
echo still here
"""
    base_url = f"{live.base_url}/api/v1"
    done = run([shell, "-s"], base_url=base_url, key=merchant.key, typed=pasted)

    assert "exit 0" in done.out, done
    assert "insufficient_stock" in done.out
    assert "exit 1" in done.out
    assert "VOUCHER_API_KEY: is not set" in done.err
    assert done.out.endswith("still here\n")
    assert len(debits()) == 1


def documented_commands(name: str) -> list[str]:
    """The commands at the head of a program: the first lines that are indented."""
    commands: list[str] = []
    for line in (SNIPPETS / name).read_text().splitlines():
        if found := re.match(r"(?:#|//)?(?:\t| {3,})(\S.*)", line):
            commands.append(found[1])
        elif commands:
            break
    return [command for command in commands if not command.startswith("npm install")]


@ANY_LANGUAGE
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


@pytest.mark.parametrize(
    ("buyer", "other", "arguments"),
    [
        *(
            (*pair, "purchases 2026-10-01 2026-10-31")
            for pair in zip(RETRY_SNIPPETS, RECONCILE_SNIPPETS, strict=True)
        ),
        *((*pair, "REFERENCE...") for pair in zip(RETRY_SNIPPETS, WAIT_SNIPPETS, strict=True)),
    ],
)
def test_the_other_programs_start_like_the_one_that_buys(
    buyer: str, other: str, arguments: str
) -> None:
    body = """'{"product_id": 10, "quantity": 1}' IDEMPOTENCY_KEY"""
    old, new = buyer.partition(".")[0], other.partition(".")[0]
    assert documented_commands(other) == [
        command.replace(body, arguments).replace(old, new) for command in documented_commands(buyer)
    ]


WAITING = in_any_language("wait")


@contextmanager
def waiting_for(
    program: list[str], *references: str, live: LiveServer, merchant: Merchant, **variables: str
) -> Iterator["subprocess.Popen[str]"]:
    """The running waiting program."""
    environment = {
        "PATH": os.environ["PATH"],
        "VOUCHER_BASE_URL": f"{live.base_url}/api/v1",
        "VOUCHER_API_KEY": merchant.key,
        "VOUCHER_PAUSE_SECONDS": "0.1",
        **variables,
    }
    with subprocess.Popen(
        [*compiled(*program), *references],
        cwd=SNIPPETS,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def wait_until(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)


def assert_still_waits(program: "subprocess.Popen[str]") -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        program.wait(1)


def move(reference: str, *moves: Move) -> None:
    operator = make_operator()
    for each in (Move.CLAIM, *moves):
        move_now(reference=reference, move=each, operator=operator)


@WAITING
def test_a_waiting_program_says_how_each_top_up_ended(live: LiveServer, program: list[str]) -> None:
    """One is older than the 100 newest orders, and one is a voucher."""
    merchant = make_merchant(balance="1000.00", rate_limit_per_minute=1000)
    topup_product = make_topup_product(price="1.00")
    old = buy_topup(merchant, topup_product)
    voucher = merchant.buy("v", product_id=make_product(codes=1).pk, quantity=1).json()["data"]
    for _ in range(97):
        buy_topup(merchant, topup_product)
    delivered, refunded = (buy_topup(merchant, topup_product) for _ in range(2))
    references = [old, voucher["reference"], delivered, refunded]

    with (
        bad_network(live.port) as network,
        waiting_for(
            program, *references, live=live, merchant=merchant, VOUCHER_BASE_URL=network.base_url
        ) as running,
    ):
        assert_still_waits(running)
        move(delivered, Move.COMPLETE)
        move(old, Move.COMPLETE)
        move(refunded, Move.REJECT)
        assert_still_waits(running)
        assert sweep_refunds() == 1
        out, _ = running.communicate(timeout=30)

    assert running.returncode == 0
    assert sorted(out.splitlines()) == sorted(
        [
            f"{old} completed",
            f"{voucher['reference']} completed",
            f"{delivered} completed",
            f"{refunded} refunded",
        ]
    )
    read_one_by_one = {path.rpartition("/")[2] for _, path, _ in network.seen if "?" not in path}
    assert read_one_by_one - {refunded} == {old}  # the last one left is read by itself


@WAITING
@pytest.mark.parametrize("words", [[*FOREIGN], ["lose", "half", "limit", "move"]])
def test_a_waiting_program_waits_for_the_services_own_json(
    live: LiveServer, program: list[str], words: list[str]
) -> None:
    merchant = make_merchant(balance="100.00")
    first, second = (buy_topup(merchant, make_topup_product()) for _ in range(2))

    with (
        bad_network(live.port, *words) as network,
        waiting_for(
            program, first, second, live=live, merchant=merchant, VOUCHER_BASE_URL=network.base_url
        ) as running,
    ):
        assert_still_waits(running)
        for reference in (first, second):
            move(reference, Move.COMPLETE)
        out, _ = running.communicate(timeout=30)

    assert running.returncode == 0
    assert sorted(out.splitlines()) == sorted([f"{first} completed", f"{second} completed"])


@WAITING
def test_a_waiting_program_stops_at_an_unknown_reference(
    live: LiveServer, program: list[str]
) -> None:
    with waiting_for(program, "unknown", live=live, merchant=make_merchant()) as running:
        out, err = running.communicate(timeout=30)

    assert (running.returncode, out) == (1, "")
    assert err.splitlines()[-1] == "/orders/unknown cannot be read: order_not_found"


@WAITING
def test_a_waiting_program_says_that_no_refund_came(live: LiveServer, program: list[str]) -> None:
    """Staff may fail an order without a refund, after a review."""
    merchant = make_merchant(balance="100.00")
    reference = buy_topup(merchant, make_topup_product())
    move(reference, Move.REJECT)

    with waiting_for(
        program, reference, live=live, merchant=merchant, VOUCHER_PATIENCE_SECONDS="1.5"
    ) as running:
        out, _ = running.communicate(timeout=30)

    assert (running.returncode, out) == (1, f"{reference} not refunded\n")


@WAITING
def test_a_waiting_program_repeats_a_request_when_the_rate_limit_allows_it(
    live: LiveServer, program: list[str]
) -> None:
    """The next round could reach the limit at the same order again."""
    merchant = make_merchant(balance="100.00")
    references = [buy_topup(merchant, make_topup_product()) for _ in range(2)]
    for reference in references:
        move(reference, Move.COMPLETE)

    with (
        bad_network(live.port, "none", "limit") as network,
        waiting_for(
            program, *references, live=live, merchant=merchant, VOUCHER_BASE_URL=network.base_url
        ) as running,
    ):
        out, _ = running.communicate(timeout=30)

    assert out.splitlines() == [f"{reference} completed" for reference in references]
    assert [path.rpartition("/")[2] for _, path, _ in network.seen] == references
    assert network.times[2] - network.times[1] >= 1  # retry_after_seconds


@WAITING
def test_a_waiting_program_reads_the_other_old_orders_if_one_cannot_be_read(
    live: LiveServer, program: list[str]
) -> None:
    merchant = make_merchant(balance="100.00")
    unreadable, readable = (buy_topup(merchant, make_topup_product()) for _ in range(2))
    for reference in (unreadable, readable):
        move(reference, Move.COMPLETE)

    with (
        bad_network(live.port, "none", "gateway") as network,
        waiting_for(
            program,
            unreadable,
            readable,
            live=live,
            merchant=merchant,
            VOUCHER_BASE_URL=network.base_url,
        ) as running,
    ):
        out, _ = running.communicate(timeout=30)

    assert out.splitlines() == [f"{readable} completed", f"{unreadable} completed"]
    assert network.times[2] - network.times[1] >= 1  # one a second


@WAITING
@pytest.mark.parametrize("wrong", ["{network}", "http://127.0.0.1:{closed}", "https://{host}"])
def test_a_waiting_program_gives_up_if_it_can_read_no_order(
    live: LiveServer, program: list[str], wrong: str
) -> None:
    """A proxy answers for ever, nothing listens there, or there is no certificate."""
    host = live.base_url.removeprefix("http://")

    with (
        bad_network(live.port, *["crowd"] * 1000) as network,
        waiting_for(
            program,
            "R-1",
            "R-2",
            live=live,
            merchant=make_merchant(),
            VOUCHER_BASE_URL=wrong.format(network=network.base_url, closed=free_port(), host=host),
            VOUCHER_PATIENCE_SECONDS="1.5",
        ) as running,
    ):
        out, err = running.communicate(timeout=30)

    assert (running.returncode, out) == (1, ""), err
    *before, last = err.splitlines()
    assert len(before) > 1
    assert all("trying again" in line for line in before)
    assert last == "Gave up, because no order could be read: check VOUCHER_BASE_URL"


@WAITING
def test_a_waiting_program_goes_on_while_it_can_read_an_order_now_and_then(
    live: LiveServer, program: list[str]
) -> None:
    merchant = make_merchant(balance="100.00", rate_limit_per_minute=1000)
    reference = buy_topup(merchant, make_topup_product())

    with (
        bad_network(live.port, *["gateway", "pass"] * 1000) as network,
        waiting_for(
            program,
            reference,
            live=live,
            merchant=merchant,
            VOUCHER_BASE_URL=network.base_url,
            VOUCHER_PATIENCE_SECONDS="1.5",
        ) as running,
    ):
        wait_until(lambda: len(network.seen) > 4)
        assert_still_waits(running)
        assert_still_waits(running)


@WAITING
def test_a_waiting_program_takes_an_empty_variable_as_the_default(
    live: LiveServer, program: list[str]
) -> None:
    merchant = make_merchant(balance="100.00")
    reference = buy_topup(merchant, make_topup_product())
    move(reference, Move.REJECT)

    with (
        bad_network(live.port) as network,
        waiting_for(
            program,
            reference,
            live=live,
            merchant=merchant,
            VOUCHER_BASE_URL=network.base_url,
            VOUCHER_PAUSE_SECONDS="",
            VOUCHER_PATIENCE_SECONDS="",
        ) as running,
    ):
        wait_until(lambda: len(network.seen) == 1)
        assert_still_waits(running)

    assert len(network.seen) == 1


@WAITING
def test_a_waiting_program_that_was_started_wrongly_sends_nothing(
    live: LiveServer, program: list[str]
) -> None:
    merchant = make_merchant()
    usage = r"Usage: .+ REFERENCE\.\.\.\n"
    wrong: list[tuple[list[str], dict[str, str], str]] = [
        ([], {}, usage),
        ([""], {}, usage),
        (["R-1", "../ping"], {}, usage),
        (["R-1"], {"VOUCHER_BASE_URL": ""}, "Set VOUCHER_BASE_URL\n"),
        (["R-1"], {"VOUCHER_API_KEY": "vk_secret\n"}, "Set VOUCHER_API_KEY to the key only.*\n"),
    ]
    for name, values in {
        "VOUCHER_PAUSE_SECONDS": ["0", "-1", "nan", "1\n", "9999999"],
        "VOUCHER_PATIENCE_SECONDS": ["0.0", "1 min"],
    }.items():
        problem = f"Set {name} to a number of seconds\n"
        wrong += [(["R-1"], {name: value}, problem) for value in values]

    with bad_network(live.port) as network:
        for references, changes, problem in wrong:
            variables = {"VOUCHER_BASE_URL": network.base_url, **changes}
            with waiting_for(
                program, *references, live=live, merchant=merchant, **variables
            ) as running:
                out, err = running.communicate(timeout=30)
            assert (running.returncode, out) == (64, "")
            assert re.fullmatch(problem, err), err

    assert network.seen == []


@pytest.mark.parametrize("name", ["buy.sh", "wait.sh"])
def test_a_shell_program_keeps_no_response_in_a_file(
    live: LiveServer, name: str, tmp_path: Path
) -> None:
    """dash runs no EXIT trap when a signal ends it, and a response can contain codes."""
    merchant = make_merchant(balance="100.00")
    bought = buy_topup(merchant, make_topup_product())
    body = json.dumps({"product_id": make_product(codes=1).pk, "quantity": 1})
    arguments = {"buy.sh": [body, "order-4711"], "wait.sh": [bought]}[name]

    with (
        bad_network(live.port, *["half"] * 1000) as network,
        waiting_for(
            ["sh", name],
            *arguments,
            live=live,
            merchant=merchant,
            VOUCHER_BASE_URL=network.base_url,
            TMPDIR=str(tmp_path),
        ) as running,
    ):
        wait_until(lambda: len(network.seen) > 1)
        running.terminate()
        running.wait(30)

    assert running.returncode == -signal.SIGTERM
    assert list(tmp_path.iterdir()) == []
