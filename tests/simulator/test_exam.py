"""Our own programs pass the exam, and a naive one fails it with each of its mistakes named."""

import json
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
from tests.merchants.docs.programs import compiled

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
    """Without `DOUBTS`, which take 90 seconds: test_programs.py has them."""
    largest = purchases // 10 + 1
    shop = open_shop(products=5, codes=2 * largest * (largest + 1), rate_limit=rate_limit)
    options = {"doubts": 0, **options}
    return Exam(shop, live.port, purchases=purchases, **options)  # type: ignore[arg-type]


def test_the_python_library_passes(live: LiveServer) -> None:
    report = exam(live, kills=3, faults=QUICK).run(
        [sys.executable, str(PROGRAMS / "with_library.py")]
    )

    assert str(report).endswith("PASSED"), report
    assert report.faults > 0
    assert report.kills == 3


@pytest.mark.parametrize(
    "program",
    [
        pytest.param([sys.executable, "buy.py"], id="python"),
        pytest.param(["sh", "buy.sh"], id="curl"),
    ],
)
def test_a_program_of_the_documentation_passes(live: LiveServer, program: list[str]) -> None:
    report = examine_program(live, program)

    assert str(report).endswith("PASSED"), report
    assert report.faults > 0


def examine_program(live: LiveServer, program: list[str]) -> Report:
    command = compiled(*program)
    if command == program:  # a script, beside this folder
        command = [*program[:-1], str(SNIPPETS / program[-1])]
    return exam(live, purchases=STARTS, kills=2, faults=QUICK).run(command, each=True)


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
    assert ("early_retry" in judge([EXCHANGE, retry]).mistakes) is is_early


def limited(at: float, answered: float, key: str, seconds: int) -> Exchange:
    content = json.dumps({"error": {"code": "rate_limited", "retry_after_seconds": seconds}})
    return replace(
        EXCHANGE,
        at=at,
        answered=answered,
        key=key,
        fault=Fault.NONE,
        status=429,
        received=429,
        content=content.encode(),
    )


@pytest.mark.parametrize(
    ("at", "key", "is_early"),
    [
        pytest.param(100.5, "other", False, id="in flight when it was answered"),
        pytest.param(105.2, "other", False, id="on its way when it was answered"),
        pytest.param(108.0, "other", True, id="another purchase within the wait"),
        pytest.param(105.2, "key", True, id="the same purchase at once"),
        pytest.param(114.8, "key", True, id="a wait that began with the request"),
        pytest.param(115.0, "key", False, id="after the wait"),
    ],
)
def test_the_wait_after_a_429_begins_with_its_answer(at: float, key: str, is_early: bool) -> None:
    """Four purchases at once are no mistake: three may be on their way when one is limited."""
    sent = replace(EXCHANGE, at=at, answered=at + 10, key=key, fault=Fault.NONE)

    judged = judge([limited(100.0, 105.0, "key", 10), sent])

    assert ("early_retry" in judged.mistakes) is is_early


REFUSED = replace(
    EXCHANGE,
    fault=Fault.OUT_OF_STOCK,
    status=409,
    received=409,
    content=b'{"success": false, "error": {"code": "order_refused"}}',
)
LOST = replace(EXCHANGE, fault=Fault.LOST_BEFORE, status=0, received=0)


