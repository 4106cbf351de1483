"""Our own programs pass the exam, and a naive one fails it with each of its mistakes named."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from embedded.environment import PROJECT
from merchants.docs.docs_content import SNIPPETS
from simulator.exam import FAULTS, Exam, Report
from simulator.faults import Fault
from simulator.proxy import Exchange
from simulator.shop import open_shop
from tests.live import LiveServer
from tests.merchants.docs.test_docs_programs import compiled
from tests.sdk import typescript

pytestmark = pytest.mark.django_db(transaction=True)

PROGRAMS = PROJECT / "simulator" / "programs"
# rate_limited makes a program wait for up to a minute.
QUICK = [fault for fault in FAULTS if fault is not Fault.RATE_LIMITED]
PURCHASES = int(os.environ.get("EXAM_PURCHASES", "30"))
STARTS = int(os.environ.get("EXAM_PURCHASES", "12"))  # of a program that starts for each order


EXCHANGE = Exchange(
    run=1,
    at=100.0,
    answered=105.0,
    method="POST",
    path="/api/v1/orders",
    key="key",
    body=b"{}",
    fault=Fault.LOST_AFTER,
    status=201,
    content=b"{}",
    received=0,
)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(PROJECT / "sdk" / "python" / "src"))
    monkeypatch.setenv("VOUCHER_SECOND", "0.2")


def exam(
    live: LiveServer, *, purchases: int = PURCHASES, rate_limit: int = 6000, **options: object
) -> Exam:
    largest = purchases // 10 + 1
    shop = open_shop(products=5, codes=2 * largest * (largest + 1), rate_limit=rate_limit)
    return Exam(shop, live.port, purchases=purchases, **options)  # type: ignore[arg-type]


def test_the_python_library_passes(live: LiveServer) -> None:
    report = exam(live, kills=3, faults=QUICK).run(
        [sys.executable, str(PROGRAMS / "with_library.py")]
    )

    assert str(report).endswith("PASSED"), report
    assert report.faults > 0
    assert report.kills == 3


@pytest.mark.npm
def test_the_typescript_library_passes(live: LiveServer) -> None:
    typescript.build()
    report = exam(live, kills=3, faults=QUICK).run(
        [typescript.newest_node(), str(PROGRAMS / "with_library.mjs")]
    )

    assert str(report).endswith("PASSED"), report
    assert report.faults > 0
    assert report.kills == 3


@pytest.mark.parametrize(
    "program",
    [
        pytest.param([sys.executable, "buy.py"], id="python"),
        pytest.param(["sh", "buy.sh"], id="curl"),
        pytest.param(["node", "buy.mts"], id="typescript", marks=pytest.mark.npm),
        pytest.param(["php", "buy.php"], id="php", marks=pytest.mark.php),
        pytest.param(["go", "buy.go"], id="go", marks=pytest.mark.go),
        pytest.param(["java", "Buy.java"], id="java", marks=pytest.mark.java),
    ],
)
def test_a_program_of_the_documentation_passes(live: LiveServer, program: list[str]) -> None:
    command = compiled(*program)
    if command == program:  # a script, beside this folder
        command = [*program[:-1], str(SNIPPETS / program[-1])]
    report = exam(live, purchases=STARTS, kills=2, faults=QUICK).run(command, each=True)

    assert str(report).endswith("PASSED"), report
    assert report.faults > 0


def test_a_naive_program_fails_with_each_mistake_named(live: LiveServer) -> None:
    """The service limits nothing here, so each purchase meets the same faults on each machine."""
    faults = [Fault.LOST_AFTER, Fault.ERROR_AFTER, Fault.TIMEOUT, Fault.PORTAL, Fault.RATE_LIMITED]
    report = exam(live, kills=0, faults=faults).run([sys.executable, str(PROGRAMS / "naive.py")])

    assert set(report.mistakes) >= {
        *("double_debit", "lost_order", "wrong_outcome", "new_key", "changed_bytes"),
        *("early_retry", "rounding", "secret"),
    }, report
    assert str(report).endswith("FAILED")


def test_a_naive_program_fails_by_its_pace(live: LiveServer) -> None:
    report = exam(live, purchases=4, kills=0, faults=[], rate_limit=10).run(
        [sys.executable, str(PROGRAMS / "naive.py")]
    )

    assert set(report.mistakes) >= {"early_retry", "above_limit"}, report


@pytest.mark.parametrize(
    ("run", "seconds", "is_early"),
    [
        pytest.param(1, 0.01, True, id="at once"),
        pytest.param(1, 0.2, False, id="after a pause"),
        pytest.param(2, 0.01, False, id="after a kill"),
    ],
)
def test_a_retry_is_early_if_the_same_run_sends_it_at_once(
    run: int, seconds: float, is_early: bool
) -> None:
    """The service took 5 seconds for the first attempt: the wait begins after them."""
    retry = replace(
        EXCHANGE, run=run, at=105.0 + seconds, answered=106.0 + seconds, fault=Fault.NONE
    )
    exam = Exam(open_shop(products=1, codes=1), 0, purchases=1)

    exam._simulator.server_close()
    exam._judge_pace([EXCHANGE, retry])

    assert ("early_retry" in exam._report.mistakes) is is_early


def test_a_program_that_ends_with_an_error_fails(live: LiveServer) -> None:
    report: Report = exam(live).run([sys.executable, "-c", "raise SystemExit(3)"])
    assert {"failed", "no_outcome"} == set(report.mistakes)


@pytest.mark.parametrize("printed", ["", "done", "[]", '{"data": null}'])
def test_a_program_that_prints_no_order_has_a_wrong_outcome(printed: str) -> None:
    exam = Exam(open_shop(products=1, codes=1), 0, purchases=1, kills=0)

    report = exam.run([sys.executable, "-c", f"print({printed!r})"], each=True)

    assert set(report.mistakes) == {"wrong_outcome"}


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"{}"])
def test_any_request_can_be_judged(body: bytes) -> None:
    exam = Exam(open_shop(products=1, codes=1), 0, purchases=1)
    exam._simulator.server_close()
    exam._judge_requests([replace(EXCHANGE, body=body)])
    assert exam._report.mistakes == {}


def test_after_an_unknown_outcome_only_an_order_refused_is_final(tmp_path: Path) -> None:
    """The attempt before a kill may have bought. That the client is disabled now does not tell."""
    starts = tmp_path / "starts"
    program = (
        "import pathlib, sys\n"
        f"starts = pathlib.Path({str(starts)!r})\n"
        "number = len(starts.read_text()) if starts.exists() else 0\n"
        "starts.write_text('.' * (number + 1))\n"
        'print(["", \'{"success": false, "error": {"code": "client_disabled"}}\','
        ' \'{"code": "order_refused"}\'][number])\n'
        "sys.exit([2, 1, 1][number])\n"
    )
    exam = Exam(open_shop(products=1, codes=1), 0, purchases=1, kills=0)

    report = exam.run([sys.executable, "-c", program], each=True)

    assert len(starts.read_text()) == 3
    assert str(report).endswith("PASSED"), report


@pytest.mark.parametrize("printed", ["", "sorry", "[]", '{"error": "no"}'])
def test_a_refusal_without_its_reason_is_taken_as_final(printed: str, tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    program = (
        "import pathlib, sys\n"
        f"starts = pathlib.Path({str(starts)!r})\n"
        "number = len(starts.read_text()) if starts.exists() else 0\n"
        "starts.write_text('.' * (number + 1))\n"
        f"print({printed!r})\n"
        "sys.exit([2, 1][number])\n"
    )
    exam = Exam(open_shop(products=1, codes=1), 0, purchases=1, kills=0)

    exam.run([sys.executable, "-c", program], each=True)

    assert len(starts.read_text()) == 2
