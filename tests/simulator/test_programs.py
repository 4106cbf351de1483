"""The exam judges twelve programs, right and wrong, sequential and concurrent, and none wrongly."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from embedded.environment import PROJECT
from merchants.docs.docs_content import SNIPPETS
from simulator.exam import FAULTS, Exam
from simulator.faults import Fault
from simulator.shop import open_shop
from tests.live import LiveServer

pytestmark = pytest.mark.django_db(transaction=True)

SHOPS = str(Path(__file__).parent / "shops.py")
LIBRARY = str(PROJECT / "simulator" / "programs" / "with_library.py")
# rate_limited makes a program wait for up to a minute.
QUICK = [fault for fault in FAULTS if fault is not Fault.RATE_LIMITED]
LIMITED = (Fault.RATE_LIMITED, Fault.LOST_AFTER)


@dataclass(frozen=True)
class Program:
    command: list[str]
    mistakes: frozenset[str] = frozenset()  # those that the exam must name; none: it passes
    each: bool = False
    faults: Sequence[Fault] = tuple(QUICK)
    purchases: int = 16
    rate: float = 0.3
    kills: int = 2
    doubts: int = 1


def shop(name: str, *mistakes: str, **options: object) -> Program:
    return Program([SHOPS, name], frozenset(mistakes), **options)  # type: ignore[arg-type]


PROGRAMS = {
    # Right
    "sequential": shop("Shop"),
    "four at once": shop("Concurrent"),
    "four at once, limited": shop(
        "Concurrent", faults=LIMITED, purchases=8, rate=0.5, kills=0, doubts=0
    ),
    "library": Program([LIBRARY]),
    "library, four at once": Program([LIBRARY, "4"]),
    "documentation": Program([str(SNIPPETS / "buy.py")], each=True, purchases=10),
    # Wrong
    "cannot start": Program(
        ["-c", "import missing_module"], frozenset({"false_refusal", "nothing_bought"}), each=True
    ),
    "refuses everything": shop("RefusesEverything", "false_refusal", "nothing_bought"),
    "believes the first refusal": shop("BelievesTheFirstRefusal", "early_refusal", "lost_order"),
    "takes any error for a refusal": shop("TakesAnyErrorForARefusal", "false_refusal"),
    "changes its key": shop("ChangesItsKey", "new_key"),
    "ignores the limit": shop(
        "IgnoresTheLimit", "early_retry", faults=LIMITED, purchases=8, rate=0.5, kills=0, doubts=0
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_exam_judges_no_program_wrongly(
    live: LiveServer, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = PROGRAMS[name]
    monkeypatch.setenv("PYTHONPATH", str(PROJECT / "sdk" / "python" / "src"))
    monkeypatch.setenv("VOUCHER_SECOND", "0.2")
    exam = Exam(
        open_shop(products=5, codes=100, rate_limit=6000),
        live.port,
        purchases=program.purchases,
        rate=program.rate,
        kills=program.kills,
        doubts=program.doubts,
        faults=program.faults,
    )

    report = exam.run([sys.executable, *program.command], each=program.each)

    if program.faults is LIMITED:
        assert any(exchange.received == 429 for exchange in exam._simulator.exchanges)
    if program.mistakes:
        assert set(report.mistakes) >= program.mistakes, report
    else:
        assert report.mistakes == {}, report
        assert report.faults > 0
