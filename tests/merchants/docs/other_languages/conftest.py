"""The same programs in the languages that `make system-test` runs."""

import pytest

from tests.merchants.docs.programs import command_in

OTHERS = [
    pytest.param("typescript", marks=pytest.mark.npm),
    pytest.param("php", marks=pytest.mark.php),
    pytest.param("go", marks=pytest.mark.go),
    pytest.param("java", marks=pytest.mark.java),
]


@pytest.fixture(params=OTHERS)
def program(request: pytest.FixtureRequest) -> list[str]:
    """The command that runs the program of the test file."""
    return command_in(request.param, request.module.PROGRAM)
