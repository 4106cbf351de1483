"""/readyz fails while the database lacks migrations of this code."""

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from core.database import applied_migrations
from tests.concurrency.racing import execute

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _ask_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applied_migrations, "_complete_until", 0.0)


def test_missing_migrations_are_unready(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    last = MigrationRecorder.Migration.objects.get(app="orders", name="0002_sql")
    last.delete()
    try:
        answer = client.get("/readyz")
    finally:
        last.save()

    assert answer.status_code == 503
    assert answer.json() == {
        "status": "unready",
        "database": True,
        "migrations": False,
        "keys": True,
        "cache": True,
    }
    assert "orders.0002_sql" in caplog.text


def test_a_new_database_is_unready(client: Client) -> None:
    execute("ALTER TABLE django_migrations RENAME TO away")
    try:
        assert client.get("/readyz").json()["migrations"] is False
    finally:
        execute("ALTER TABLE away RENAME TO django_migrations")


def test_a_complete_result_is_kept_for_a_minute(client: Client) -> None:
    assert client.get("/readyz").json()["migrations"] is True
    with connection.execute_wrapper(refuse_the_table):
        assert client.get("/readyz").json() == {
            "status": "ok",
            "database": True,
            "migrations": True,
            "keys": True,
            "cache": True,
        }


def refuse_the_table(execute, sql, *more):  # type: ignore[no-untyped-def]
    assert "django_migrations" not in sql
    return execute(sql, *more)
