"""The program of a test file (its PROGRAM), in two languages."""

import pytest

from tests.merchants.docs.programs import command_in


@pytest.fixture(params=["curl", "python"])
def program(request: pytest.FixtureRequest) -> list[str]:
    """The command that runs the program. Other languages: `other_languages`."""
    return command_in(request.param, request.module.PROGRAM)
