"""Functions called past Django's cursors behave as if they were called through one."""

from decimal import Decimal

import psycopg
import pytest
from django.db import DatabaseError, DataError, OperationalError, connection, transaction
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext

from config.sql import REFUSED, ask, call, refusal_word
from tests.concurrency.racing import execute, scalar
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


def lose_connection() -> None:
    """Ends the server process of Django's connection, and waits until it is gone."""
    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    with psycopg.connect(database_url(), autocommit=True) as other:
        assert other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid]).fetchone() == (True,)
