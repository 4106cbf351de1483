"""The database password of the service is not enough to rewrite what it sold."""

import psycopg
import pytest
from django.db import connection

from tests.roles.attacks import FORBIDDEN, FORBIDDEN_OUTSIDE, REFUSED_BY_TRIGGER


def attack(service: psycopg.Connection, statement: str) -> psycopg.Error:
    """The error with which PostgreSQL refuses the statement."""
    owner = connection.settings_dict["USER"]
    statement = statement.replace("{owner}", owner)
    if "{extension}" in statement:
        statement = statement.replace("{extension}", some_extension(service))
    with pytest.raises(psycopg.Error) as refused:
        service.execute(statement.encode())
    return refused.value


def some_extension(service: psycopg.Connection) -> str:
    """An extension of this server. A trusted one if there is any: it needs the fewest rights."""
    [[name]] = service.execute(
        "SELECT name FROM pg_available_extension_versions WHERE NOT installed"
        " ORDER BY trusted DESC, name LIMIT 1"
    ).fetchall()
    return str(name)


def test_the_service_lacks_the_right_to(service: psycopg.Connection) -> None:
    for name, statement in FORBIDDEN.items():
        error = attack(service, statement)

        assert error.sqlstate == "42501", (name, error)
        assert error.diag.context is None, f"{name}: a trigger refused, not the rights: {error}"
        service.rollback()


def test_outside_a_transaction_the_service_lacks_the_right_to(service: psycopg.Connection) -> None:
    service.autocommit = True
    for name, statement in FORBIDDEN_OUTSIDE.items():
        assert attack(service, statement).sqlstate == "42501", name


def test_a_trigger_refuses_to(service: psycopg.Connection) -> None:
    for name, statement in REFUSED_BY_TRIGGER.items():
        assert "PL/pgSQL" in (attack(service, statement).diag.context or ""), name
        service.rollback()
