"""SQL functions called without Django's cursors behave as if called through a cursor."""

import gc
import weakref
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

from core.database import libpq
from core.database.functions import REFUSED, call, query, refusal_word, refusals
from tests.concurrency.racing import execute, rows, scalar
from tests.live import owner_url

pytestmark = pytest.mark.django_db(transaction=True)

EVERY_TYPE = """
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


def test_values_of_every_type_are_returned_exactly() -> None:
    execute(EVERY_TYPE)
    row = call("pg_temp.everything", 2**40, "ключ", b"\x00\xff", None)
    moment = row.pop("moment")
    assert moment.isoformat() == "2026-11-21T12:00:00.500000+00:00"
    assert row == {
        "number": 2**40, "words": "ключ", "bytes": [b"\x00\xff"], "nothing": None,
        "money": Decimal("0.0725"), "document": {"a": [1, None]},
    }  # fmt: skip


def test_a_read_returns_zero_or_many_rows() -> None:
    assert query("string_to_table", "", ",") == []
    letters = query("string_to_table", "a,b", ",")
    assert letters == [{"string_to_table": "a"}, {"string_to_table": "b"}]


def test_a_refusal_has_its_word_and_leaves_the_connection_usable() -> None:
    execute(REFUSES)
    with pytest.raises(DatabaseError) as caught:
        call("pg_temp.refuses", "insufficient_stock")
    assert refusal_word(caught.value) == "insufficient_stock"
    assert caught.value.__cause__.sqlstate == REFUSED  # type: ignore[union-attr]  # psycopg's
    assert query("pg_backend_pid")


def test_no_other_error_is_a_refusal() -> None:
    with pytest.raises(DataError), refusals(AssertionError):
        query("pg_size_bytes", "much")


def test_an_invalid_argument_raises_djangos_data_error() -> None:
    with pytest.raises(DataError):
        query("pg_size_bytes", "much\x00")


def test_a_read_inside_a_transaction_is_part_of_it() -> None:
    """The call is the first statement: psycopg would begin the transaction before it."""
    with transaction.atomic():
        query("set_config", "voucher.test", "here", True)
        assert scalar("SELECT current_setting('voucher.test', true)") == "here"
        transaction.set_rollback(True)
    assert not scalar("SELECT current_setting('voucher.test', true)")


def test_a_call_is_refused_when_autocommit_is_off() -> None:
    connection.set_autocommit(False)
    try:
        with pytest.raises(RuntimeError):
            call("pg_backend_pid")
    finally:
        connection.set_autocommit(True)


def test_a_read_in_a_broken_transaction_is_refused() -> None:
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(TransactionManagementError):
            query("pg_backend_pid")


def test_a_call_counts_as_a_query() -> None:
    with CaptureQueriesContext(connection) as queries:
        query("pg_backend_pid")
    assert [each["sql"] for each in queries] == ["pg_backend_pid(…)"]


def test_a_read_is_repeated_after_a_lost_connection() -> None:
    lose_connection()
    assert query("pg_backend_pid")


def test_a_call_is_not_repeated_after_a_lost_connection() -> None:
    connection.ensure_connection()
    connection.health_check_done = True  # type: ignore[attr-defined]  # as after one statement
    lose_connection()
    with pytest.raises(OperationalError):
        call("pg_backend_pid")
    assert not connection.is_usable()  # the end of the request closes an unusable connection
    connection.close()


def test_a_function_is_prepared_once_per_connection() -> None:
    connection.close()
    for _ in range(3):
        query("string_to_table", "a,b", ",")
    assert prepared() == ["SELECT * FROM string_to_table($1, $2)"]


def test_other_argument_types_prepare_another_statement() -> None:
    connection.close()
    execute(EVERY_TYPE)
    for number in [1, 2**40, 2]:
        assert call("pg_temp.everything", number, None, None, None)["number"] == number
    assert len(prepared()) == 2


def test_a_connection_stops_preparing_after_losing_its_statements() -> None:
    """Another server process behind a pooler does not have the prepared statements."""
    query("pg_backend_pid")
    execute("DEALLOCATE ALL")
    assert call("pg_backend_pid") == call("pg_backend_pid")
    assert libpq.state_of(connection.connection).prepared is None
    assert prepared() == []


def test_a_statement_prepared_by_another_connection_is_tolerated() -> None:
    """A pooler may reuse a server process on which another connection prepared the statement."""
    connection.close()
    query("pg_backend_pid")
    del vars(connection.connection)["libpq_state"]
    assert call("pg_backend_pid") == call("pg_backend_pid")


def test_a_function_may_change_its_columns_on_an_open_connection() -> None:
    for columns in ["OUT a integer", "OUT a integer, OUT b integer"]:
        execute("DROP FUNCTION IF EXISTS pg_temp.changes()")
        execute(
            f"CREATE FUNCTION pg_temp.changes({columns}) LANGUAGE plpgsql AS 'BEGIN a := 1; END'"
        )
        assert call("pg_temp.changes")["a"] == 1
    assert call("pg_temp.changes") == {"a": 1, "b": None}


def test_a_failed_prepared_call_changes_nothing() -> None:
    """The call is sent again, so its first attempt must not have run."""
    execute("CREATE TEMPORARY SEQUENCE calls")
    for columns in ["OUT a bigint", "OUT a bigint, OUT b integer"]:
        execute("DROP FUNCTION IF EXISTS pg_temp.counts()")
        execute(
            f"CREATE FUNCTION pg_temp.counts({columns}) LANGUAGE plpgsql"
            " AS $$ BEGIN a := nextval('calls'); END $$"
        )
        number = call("pg_temp.counts")["a"]
    assert number == 2


def test_nothing_is_prepared_inside_a_transaction() -> None:
    """PostgreSQL aborts a transaction when it refuses a prepared statement."""
    connection.close()
    with transaction.atomic():
        query("pg_backend_pid")
    assert prepared() == []


def test_a_dropped_connection_is_freed_at_once() -> None:
    """What a connection keeps does not keep the connection until the next garbage collection."""
    one = connection.get_new_connection(connection.get_connection_params())
    libpq.call_function(one, "pg_backend_pid", ())
    one.close()
    freed = weakref.ref(one)
    gc.disable()
    try:
        del one
        assert freed() is None
    finally:
        gc.enable()


def test_a_missing_function_raises_djangos_programming_error() -> None:
    with pytest.raises(ProgrammingError):
        call("pg_temp.never")
    assert query("pg_backend_pid")


def prepared() -> list[str]:
    """The statements that the session of Django's connection has prepared."""
    return [statement for (statement,) in rows("SELECT statement FROM pg_prepared_statements")]


def lose_connection() -> None:
    """Terminates the server process of Django's connection and waits for its end."""
    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    with psycopg.connect(owner_url(), autocommit=True) as other:
        assert other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid]).fetchone() == (True,)
