"""An import is taken back as a whole while nothing of it is sold; otherwise its rest is held."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial

import pytest
from django.db import DatabaseError, connection
from django.db.models import Q
from django.db.models.functions import Now

from audit.models import AuditAction, AuditEntry
from catalogue.imports.code_import import add_codes
from catalogue.imports.take_back import take_import_back
from catalogue.models import Batch, CodeTrace, Shelf, VoucherCode
from catalogue.stock.batches import count_codes
from catalogue.stock.codes import Code
from catalogue.stock.holds import hold_codes, release_hold, void_hold
from catalogue.stock.traces import trace_codes
from core.inputs import InputProblem
from operators.upkeep.reconcile import reconcile
from tests.commands import refusal, run
from tests.concurrency.racing import (
    holding_wallet,
    in_background,
    outcome,
    wait_for_waiting,
    weakened_sql,
    with_own_http,
)
from tests.factories import make_batch, make_merchant, make_product, own_shelf
from tests.neighbour import ours
from tests.operators.back_office import make_staff, signed_in, url

pytestmark = pytest.mark.django_db(transaction=True)

MAY = ("catalogue.view_batch", "catalogue.hold_codes")


@pytest.fixture
def shelf() -> Shelf:
    return own_shelf(make_product(price="1.00", codes=1))


def take_back(batch: Batch) -> tuple[int, int]:
    return take_import_back(batch_id=batch.pk, reason="wrong file", held_by="test")


def stock(shelf: Shelf) -> int:
    return Shelf.objects.get(pk=shelf.pk).available_stock


def test_an_import_of_which_nothing_is_sold_is_taken_back(shelf: Shelf) -> None:
    batch = make_batch(shelf, 3)
    trace_codes()

    assert take_back(batch) == (3, 0)

    assert stock(shelf) == ours(VoucherCode).count() == 1
    assert reconcile()["findings"] == []
    with pytest.raises(InputProblem, match="taken back before"):
        take_back(batch)


def test_codes_that_were_taken_back_are_imported_again(shelf: Shelf) -> None:
    rows = [(2, Code("AGAIN-1", serial_number="SERIAL-1"))]
    add_codes(shelf=shelf, rows=rows)
    code = VoucherCode.objects.latest("pk")
    batch = make_batch(shelf, 1)
    Batch.objects.filter(pk=batch.pk).delete()
    batch = Batch.objects.create(
        shelf=shelf, first_code=code.pk, last_code=code.pk, file_digest=b"", imported_by="test"
    )
    trace_codes()
    assert CodeTrace.objects.filter(code=code).exists()

    assert take_back(batch) == (1, 0)

    assert not CodeTrace.objects.filter(code=code.pk).exists()
    assert add_codes(shelf=shelf, rows=rows) == 1


def test_the_rest_of_an_import_is_held_if_a_code_of_it_is_sold(shelf: Shelf) -> None:
    batch = make_batch(shelf, 3)
    merchant = make_merchant()
    for _ in range(2):
        assert merchant.buy(product_id=shelf.product_id, quantity=1).status_code == 201

    assert take_back(batch) == (0, 2)

    assert count_codes(batch) == {"in-stock": 0, "sold": 1, "held": 2, "void": 0}
    assert stock(shelf) == 0
    assert Batch.objects.get(pk=batch.pk).taken_back_at is None


def test_codes_that_are_held_go_and_void_codes_stay(shelf: Shelf) -> None:
    one, other = make_batch(shelf, 2), make_batch(shelf, 2)
    for batch in (one, other):
        hold, _ = hold_codes(codes=batch.its_codes, reason="look at it", held_by="test")
    assert hold is not None
    void_hold(hold.pk)

    assert take_back(one) == (2, 0)
    assert take_back(other) == (0, 0)

    assert count_codes(other)["void"] == 2
    assert stock(shelf) == 1


def test_no_code_is_sold_and_taken_back_among_buyers(shelf: Shelf) -> None:
    batch = make_batch(shelf, 40)
    merchants = [make_merchant() for _ in range(3)]

    def buy_all(place: int) -> int:
        try:
            merchant, bought = merchants[place], 0
            while merchant.buy(product_id=shelf.product_id, quantity=1).status_code == 201:
                bought += 1
            return bought
        finally:
            connection.close()

    def take() -> tuple[int, int]:
        try:
            return take_back(batch)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        sales = [pool.submit(buy_all, place) for place in range(3)]
        deleted, held = pool.submit(take).result()
        sold = sum(sale.result() for sale in sales)

    assert sold + deleted + held == 41
    assert not (deleted and count_codes(batch)["sold"])
    assert reconcile()["findings"] == []


@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "control"])
def test_a_sale_in_the_middle_keeps_its_code(
    shelf: Shelf, guarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sale has taken its codes and waits for its wallet when the import is taken back."""
    batch, merchant = make_batch(shelf, 3), make_merchant()
    if not guarded:
        monkeypatch.setattr("catalogue.imports.take_back.hold_codes", lambda **_: (None, 0))
        monkeypatch.setattr("catalogue.imports.take_back.STATES", {"held": Q(order_id=None)})
    buy = partial(with_own_http(merchant).buy, product_id=shelf.product_id, quantity=2)
    sold_stays = ("WHEN (OLD.order_id IS NOT NULL)", "WHEN (false)")
    guard = nullcontext() if guarded else weakened_sql("catalogue/sql/guards.sql", sold_stays)

    with guard, holding_wallet(merchant) as wallet, in_background(buy) as sale:
        wait_for_waiting()
        with in_background(partial(take_back, batch)) as taking:
            wait_for_waiting(2)
            wallet.rollback()

    assert outcome(sale.result()) == "bought"
    sold_codes = ours(VoucherCode).filter(shelf=shelf, order_id__isnull=False)
    if guarded:
        assert taking.result() == (0, 2)
        assert sold_codes.count() == 2
        assert reconcile()["findings"] == []
    else:
        assert taking.result() == (3, 0)
        assert sold_codes.count() == 1  # a merchant has a code that the shop has no more


