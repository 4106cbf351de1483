"""Runs the docs' programs that reconcile against the live server, with what the programs that buy
have printed.
"""

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from merchants.docs.docs_content import SNIPPETS
from merchants.money.book_keys import issue_book_key
from tests.factories import Merchant, make_client, make_merchant, make_product, make_topup_product
from tests.live import LiveServer
from tests.merchants.bad_network import bad_network
from tests.merchants.docs.programs import Run, compiled, run
from tests.merchants.people import make_member

pytestmark = pytest.mark.django_db(transaction=True)

PERIOD = ("2021-01-01", "2199-12-31")
PROGRAM = "reconcile"


@pytest.fixture
def merchant() -> Merchant:
    return make_merchant(balance="1000.00")


@pytest.fixture
def key(merchant: Merchant) -> str:
    """A key for the merchant's books."""
    return issue_book_key(account=merchant.account, actor=make_member(merchant.account).user)


def reconcile(
    program: list[str],
    folder: Path,
    *,
    site: str | None,
    key: str | None,
    period: tuple[str, ...] = PERIOD,
) -> Run:
    variables = {"PATH": os.environ["PATH"], "VOUCHER_SITE": site, "VOUCHER_BOOK_KEY": key}
    done = subprocess.run(
        [*compiled(*program), str(folder), *period],
        cwd=SNIPPETS,
        env={name: value for name, value in variables.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert not key or key not in done.stdout + done.stderr
    return Run(done.returncode, done.stdout, done.stderr)


def test_a_program_finds_no_difference_after_lost_responses(
    live: LiveServer, program: list[str], merchant: Merchant, key: str, tmp_path: Path
) -> None:
    """It reads what the program of the same language printed: the order, or why it was refused."""
    bodies: list[dict[str, Any]] = [
        {"product_id": make_product(price="10.00", codes=5).pk, "quantity": 2},
        {
            "delivery_type": "top_up",
            "system_product_id": make_topup_product(price="4.99").pk,
            "player_id": "0012345",
        },
        {"product_id": make_product(price="1.15", codes=0).pk, "quantity": 1},
    ]
    buyer = [program[0], program[1].replace("Reconcile", "Buy").replace("reconcile", "buy")]
    for number, body in enumerate(bodies):
        lost = ["lose", "half"] if number < 2 else []
        with bad_network(live.port, *lost) as network:
            order = (json.dumps(body), f"order-{number}")
            done = run(buyer, *order, base_url=network.base_url, key=merchant.key)
        (tmp_path / f"order-{number}.json").write_text(done.out)
    (tmp_path / "notes.txt").write_text("This is no purchase.")

    done = reconcile(program, tmp_path, site=live.base_url, key=key)

    assert (done.code, done.out) == (0, "3 purchases, 2 debits, 0 differences\n"), done


def test_a_program_names_each_difference(
    live: LiveServer, program: list[str], merchant: Merchant, key: str, tmp_path: Path
) -> None:
    product = make_product(name='Card, "large"', price="9.99", codes=9)
    other = Merchant(make_client(merchant.account))
    references = {}
    for number, buys in enumerate([merchant, merchant, merchant, other]):
        answer = buys.buy(f"order-{number}", product_id=product.pk, quantity=1)
        references[number] = answer.json()["data"]["reference"]
        (tmp_path / f"order-{number}.json").write_text(answer.content.decode())
    bought = (tmp_path / "order-0.json").read_text()
    (tmp_path / "order-1.json").write_text(
        (tmp_path / "order-1.json").read_text().replace("9.99", "9.98")
    )
    (tmp_path / "order-2.json").write_text("")  # its response was lost
    (tmp_path / "order-3.json").unlink()  # another client's
    lost = json.loads(bought)
    lost["data"]["reference"] = "NOT-IN-THE-STATEMENT"
    (tmp_path / "order-4.json").write_text(json.dumps(lost))
    lost["data"]["reference"] = "NOT-OF-THESE-DAYS"
    lost["data"]["created_at"] = "2020-12-31T23:59:59.999999Z"
    (tmp_path / "order-5.json").write_text(json.dumps(lost))

    done = reconcile(program, tmp_path, site=live.base_url, key=key)

    assert done.code == 1, done
    assert done.out.splitlines() == [
        f"another amount: {references[1]}, order-1, 9.98 here, 9.99 debited",
        "open: order-2",
        "no debit: NOT-IN-THE-STATEMENT, order-4",
        f"unknown here: {references[2]}, order-2, {merchant.client.name}, 9.99 debited",
        f"unknown here: {references[3]}, order-3, {other.client.name}, 9.99 debited",
        "5 purchases, 4 debits, 5 differences",
    ]


def test_a_program_says_that_nothing_was_bought(
    live: LiveServer, program: list[str], merchant: Merchant, key: str, tmp_path: Path
) -> None:
    done = reconcile(program, tmp_path, site=live.base_url, key=key)

    assert (done.code, done.out) == (0, "0 purchases, 0 debits, 0 differences\n"), done


def test_a_program_that_has_nothing_to_compare_says_why(
    live: LiveServer, program: list[str], merchant: Merchant, key: str, tmp_path: Path
) -> None:
    merchant.buy("order-0", product_id=make_product(price="9.99", codes=1).pk, quantity=1)

    refused = reconcile(program, tmp_path, site=live.base_url, key=merchant.key)
    without = reconcile(program, tmp_path / "nowhere", site=live.base_url, key=key)
    with bad_network(live.port, "half") as network:
        site = network.base_url.removesuffix("/api/v1")
        incomplete = reconcile(program, tmp_path, site=site, key=key)

    for done in (refused, without, incomplete):
        assert (done.code, done.out) == (2, ""), done
    assert "This is not a live key for books." in refused.err
    assert "nowhere" in without.err


@contextmanager
def statement_of(*entries: dict[str, Any], moved_to: str = "") -> Iterator[str]:
    """A site whose statement has these entries, or is elsewhere. Yields its address."""
    lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in entries)
    statement = f'{{"account":"A","currency":"USD","entries":[\n{lines}\n]}}\n'.encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302 if moved_to else 200)
            if moved_to:
                self.send_header("Location", moved_to + self.path)
            self.send_header("Content-Length", str(len(statement)))
            self.end_headers()
            self.wfile.write(statement)

        def log_message(self, *_: Any) -> None:
            """Logs nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def debit_of(reference: str, key: str | None) -> dict[str, Any]:
    """An entry of a statement."""
    return {
        **{"id": 1, "time": "2026-11-26T10:00:00Z", "kind": "purchase", "amount": -9.99},
        **{"balance_after": 1.0, "order_reference": reference, "note": "", "bank_reference": None},
        **{"client": "Shop", "product": "Card", "idempotency_key": key},
    }


ORDER = {"reference": "R1", "total_price": 9.99, "created_at": "2026-11-26T10:00:00Z"}
REFUSAL = {"code": "order_refused", "reason": "insufficient_stock", "message": "No {codes}."}


def test_a_program_finds_a_second_debit_for_one_order(program: list[str], tmp_path: Path) -> None:
    """The database of the service allows none, so the statement is made here."""
    (tmp_path / "order-1.json").write_text(json.dumps(ORDER))
    debit = debit_of("R1", "order-1")

    with statement_of(debit, debit) as site:
        done = reconcile(program, tmp_path, site=site, key="bk_x")

    assert done.code == 1, done
    assert done.out == "debited twice: R1, order-1\n1 purchases, 2 debits, 1 differences\n"


def test_a_program_finds_a_refusal_that_was_bought(program: list[str], tmp_path: Path) -> None:
    """The first response was lost, and a retry was refused."""
    (tmp_path / "order-1.json").write_text(json.dumps(REFUSAL))
    (tmp_path / "order-2.json").write_text(json.dumps({"success": False, "error": REFUSAL}))
    (tmp_path / "order-3.json").write_text(json.dumps(REFUSAL))
    debits = [debit_of("R1", "order-1"), debit_of("R2", "order-2"), debit_of("R3", None)]

    with statement_of(*debits) as site:
        done = reconcile(program, tmp_path, site=site, key="bk_x")

    assert done.code == 1, done
    assert done.out.splitlines() == [
        "bought, not refused: R1, order-1, 9.99 debited",
        "bought, not refused: R2, order-2, 9.99 debited",
        "unknown here: R3, , Shop, 9.99 debited",
        "3 purchases, 3 debits, 3 differences",
    ]


@pytest.mark.parametrize(
    "period",
    [("2026-10-1", "2026-10-31"), ("2026-10-01", ""), ("2026-10-01", "2026-10-31\n")],
)
def test_a_program_accepts_only_days_in_full(
    program: list[str], period: tuple[str, str], tmp_path: Path
) -> None:
    with statement_of() as site:
        done = reconcile(program, tmp_path, site=site, key="bk_x", period=period)

    assert (done.code, done.out) == (2, ""), done
    assert "2026-10-31" in done.err


def test_a_program_that_was_started_wrongly_says_why(program: list[str], tmp_path: Path) -> None:
    """1 would mean that there are differences."""
    with statement_of() as site:
        without_days = reconcile(program, tmp_path, site=site, key="bk_x", period=())
        without_site = reconcile(program, tmp_path, site=None, key="bk_x")
        without_key = reconcile(program, tmp_path, site=site, key=None)
        without_scheme = reconcile(program, tmp_path, site="no address", key="bk_x")

    for done in (without_days, without_site, without_key, without_scheme):
        assert (done.code, done.out) == (2, ""), done
        assert done.err, done
    assert "purchases 2026-10-01 2026-10-31" in without_days.err
    assert "VOUCHER_SITE" in without_site.err
    assert "VOUCHER_BOOK_KEY" in without_key.err


def test_a_program_that_cannot_read_the_statement_says_why(
    program: list[str], tmp_path: Path
) -> None:
    (tmp_path / "order-1.json").write_text(json.dumps(ORDER))

    with statement_of({**debit_of("R1", "order-1"), "amount": "?"}) as site:
        done = reconcile(program, tmp_path, site=site, key="bk_x")

    assert (done.code, done.out) == (2, ""), done
    assert done.err


@pytest.mark.parametrize("change", [{"created_at": None}, {"created_at": ""}])
def test_a_program_takes_an_order_without_a_day_as_one_of_these_days(
    program: list[str], change: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "order-1.json").write_text(json.dumps({**ORDER, **change}))

    with statement_of() as site:
        done = reconcile(program, tmp_path, site=site, key="bk_x")

    assert done.code == 1, done
    assert done.out == "no debit: R1, order-1\n1 purchases, 0 debits, 1 differences\n"


def test_a_program_expects_no_debit_for_a_replacement(program: list[str], tmp_path: Path) -> None:
    for number, total in enumerate(("0.00", "0", '"0.00"')):
        order = json.dumps({**ORDER, "reference": f"R{number}"}).replace("9.99", total)
        (tmp_path / f"order-{number}.json").write_text(order)

    with statement_of() as site:
        done = reconcile(program, tmp_path, site=site, key="bk_x")

    assert (done.code, done.out) == (0, "3 purchases, 0 debits, 0 differences\n"), done


def test_a_program_finds_one_order_in_two_files(program: list[str], tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"order-{number}.json").write_text(json.dumps(ORDER))

    with statement_of(debit_of("R1", "order-1")) as site:
        done = reconcile(program, tmp_path, site=site, key="bk_x")

    assert done.code == 1, done
    assert done.out == "one order twice: R1, order-2\n2 purchases, 1 debits, 1 differences\n"


@pytest.mark.parametrize(
    "text",
    [
        "<html>Bad gateway</html>",
        "{}",
        "[]",
        "null",
        '{"success":true,"data":{"reference":"R1","codes":[{"code":"X"}',
        '{"success":false,"error":{"code":"order_refused","mess',
        '{"success":true,"data":{"reference":"R1","total_price":9.99,"created',
    ],
)
def test_a_program_names_a_file_that_is_no_response(
    program: list[str], text: str, tmp_path: Path
) -> None:
    (tmp_path / "order-1.json").write_text(text)

    with statement_of() as site:
        done = reconcile(program, tmp_path, site=site, key="bk_x")

    assert (done.code, done.out) == (2, ""), done
    assert "order-1.json" in done.err


@pytest.mark.parametrize("wrong", ["bk_secret\n", " bk_secret", "bk_\nsecret"])
def test_a_program_does_not_print_a_key_that_it_cannot_send(
    program: list[str], wrong: str, tmp_path: Path
) -> None:
    with statement_of() as site:
        done = reconcile(program, tmp_path, site=site, key=wrong)

    assert (done.code, done.out) == (2, ""), done
    assert "VOUCHER_BOOK_KEY" in done.err
    assert "secret" not in done.err


def test_a_program_follows_no_redirect(program: list[str], tmp_path: Path) -> None:
    """The key would go with it."""
    with statement_of() as elsewhere, statement_of(moved_to=elsewhere) as site:
        done = reconcile(program, tmp_path, site=site, key="bk_x")

    assert (done.code, done.out) == (2, ""), done
