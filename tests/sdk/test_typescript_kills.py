"""A shop with the TypeScript library that is killed around its journal loses nothing.

`make client-kills` runs it with 10,000 purchases for each journal.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from tests.live import LiveServer, owner_url
from tests.sdk import typescript
from tests.sdk.kills import Row, mistakes_of_killed_shop

pytestmark = [pytest.mark.npm, pytest.mark.django_db(transaction=True)]

needs_better_sqlite3 = pytest.mark.skipif(
    not (typescript.NODES / "node_modules" / "better-sqlite3").exists(),
    reason="better-sqlite3 is compiled for minutes; docs/guarantees.md has the command",
)
JOURNALS = [
    "postgres",
    "node:sqlite",
    pytest.param("better-sqlite3", marks=needs_better_sqlite3),
]
PROGRAM = str(Path(__file__).parent / "killed_shop.mjs")


@dataclass(frozen=True)
class Journal:
    """The address of a journal that both the shop and the judge open, and the shop's Node.js."""

    address: str
    node: str

    def read(self, statement: str) -> Sequence[Row]:
        rows: list[Row]
        if self.address.startswith("postgresql:"):
            with psycopg.connect(self.address) as connection:
                rows = connection.execute(statement.encode()).fetchall()
            return rows
        with closing(sqlite3.connect(self.address)) as file:
            rows = file.execute(statement).fetchall()
        return rows


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    typescript.build()


@pytest.fixture(params=JOURNALS)
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    if request.param != "postgres":
        is_own = request.param == "node:sqlite"
        node = typescript.newest_node() if is_own else typescript.oldest_node()
        yield Journal(str(tmp_path / "purchases.db"), node)
        return
    yield Journal(owner_url(), typescript.oldest_node())
    with psycopg.connect(owner_url()) as connection:
        connection.execute("DROP TABLE voucher_purchases")


def test_a_killed_shop_doubles_and_loses_nothing(live: LiveServer, journal: Journal) -> None:
    mistakes = mistakes_of_killed_shop(
        live, [journal.node, PROGRAM], journal=journal.address, read=journal.read
    )
    assert mistakes == []


def test_a_journal_that_is_written_late_doubles(live: LiveServer, journal: Journal) -> None:
    """The control: the kills and the judge find what a wrong journal does."""
    mistakes = mistakes_of_killed_shop(
        live,
        [journal.node, PROGRAM],
        journal=journal.address,
        read=journal.read,
        purchases=20,
        death=0.1,
        late=True,
    )
    assert any("doubled" in mistake for mistake in mistakes), mistakes
