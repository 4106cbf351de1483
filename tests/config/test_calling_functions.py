"""Functions called past Django's cursors behave as if they were called through one."""

from decimal import Decimal

import psycopg
import pytest
from django.db import (
    DatabaseError,
    DataError,
    OperationalError,
    ProgrammingError,
    connection,
    transaction,
)
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext

from config.database import libpq
from config.database.functions import REFUSED, ask, call, refusal_word
from tests.concurrency.racing import execute, rows, scalar
from tests.live import database_url

pytestmark = pytest.mark.django_db(transaction=True)

EVERYTHING = """
    CREATE FUNCTION pg_temp.everything(
        p_number bigint, p_text text, p_bytes bytea, p_nothing text,
        OUT number bigint, OUT words text, OUT bytes bytea[], OUT nothing text,
        OUT money numeric, OUT moment timestamptz, OUT document jsonb
    ) LANGUAGE plpgsql AS $$
    BEGIN
        number := p_number; words := p_text; bytes := ARRAY[p_bytes]; nothing := p_nothing;
        money := 0.0725; moment := '2026-11-21 12:00:00.5+00'; document := '{"a": [1, null]}';
    END $$
"""
REFUSES = """
    CREATE FUNCTION pg_temp.refuses(p_word text, OUT never text) LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = p_word;
    END $$
"""


def test_values_of_every_kind_arrive_as_they_were() -> None:
    execute(EVERYTHING)
    row = call("pg_temp.everything", 2**40, "ключ", b"\x00\xff", None)
    moment = row.pop("moment")
    assert moment.isoformat() == "2026-11-21T12:00:00.500000+00:00"
    assert row == {
        "number": 2**40, "words": "ключ", "bytes": [b"\x00\xff"], "nothing": None,
        "money": Decimal("0.0725"), "document": {"a": [1, None]},
    }  # fmt: skip


def test_no_row_and_many_rows() -> None:
    assert ask("string_to_table", "", ",") == []
    letters = ask("string_to_table", "a,b", ",")
    assert letters == [{"string_to_table": "a"}, {"string_to_table": "b"}]


def test_a_refusal_is_named_and_leaves_the_connection_usable() -> None:
    execute(REFUSES)
    with pytest.raises(DatabaseError) as caught:
        call("pg_temp.refuses", "insufficient_stock")
    assert refusal_word(caught.value) == "insufficient_stock"
    assert caught.value.__cause__.sqlstate == REFUSED  # type: ignore[union-attr]  # psycopg's
    assert ask("pg_backend_pid")


def test_what_postgresql_does_not_know_is_djangos_error() -> None:
    with pytest.raises(DataError):
        ask("pg_size_bytes", "much\x00")


def test_inside_a_block_it_is_part_of_the_transaction() -> None:
    """Also as its first statement, before which psycopg would have begun the transaction."""
    with transaction.atomic():
        ask("set_config", "voucher.test", "here", True)
        assert scalar("SELECT current_setting('voucher.test', true)") == "here"
        transaction.set_rollback(True)
    assert not scalar("SELECT current_setting('voucher.test', true)")


def test_a_call_is_refused_where_nothing_would_commit_it() -> None:
    connection.set_autocommit(False)
    try:
        with pytest.raises(RuntimeError):
            call("pg_backend_pid")
    finally:
        connection.set_autocommit(True)


def test_a_broken_block_asks_nothing() -> None:
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(TransactionManagementError):
            ask("pg_backend_pid")


def test_a_call_counts_as_a_query() -> None:
    with CaptureQueriesContext(connection) as queries:
        ask("pg_backend_pid")
    assert [query["sql"] for query in queries] == ["pg_backend_pid(…)"]


def test_a_question_is_asked_again_where_the_connection_was_lost() -> None:
    lose_connection()
    assert ask("pg_backend_pid")


def test_a_call_is_not_repeated_where_the_connection_is_lost_meanwhile() -> None:
    connection.ensure_connection()
    connection.health_check_done = True  # type: ignore[attr-defined]  # as after a first statement
    lose_connection()
    with pytest.raises(OperationalError):
        call("pg_backend_pid")
    assert not connection.is_usable()  # so that the end of a request closes it
    connection.close()


def test_a_call_is_prepared_once_for_a_connection() -> None:
    connection.close()
    for _ in range(3):
        ask("string_to_table", "a,b", ",")
    assert prepared() == ["SELECT * FROM string_to_table($1, $2)"]


def test_values_of_another_type_are_another_statement() -> None:
    connection.close()
    execute(EVERYTHING)
    for number in [1, 2**40, 2]:
        assert call("pg_temp.everything", number, None, None, None)["number"] == number
    assert len(prepared()) == 2


def test_what_a_pooler_has_taken_away_is_sent_in_full_from_then_on() -> None:
    """As another server process, which knows nothing of what was prepared."""
    ask("pg_backend_pid")
    execute("DEALLOCATE ALL")
    assert call("pg_backend_pid") == call("pg_backend_pid")
    assert libpq._prepared[connection.connection] is None
    assert prepared() == []


def test_what_another_has_prepared_over_the_same_session_is_no_obstacle() -> None:
    """As a server process that a pooler gave to another connection before."""
    connection.close()
    ask("pg_backend_pid")
    del libpq._prepared[connection.connection]
    assert call("pg_backend_pid") == call("pg_backend_pid")


def test_a_function_may_change_while_connections_know_it() -> None:
    for columns in ["OUT a integer", "OUT a integer, OUT b integer"]:
        execute("DROP FUNCTION IF EXISTS pg_temp.changes()")
        execute(
            f"CREATE FUNCTION pg_temp.changes({columns}) LANGUAGE plpgsql AS 'BEGIN a := 1; END'"
        )
        assert call("pg_temp.changes")["a"] == 1
    assert call("pg_temp.changes") == {"a": 1, "b": None}


def test_a_call_that_is_refused_as_prepared_has_changed_nothing() -> None:
    """It is sent again, so it must not have run."""
    execute("CREATE TEMPORARY SEQUENCE calls")
    for columns in ["OUT a bigint", "OUT a bigint, OUT b integer"]:
        execute("DROP FUNCTION IF EXISTS pg_temp.counts()")
        execute(
            f"CREATE FUNCTION pg_temp.counts({columns}) LANGUAGE plpgsql"
            " AS $$ BEGIN a := nextval('calls'); END $$"
        )
        number = call("pg_temp.counts")["a"]
    assert number == 2


def test_inside_a_block_nothing_is_prepared() -> None:
    """PostgreSQL ends a transaction in which it refuses a statement."""
    connection.close()
    with transaction.atomic():
        ask("pg_backend_pid")
    assert prepared() == []


def test_a_function_that_is_not_there_is_djangos_error() -> None:
    with pytest.raises(ProgrammingError):
        call("pg_temp.never")
    assert ask("pg_backend_pid")


def prepared() -> list[str]:
    """What the session of Django's connection has prepared."""
    return [statement for (statement,) in rows("SELECT statement FROM pg_prepared_statements")]


def lose_connection() -> None:
    """Ends the server process of Django's connection, and waits until it is gone."""
    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    with psycopg.connect(database_url(), autocommit=True) as other:
        assert other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid]).fetchone() == (True,)
