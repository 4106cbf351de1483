"""Our own programs pass the exam, and a naive one fails it with each of its mistakes named."""

import os
import sys

import pytest

from embedded.environment import PROJECT
from merchants.views.docs_content import SNIPPETS
from simulator.exam import FAULTS, Exam, Report
from simulator.faults import Fault
from simulator.shop import open_shop
from tests.live import LiveServer

pytestmark = pytest.mark.django_db(transaction=True)

PROGRAMS = PROJECT / "simulator" / "programs"
# rate_limited makes a program wait for up to a minute.
QUICK = [fault for fault in FAULTS if fault is not Fault.RATE_LIMITED]
PURCHASES = int(os.environ.get("EXAM_PURCHASES", "30"))


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(PROJECT / "sdk" / "python" / "src"))
    monkeypatch.setenv("VOUCHER_PAUSE_SECONDS", "0.2")


def exam(live: LiveServer, *, rate_limit: int = 6000, **options: object) -> Exam:
    largest = PURCHASES // 10 + 1
    shop = open_shop(products=5, codes=2 * largest * (largest + 1), rate_limit=rate_limit)
    return Exam(shop, live.port, purchases=PURCHASES, **options)  # type: ignore[arg-type]


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
        pytest.param(["node", "buy.mjs"], id="javascript", marks=pytest.mark.node),
    ],
)
def test_a_program_of_the_documentation_passes(live: LiveServer, program: list[str]) -> None:
    *interpreter, file = program
    report = exam(live, kills=2, faults=QUICK).run([*interpreter, str(SNIPPETS / file)], each=True)

    assert str(report).endswith("PASSED"), report
    assert report.faults > 0


def test_a_naive_program_fails_with_each_mistake_named(live: LiveServer) -> None:
    faults = [Fault.LOST_AFTER, Fault.ERROR_AFTER, Fault.TIMEOUT, Fault.PORTAL, Fault.RATE_LIMITED]
    report = exam(live, kills=0, faults=faults, rate_limit=60).run(
        [sys.executable, str(PROGRAMS / "naive.py")]
    )

    assert set(report.mistakes) >= {
        *("double_debit", "lost_order", "wrong_outcome", "new_key", "changed_bytes"),
        *("early_retry", "above_limit", "rounding", "secret"),
    }, report
    assert str(report).endswith("FAILED")


def test_a_program_that_ends_with_an_error_fails(live: LiveServer) -> None:
    report: Report = exam(live).run([sys.executable, "-c", "raise SystemExit(3)"])
    assert {"failed", "no_outcome"} == set(report.mistakes)
