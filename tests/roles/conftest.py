from collections.abc import Iterator

import psycopg
import pytest

from tests.live import database_url


@pytest.fixture
def service(db: None) -> Iterator[psycopg.Connection]:
    """A connection as a process of the service has it. Nothing is committed."""
    with psycopg.connect(database_url()) as connection:
        yield connection
        connection.rollback()
