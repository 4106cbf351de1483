"""After a failover, a connection to the former primary is read-only. It is replaced at once."""

from collections.abc import Iterator

import pytest
from django.db import DatabaseError, connection

from core.database import functions
from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import execute, outcome, scalar
from tests.factories import make_account, make_merchant, make_product

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _own_connection(transactional_db: None) -> Iterator[None]:
    """Leaves no read-only connection to the other tests."""
    yield
    connection.close()


def make_read_only() -> int:
    """Makes the server of Django's connection read-only. Returns the id of its process."""
    execute("SET default_transaction_read_only = on")
    return int(scalar("SELECT pg_backend_pid()"))


def test_a_purchase_is_repeated_on_a_new_connection() -> None:
    merchant, product = make_merchant(), make_product(codes=2)
    former = make_read_only()

    assert outcome(merchant.buy("one", product_id=product.pk, quantity=1)) == "bought"

    assert scalar("SELECT pg_backend_pid()") != former
    assert outcome(merchant.buy("one", product_id=product.pk, quantity=1)) == "replayed"
    assert_books_balance()


def test_control_a_purchase_on_the_read_only_server_is_a_server_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    merchant, product = make_merchant(), make_product(codes=2)
    monkeypatch.setattr(functions, "READ_ONLY", "")
    make_read_only()

    assert outcome(merchant.buy("one", product_id=product.pk, quantity=1)) == "server_error"


def test_without_any_writable_server_a_purchase_is_a_server_error() -> None:
    """It changes nothing, and the same request succeeds as soon as there is a server."""
    merchant, product = make_merchant(), make_product(codes=2)
    database = connection.settings_dict["NAME"]
    execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    connection.close()
    try:
        assert outcome(merchant.buy("one", product_id=product.pk, quantity=1)) == "server_error"
    finally:
        execute("SET default_transaction_read_only = off")
        execute(f"ALTER DATABASE {database} RESET default_transaction_read_only")
    connection.close()

    assert outcome(merchant.buy("one", product_id=product.pk, quantity=1)) == "bought"
    assert_books_balance()


def test_a_page_uses_a_new_connection_after_a_failure() -> None:
    """Pages write through the ORM. The request that notices fails, and the next one works."""
    make_account()
    former = make_read_only()

    with pytest.raises(DatabaseError):
        make_account()
    connection.close_if_unusable_or_obsolete()  # Django does this when a request ends

    assert scalar("SELECT pg_backend_pid()") != former
    make_account()


def test_a_request_checks_its_kept_connection_before_use() -> None:
    former = make_read_only()
    connection.close_if_unusable_or_obsolete()  # Django does this when a request starts

    make_account()

    assert scalar("SELECT pg_backend_pid()") != former