@pytest.mark.parametrize(
    ("exchanges", "mistakes"),
    [
        pytest.param([], {"false_refusal", "nothing_bought"}, id="nothing sent"),
        pytest.param([LOST], {"false_refusal", "nothing_bought"}, id="no answer"),
        pytest.param(
            [limited(100.0, 105.0, "key", 10)], {"false_refusal", "nothing_bought"}, id="limited"
        ),
        pytest.param([REFUSED], {"nothing_bought"}, id="refused"),
        pytest.param(
            [LOST, replace(REFUSED, at=130.0, answered=130.1)],
            {"early_refusal", "nothing_bought"},
            id="refused while the lost attempt may arrive",
        ),
        pytest.param(
            [LOST, replace(REFUSED, at=195.5, answered=195.6)],
            {"nothing_bought"},
            id="refused 90 seconds after the lost attempt",
        ),
        pytest.param(
            [
                LOST,
                replace(
                    REFUSED,
                    at=195.5,
                    answered=195.6,
                    content=b'{"success": false, "error": {"code": "client_disabled"}}',
                ),
            ],
            {"early_refusal", "nothing_bought"},
            id="another refusal says nothing about the lost attempt",
        ),
    ],
)
def test_an_order_is_refused_if_the_service_refused_it(
    exchanges: list[Exchange], mistakes: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOUCHER_SECOND", "1")
    exam = Exam(open_shop(products=1, codes=1), 0, purchases=1, doubts=0)
    exam._simulator.server_close()
    (order,) = exam._orders
    body = json.dumps(order["body"]).encode()
    results = {order["order_number"]: {"outcome": "refused"}}

    exam._judge_books(results, [replace(each, body=body) for each in exchanges])

    assert set(exam._report.mistakes) == mistakes


def judge(exchanges: list[Exchange]) -> Report:
    exam = Exam(open_shop(products=1, codes=1), 0, purchases=1)
    exam._simulator.server_close()
    exam._judge_pace(exchanges)
    return exam._report


def test_a_program_that_ends_with_an_error_fails(live: LiveServer) -> None:
    report: Report = exam(live).run([sys.executable, "-c", "raise SystemExit(3)"])
    assert {"failed", "no_outcome", "nothing_bought"} == set(report.mistakes)


def test_a_program_that_cannot_start_fails() -> None:
    """Python ends with 1, which is also how a program says refused."""
    exam = Exam(open_shop(products=1, codes=1), 0, purchases=10, kills=0)

    report = exam.run([sys.executable, "-c", "import missing_module"], each=True)

    assert set(report.mistakes) == {"false_refusal", "nothing_bought"}
    assert report.requests == 0


@pytest.mark.parametrize("printed", ["", "done", "[]", '{"data": null}'])
def test_a_program_that_prints_no_order_has_a_wrong_outcome(printed: str) -> None:
    exam = Exam(open_shop(products=1, codes=1), 0, purchases=1, kills=0)

    report = exam.run([sys.executable, "-c", f"print({printed!r})"], each=True)

    assert set(report.mistakes) == {"wrong_outcome", "nothing_bought"}


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"{}"])
def test_any_request_can_be_judged(body: bytes) -> None:
    exam = Exam(open_shop(products=1, codes=1), 0, purchases=1)
    exam._simulator.server_close()
    exam._judge_requests([replace(EXCHANGE, body=body)])
    assert exam._report.mistakes == {}


def test_after_an_unknown_outcome_only_a_late_order_refused_is_final(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attempt before a kill may have bought. That the client is disabled now does not tell,
    nor does an order_refused while the attempt may still arrive."""
    monkeypatch.setenv("VOUCHER_SECOND", "0.01")
    starts = tmp_path / "starts"
    program = (
        "import pathlib, sys\n"
        f"starts = pathlib.Path({str(starts)!r})\n"
        "number = len(starts.read_text()) if starts.exists() else 0\n"
        "starts.write_text('.' * (number + 1))\n"
        'print(["", \'{"success": false, "error": {"code": "client_disabled"}}\','
        ' \'{"code": "order_refused"}\', \'{"code": "order_refused"}\'][number])\n'
        "sys.exit([2, 1, 1, 1][number])\n"
    )
    exam = Exam(open_shop(products=1, codes=1), 0, purchases=1, kills=0)

    report = exam.run([sys.executable, "-c", program], each=True)

    assert len(starts.read_text()) == 4
    assert set(report.mistakes) == {"false_refusal", "nothing_bought"}, "it sent nothing"


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
