"""The walk of test_role_matrix.py as each of the other roles. It takes long."""

import pytest

from tests.operators.pages.test_role_matrix import ALL, WALKED, walk_as, world

pytestmark = pytest.mark.menu

__all__ = ["world"]


@pytest.mark.parametrize("letter", sorted(set(ALL) - set(WALKED)))
def test_a_role_has_its_rights_its_pages_and_no_dead_link(
    letter: str, world: None, db: None
) -> None:
    walk_as(letter)
