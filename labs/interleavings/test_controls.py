"""Without a guard, the search finds a schedule that breaks the promise."""

import pytest

from labs.interleavings.controls import CONTROLS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]


@pytest.mark.parametrize("name", CONTROLS)
def test_without_the_guard_a_schedule_fails(name: str) -> None:
    control = CONTROLS[name]

    found = control.search()

    assert found.failures, f"no schedule fails: {found}"
    assert f'SCHEDULE="{control.name}:' in found.failures[0]
