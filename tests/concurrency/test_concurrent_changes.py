"""Concurrent changes of one row do not undo each other."""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from functools import partial

import pytest
from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from accounts.api_access.keys import rotate_key
from accounts.models import NAME_TAKEN, Account
from accounts.services import create_client
from catalogue.imports.catalogue_import import save_catalogue
from catalogue.models import Shelf
from operators.sign_in import two_people
from tests.concurrency.racing import holding_locks, in_background, race, start, wait_for_waiting
from tests.factories import make_account, make_merchant, make_product, make_topup_product, own_shelf
from tests.operators.back_office import make_staff, signed_in
from topups.models import TopUpProduct
from topups.topup_product_import import save_topup_products

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def no_row_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: rows are read without a lock."""
    monkeypatch.setattr(QuerySet, "select_for_update", lambda rows, **options: rows)


@pytest.fixture(params=["guarded", "control"])
def guarded(request: pytest.FixtureRequest) -> bool:
    if request.param == "control":
        request.getfixturevalue("no_row_locks")
    return bool(request.param == "guarded")


def test_two_rotations_without_overlap_leave_one_key(guarded: bool) -> None:
    client = make_merchant().client

    with (
        ThreadPoolExecutor(2) as pool,
        holding_locks("SELECT FROM accounts_apikey WHERE client_id = %s FOR UPDATE", client.pk),
    ):
        rotations = [
            start(pool, lambda: rotate_key(client=client, overlap_hours=0, actor=None))
            for _ in range(2)
        ]
        wait_for_waiting(2)

    assert len({rotation.result() for rotation in rotations}) == 2
    assert client.keys.live().count() == (1 if guarded else 2)


def test_of_clients_that_are_created_at_once_one_has_the_name() -> None:
    def create(account: Account) -> str:
        try:
            return create_client(name="Shop", account_id=account.pk)[0].name
        except ValidationError as problem:
            return problem.messages[0]

    for _ in range(5):
        names = race([partial(create, make_account())] * 3)
        assert sorted(names) == [NAME_TAKEN, NAME_TAKEN, "Shop"]


def test_an_import_does_not_switch_a_product_on_again(guarded: bool) -> None:
    product = make_topup_product(price="4.99")
    row = {"id": product.pk, "name": product.name, "currency": "USD", "price": Decimal("5.49")}

    switching_off = "UPDATE topups_topupproduct SET active = false WHERE id = %s"
    with (
        holding_locks(switching_off, product.pk) as edit,
        in_background(lambda: save_topup_products(products=[row])) as importing,
    ):
        wait_for_waiting()
        edit.commit()
    importing.result()

    product = TopUpProduct.objects.get(pk=product.pk)
    assert product.price == Decimal("5.49")
    assert product.active is not guarded


def test_an_import_does_not_undo_a_new_quantity_step(guarded: bool) -> None:
    product = make_product(price="9.99")
    shelf = own_shelf(product)
    row = {"id": product.pk, "name": product.name, "currency": "USD", "price": Decimal("8.99")}

    with (
        holding_locks(
            "UPDATE catalogue_shelf SET quantity_step = 5 WHERE id = %s", shelf.pk
        ) as edit,
        in_background(lambda: save_catalogue(categories=[], products=[row])) as importing,
    ):
        wait_for_waiting()
        edit.commit()
    importing.result()

    shelf = Shelf.objects.get(pk=shelf.pk)
    assert shelf.price == Decimal("8.99")
    assert shelf.quantity_step == (5 if guarded else 1)


OWN_COMPANY = "/admin/accounts/owncompany/1/change/"
NEW_DETAILS = "/admin/wallets/bankdetails/add/"


@pytest.mark.parametrize("locked", [True, False])
@pytest.mark.parametrize(
    ("address", "words"), [(OWN_COMPANY, "Not saved yet"), (NEW_DETAILS, "already exists")]
)
def test_two_pairs_do_not_both_save_the_first_row(
    address: str, words: str, locked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second pair agreed to values in place of none, and reads that there are some."""
    if not locked:
        monkeypatch.setattr(two_people, "lock_rows_of", lambda model: None)
    _empty, _admin, app, model, *_rest = address.split("/")
    rights = [f"{app}.{verb}_{model}" for verb in ("view", "change", "add")]

    def save(text: str) -> str:
        browser = signed_in(make_staff(*rights[: 2 if address == OWN_COMPANY else 3]))
        browser.raise_request_exception = False
        form = {"legal_name": text, "currency": "JPY", "details": text}
        page = str(browser.post(address, form, follow=True).content.decode())
        return "" if "successfully" in page else page

    for text in ("We", "Us"):
        assert "Not saved yet" in save(text)
    with (
        ThreadPoolExecutor(2) as pool,
        holding_locks(f"LOCK TABLE {app}_{model} IN SHARE MODE"),
    ):
        pairs = [start(pool, save, text) for text in ("We", "Us")]
        wait_for_waiting(2)

    pages = [pair.result() for pair in pairs]
    assert sum(page == "" for page in pages) == 1  # saved
    assert sum(words in page for page in pages) == locked