def test_the_command_takes_an_import_back(shelf: Shelf) -> None:
    whole, sold = make_batch(shelf, 2), make_batch(shelf, 2)
    make_merchant().buy(product_id=shelf.product_id, quantity=4)  # one of no batch, both of `whole`
    assert run("take_import_back", whole.pk, "--reason", "x") == {
        "batch": whole.pk,
        "deleted": 0,
        "held": 0,
    }
    assert run("take_import_back", sold.pk, "--reason", "x")["held"] == 1
    clean = make_batch(shelf, 2)
    assert run("take_import_back", clean.pk, "--reason", "wrong file")["deleted"] == 2
    assert "taken back before" in refusal("take_import_back", clean.pk, "--reason", "x")
    assert "There is no batch" in refusal("take_import_back", 10**9, "--reason", "x")
    entry = AuditEntry.objects.filter(action=AuditAction.IMPORT_TAKEN_BACK).latest("pk")
    assert "wrong file" in entry.note


def test_the_database_refuses_other_deletions(shelf: Shelf) -> None:
    batch = make_batch(shelf, 2)
    with pytest.raises(DatabaseError, match="only when their import is taken back"):
        VoucherCode.objects.filter(shelf=shelf)._raw_delete("default")
    take_back(batch)
    for time in (None, Now()):
        with pytest.raises(DatabaseError, match="was taken back"):
            Batch.objects.filter(pk=batch.pk).update(taken_back_at=time)
    with pytest.raises(DatabaseError, match="only when their import is taken back"):
        VoucherCode.objects.filter(shelf=shelf)._raw_delete("default")


def test_a_release_before_the_deletion_keeps_the_codes(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = make_batch(shelf, 2)

    def hold_and_release(**options: object) -> tuple[object, int]:
        hold, number = hold_codes(**options)  # type: ignore[arg-type]
        assert hold is not None
        release_hold(hold.pk)
        return hold, number

    monkeypatch.setattr("catalogue.imports.take_back.hold_codes", hold_and_release)

    assert take_back(batch)[0] == 0
    assert stock(shelf) == 3
    assert reconcile()["findings"] == []


def test_the_page_of_a_batch_takes_the_import_back(shelf: Shelf) -> None:
    batch, staff = make_batch(shelf, 2), make_staff(*MAY)
    browser, address = signed_in(staff), url(batch).replace("change/", "take-back/")
    assert "Take back the codes of batch" in browser.get(address).content.decode()
    assert batch.number == ours(VoucherCode).filter(batch.its_codes).count()

    page = browser.post(address, {"reason": "wrong file"}, follow=True).content.decode()

    assert "2 codes were deleted" in page
    assert "none: the import was taken back" in page
    entries = {
        one.object_type: one for one in AuditEntry.objects.filter(action="import_taken_back")
    }
    assert entries.keys() == {"catalogue.batch", "catalogue.shelf"}
    for entry in entries.values():
        assert (entry.actor, entry.note) == (staff, "Codes: 2. wrong file")
    other = signed_in(make_staff("catalogue.view_batch"))
    assert other.post(address, {"reason": "no"}).status_code == 403
