"""What holds for the programs in the shell alone, and for the beginning of all programs."""

import html
import json
import os
import re
import signal
import socket
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest
from django.test import Client

from merchants.docs.docs_content import (
    RECONCILE_SNIPPETS,
    RETRY_SNIPPETS,
    SNIPPETS,
    WAIT_SNIPPETS,
)
from tests.factories import (
    buy_topup,
    make_merchant,
    make_product,
    make_topup_product,
    make_variation,
)
from tests.live import LiveServer
from tests.merchants.bad_network import bad_network
from tests.merchants.docs.programs import debits, documented_commands, run, wait_until, waiting_for

pytestmark = pytest.mark.django_db(transaction=True)


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


def test_each_example_of_the_reference_is_a_command_that_works(live: LiveServer) -> None:
    shelf = make_product(id=10)
    make_variation(shelf, codes=2, id=100)
    make_topup_product(id=500)
    merchant = make_merchant(balance="100")
    page = html.unescape(Client().get("/docs/api/").content.decode())
    commands = re.findall('<pre id="curl-([a-z_]+)"[^>]*>(.*?)</pre>', page, re.DOTALL)
    assert len(commands) == 9

    for name, command in commands:
        done = run(
            ["sh", "-s"], base_url=f"{live.base_url}/api/v1", key=merchant.key, typed=command
        )
        answer = json.loads(done.out)
        if name == "get_order":  # of an order that does not exist
            assert answer["error"]["code"] == "order_not_found"
        else:
            assert answer["success"] is True, (command, answer)


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


def test_the_shell_program_removes_the_statement_when_a_signal_ends_it(tmp_path: Path) -> None:
    """dash runs no EXIT trap then."""
    (tmp_path / "purchases").mkdir()
    (tmp_path / "temporary").mkdir()
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        subprocess.Popen(
            ["sh", "reconcile.sh", str(tmp_path / "purchases"), "2021-01-01", "2199-12-31"],
            cwd=SNIPPETS,
            env={
                "PATH": os.environ["PATH"],
                "VOUCHER_SITE": f"http://127.0.0.1:{silent.getsockname()[1]}",
                "VOUCHER_BOOK_KEY": "bk_x",
                "TMPDIR": str(tmp_path / "temporary"),
            },
            start_new_session=True,
        ) as running,
    ):
        silent.settimeout(30)
        connection, _ = silent.accept()
        os.killpg(running.pid, signal.SIGTERM)
        running.wait(30)
        connection.close()

    assert running.returncode == 2
    assert list((tmp_path / "temporary").iterdir()) == []
