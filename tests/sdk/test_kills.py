"""A shop that is killed around any write of its journal, behind a bad network, loses nothing.

`make client-proof` runs it with 10,000 purchases.
"""

import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.live import LiveServer
from tests.sdk import oldest_python
from tests.sdk.kills import Row, mistakes_of_killed_shop

pytestmark = pytest.mark.django_db(transaction=True)

SHOP = ["-m", "tests.sdk.killed_shop"]


def read_from(path: Path, statement: str) -> Sequence[Row]:
    with closing(sqlite3.connect(path)) as journal:
        rows: list[Row] = journal.execute(statement).fetchall()
        return rows


@pytest.mark.parametrize(
    "is_oldest", [False, pytest.param(True, marks=oldest_python.needed, id="Python 3.9")]
)
def test_a_killed_shop_doubles_and_loses_nothing(
    live: LiveServer, is_oldest: bool, tmp_path: Path
) -> None:
    path = tmp_path / "purchases.db"
    python = oldest_python.command() if is_oldest else [sys.executable]
    mistakes = mistakes_of_killed_shop(
        live, [*python, *SHOP], journal=str(path), read=lambda statement: read_from(path, statement)
    )
    assert mistakes == []


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
