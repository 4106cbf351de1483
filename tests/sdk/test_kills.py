"""A shop that is killed around any write of its journal, behind a bad network, loses nothing.

`make client-kills` runs it with 10,000 purchases.
"""

import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.live import LiveServer
from tests.sdk.kills import Row, mistakes_of_killed_shop

pytestmark = pytest.mark.django_db(transaction=True)

SHOP = ["-m", "tests.sdk.killed_shop"]


def mistakes_of(python: Sequence[str], live: LiveServer, folder: Path) -> list[str]:
    """The mistakes of the shop that this Python runs and that is killed."""
    path = folder / "purchases.db"
    return mistakes_of_killed_shop(
        live, [*python, *SHOP], journal=str(path), read=lambda statement: read_from(path, statement)
    )


def read_from(path: Path, statement: str) -> Sequence[Row]:
    with closing(sqlite3.connect(path)) as journal:
        rows: list[Row] = journal.execute(statement).fetchall()
        return rows


def test_a_killed_shop_doubles_and_loses_nothing(live: LiveServer, tmp_path: Path) -> None:
    assert mistakes_of([sys.executable], live, tmp_path) == []


def test_a_journal_that_is_written_late_doubles(live: LiveServer, tmp_path: Path) -> None:
    """The control: the kills and the judge find what a wrong journal does."""
    path = tmp_path / "purchases.db"
    mistakes = mistakes_of_killed_shop(
        live,
        [sys.executable, *SHOP],
        journal=str(path),
        read=lambda statement: read_from(path, statement),
        purchases=20,
        death=0.1,
        late=True,
    )
    assert any("doubled" in mistake for mistake in mistakes), mistakes
