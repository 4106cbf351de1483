"""An expired code is not sold, also by a purchase that waited while its last day ended."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from django.db import DatabaseError, transaction

from catalogue.models import Batch, CodeHold, VoucherCode
from catalogue.stock.expiry import HELD_BEFORE
from catalogue.tasks import hold_expired_codes
from operators.upkeep.reconcile import reconcile
from tests.commands import refusal, run
from tests.concurrency.racing import (
    execute,
    holding_locks,
    in_background,
    outcome,
    wait_for_waiting,
    weakened_sql,
    with_own_http,
    without_triggers,
)
from tests.factories import add_codes, make_batch, make_merchant, make_product, own_shelf

pytestmark = pytest.mark.django_db(transaction=True)

COMPARISON = ("AND (expires_on IS NULL OR expires_on >= today)", "")
TRIGGER = "TRIGGER catalogue_expired_code_is_not_sold"


def days_from_now(days: int) -> date:
    """The day in UTC. It is asked for in each test: a run may go on past midnight."""
    return datetime.now(UTC).date() + timedelta(days=days)


@contextmanager
def without_the_trigger() -> Iterator[None]:
    execute(f"ALTER TABLE catalogue_vouchercode DISABLE {TRIGGER}")
    try:
        yield
    finally:
        execute(f"ALTER TABLE catalogue_vouchercode ENABLE {TRIGGER}")


def buy_while_a_code_expires() -> tuple[str, bool]:
    """The first code of a shelf expires while a purchase waits for the shelf. The outcome of the
    purchase, and whether it got that code."""
    product, merchant = make_product(price="1.00"), make_merchant()
    batch = make_batch(own_shelf(product), 1, expires_on=days_from_now(1))
    add_codes(own_shelf(product), 1)
    with holding_locks(
        "SELECT FROM catalogue_shelf WHERE id = %s FOR NO KEY UPDATE", batch.shelf_id
    ) as other:
        buying = partial(with_own_http(merchant).buy, product_id=product.pk, quantity=1)
        with in_background(buying) as bought:
            wait_for_waiting()
            without_triggers(
                "UPDATE catalogue_vouchercode SET expires_on = %s WHERE id = %s",
                days_from_now(-1),
                batch.first_code,
            )
            other.commit()
    sold = VoucherCode.objects.get(pk=batch.first_code).order_id is not None
    return outcome(bought.result()), sold


def test_a_purchase_that_waited_gets_another_code() -> None:
    assert buy_while_a_code_expires() == ("bought", False)


def test_a_code_is_sold_on_its_last_day_and_not_after_it() -> None:
    product, merchant = make_product(price="1.00"), make_merchant()
    make_batch(own_shelf(product), 2, expires_on=days_from_now(-1))
    make_batch(own_shelf(product), 1, expires_on=days_from_now(0))

    assert outcome(merchant.buy(product_id=product.pk, quantity=1)) == "bought"
    assert outcome(merchant.buy(product_id=product.pk, quantity=1)) == "insufficient_stock"


def test_a_wrong_count_is_no_lack_of_stock() -> None:
    """The shelf counts one code too many. Codes that expired and are sold, held or elsewhere do not
    explain it."""
    product, merchant = make_product(price="1.00"), make_merchant()
    shelf = own_shelf(product)
    sold = make_batch(shelf, 1, expires_on=days_from_now(0))
    assert outcome(merchant.buy(product_id=product.pk, quantity=1)) == "bought"
    make_batch(shelf, 1, expires_on=days_from_now(-1))
    assert hold_expired_codes() == 1
    make_batch(own_shelf(make_product()), 1, expires_on=days_from_now(-1))
    make_batch(shelf, 1, expires_on=days_from_now(0))
    without_triggers(
        "UPDATE catalogue_vouchercode SET expires_on = %s WHERE id = %s",
        days_from_now(-1),
        sold.first_code,
    )
    execute("UPDATE catalogue_shelf SET available_stock = 2 WHERE id = %s", shelf.pk)

    assert outcome(merchant.buy(product_id=product.pk, quantity=2)) == "server_error"


def test_a_task_holds_expired_codes_once() -> None:
    first, second = make_product(price="1.00"), make_product(price="1.00")
    make_batch(own_shelf(first), 2, expires_on=days_from_now(-1))
    make_batch(own_shelf(second), 1, expires_on=days_from_now(-1))
    make_batch(own_shelf(second), 1, expires_on=days_from_now(1) + HELD_BEFORE)

    assert hold_expired_codes() == 3
    assert hold_expired_codes() == 0

    assert [hold.held_by for hold in CodeHold.objects.all()] == ["expiry", "expiry"]
    assert own_shelf(first).available_stock == 0
    assert own_shelf(second).available_stock == 1
    assert reconcile()["findings"] == []


def test_an_import_says_when_its_codes_expire(tmp_path: Path) -> None:
    product, file = make_product(), tmp_path / "codes.csv"
    file.write_text("code\nA\nB\n")
    for day, why in ((days_from_now(-1), "can no longer be sold"), ("soon", "not a day like")):
        assert why in refusal("import_codes", product.pk, file, "--expires-on", day)

    run("import_codes", product.pk, file, "--expires-on", days_from_now(1))

    codes = VoucherCode.objects.filter(shelf=own_shelf(product))
    assert {code.expires_on for code in codes} == {days_from_now(1)}
    batch = Batch.objects.get()
    assert batch.expires_on == days_from_now(1)
    for rows in (Batch.objects.filter(pk=batch.pk), codes):
        with pytest.raises(DatabaseError, match="keeps its expiry"), transaction.atomic():
            rows.update(expires_on=None)


def test_a_batch_whose_code_expires_on_another_day_is_found() -> None:
    batch = make_batch(own_shelf(make_product()), 2, expires_on=days_from_now(1))
    without_triggers(
        "UPDATE catalogue_vouchercode SET expires_on = NULL WHERE id = %s", batch.last_code
    )

    (finding,) = reconcile()["findings"]
    assert finding["check"] == "each batch has all of its codes, and shares none"


def test_without_the_comparison_the_database_still_refuses() -> None:
    with weakened_sql("catalogue/sql/take_codes.sql", COMPARISON):
        assert buy_while_a_code_expires() == ("server_error", False)


def test_control_without_both_guards_the_expired_code_is_sold() -> None:
    with weakened_sql("catalogue/sql/take_codes.sql", COMPARISON), without_the_trigger():
        assert buy_while_a_code_expires() == ("bought", True)
