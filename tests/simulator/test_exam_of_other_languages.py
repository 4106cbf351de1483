"""The TypeScript library and the programs of the documentation in all languages pass the exam."""

import pytest

from tests.live import LiveServer
from tests.sdk import typescript
from tests.simulator.test_exam import PROGRAMS, QUICK, _environment, exam, examine_program

__all__ = ["_environment"]

pytestmark = pytest.mark.django_db(transaction=True)


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
        pytest.param(["node", "buy.mts"], id="typescript", marks=pytest.mark.npm),
        pytest.param(["php", "buy.php"], id="php", marks=pytest.mark.php),
        pytest.param(["go", "buy.go"], id="go", marks=pytest.mark.go),
        pytest.param(["java", "Buy.java"], id="java", marks=pytest.mark.java),
    ],
)
def test_a_program_of_the_documentation_passes(live: LiveServer, program: list[str]) -> None:
    report = examine_program(live, program)

    assert str(report).endswith("PASSED"), report
    assert report.faults > 0
