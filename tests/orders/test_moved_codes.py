"""Codes and responses open only where they belong.

Somebody with write access to the database, but without the encryption keys, must not be able to
read a code by moving it to an order of their own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from structlog.testing import capture_logs

from catalogue.models import VoucherCode
from catalogue.stock.codes import open_code
from core.database.key_ring import KeyRing
from core.database.sealing import CannotOpen
from operators.catalogue.code_reveal import reveal_codes
from operators.upkeep.reconcile import reconcile
from orders.models import Order
from tests.audited import recorded
from tests.concurrency.racing import codes_of, with_own_http
from tests.factories import Merchant, add_codes, make_merchant, make_operator, make_product
from tests.neighbour import ours

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass(frozen=True)
class Scene:
    """A thief and a victim, who each bought two codes of one product."""

    thief: Merchant
    victim: Merchant
    own: Order
    other: Order

    def read(self, merchant: Merchant, order: Order) -> tuple[int, str]:
        """The status and body. Not checked against the OpenAPI document, which has no 500 for a
        read."""
        answer = Client(raise_request_exception=False).get(
            f"/api/v1/orders/{order.reference}", headers={"Authorization": f"Bearer {merchant.key}"}
        )
        return answer.status_code, answer.content.decode()


@pytest.fixture
def scene() -> Scene:
    product = make_product(codes=5)
    merchants = make_merchant(), make_merchant()
    orders = []
    for merchant in merchants:
        bought = merchant.buy("one", product_id=product.pk, quantity=2)
        orders.append(Order.objects.get(reference=bought.json()["data"]["reference"]))
    return Scene(*merchants, *orders)


def tamper(statement: str, **parameters: Any) -> None:
    """Runs a statement as a superuser of the database can: with all triggers off."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(statement, parameters)


def swap(columns: str, first: VoucherCode, second: VoucherCode) -> None:
    """Exchanges columns of two codes, through other values because digests are unique."""
    names = columns.split(", ")
    old = [{name: getattr(code, name) for name in names} for code in (first, second)]
    if "digest" in names:
        tamper("UPDATE catalogue_vouchercode SET digest = '' WHERE id = %(id)s", id=second.pk)
    for code, values in ((first, old[1]), (second, old[0])):
        for name in names:
            tamper(
                f"UPDATE catalogue_vouchercode SET {name} = %(value)s WHERE id = %(id)s",
                value=values[name],
                id=code.pk,
            )


def codes_of_order(order: Order) -> list[VoucherCode]:
    return list(VoucherCode.objects.filter(order_id=order.pk).order_by("position"))


def swap_sealed(scene: Scene) -> None:
    swap("sealed", codes_of_order(scene.own)[0], codes_of_order(scene.other)[0])


def swap_content(scene: Scene) -> None:
    swap("sealed, digest", codes_of_order(scene.own)[0], codes_of_order(scene.other)[0])


def swap_orders(scene: Scene) -> None:
    swap("order_id", codes_of_order(scene.own)[0], codes_of_order(scene.other)[0])


def take_one_more(scene: Scene) -> None:
    tamper(
        "UPDATE catalogue_vouchercode SET order_id = %(own)s WHERE id = %(id)s",
        own=scene.own.pk,
        id=codes_of_order(scene.other)[0].pk,
    )


def take_one_from_stock(scene: Scene) -> None:
    tamper(
        "UPDATE catalogue_vouchercode SET order_id = %(own)s WHERE order_id IS NULL",
        own=scene.own.pk,
    )


def copy_the_mac_too(scene: Scene) -> None:
    """The thief's order gets exactly the codes of the victim's, and its codes_mac."""
    swap_orders(scene)
    swap("order_id", codes_of_order(scene.own)[1], codes_of_order(scene.other)[1])
    tamper(
        "UPDATE orders_order SET codes_mac = %(mac)s WHERE id = %(own)s",
        mac=bytes(scene.other.codes_mac or b""),
        own=scene.own.pk,
    )


ATTACKS = [
    swap_sealed,
    swap_content,
    swap_orders,
    take_one_more,
    take_one_from_stock,
    copy_the_mac_too,
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_moved_code_does_not_open(scene: Scene, attack: Callable[[Scene], None]) -> None:
    status, body = scene.read(scene.victim, scene.other)
    assert status == 200
    codes = [open_code(row.sealed, row.digest).code for row in ours(VoucherCode).all()]
    assert len([code for code in codes if code in body]) == 2

    attack(scene)

    status, body = scene.read(scene.thief, scene.own)
    assert status == 500
    assert [code for code in codes if code in body] == []
    assert reconcile(decrypt=True)["ok"] is False


@pytest.mark.parametrize("attack", ATTACKS)
def test_staff_are_not_shown_a_moved_code(scene: Scene, attack: Callable[[Scene], None]) -> None:
    attack(scene)
    order = Order.objects.get(pk=scene.own.pk)
    staff = make_operator().user

    with pytest.raises(CannotOpen):
        reveal_codes(codes=codes_of_order(order), order=order, actor=staff, note="")

    assert not recorded().exists()


def _damage_seal(scene: Scene) -> None:
    tamper(
        "UPDATE catalogue_vouchercode SET sealed = '\\x00' WHERE id = %(id)s",
        id=codes_of_order(scene.own)[0].pk,
    )


def test_a_key_that_is_missing_does_not_empty_an_order(scene: Scene) -> None:
    tamper(
        "UPDATE catalogue_vouchercode SET sealed = set_byte(sealed, 0, 77) WHERE id = %(id)s",
        id=codes_of_order(scene.own)[0].pk,
    )

    answer = Client(raise_request_exception=False).get(
        "/api/v1/orders", headers={"Authorization": f"Bearer {scene.thief.key}"}
    )
    assert answer.status_code == 500  # this process cannot say that the code is damaged


@pytest.mark.parametrize("attack", [*ATTACKS, _damage_seal])
def test_a_damaged_order_leaves_the_others_of_its_page(
    scene: Scene, attack: Callable[[Scene], None]
) -> None:
    shelf = scene.own.shelf
    assert shelf
    add_codes(shelf, 2)
    kept = with_own_http(scene.thief).buy("two", product_id=shelf.product_id, quantity=1)
    attack(scene)

    with capture_logs() as logs:
        answer = with_own_http(scene.thief).get("/orders")

    assert answer.status_code == 200
    page = answer.json()["data"]
    assert page["pagination"]["total"] == 2
    assert page["items"][0] == kept.json()["data"]
    damaged = page["items"][1]
    assert (damaged["reference"], damaged["quantity"]) == (scene.own.reference, 2)
    assert damaged["codes"] == []
    line = {
        "event": "order_codes_unopenable",
        "log_level": "error",
        "order_reference": scene.own.reference,
    }
    assert line in logs
    assert scene.read(scene.thief, scene.own)[0] == 500
    assert reconcile(decrypt=True)["ok"] is False


def test_a_process_without_the_keys_answers_no_list(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_secret(*_: Any) -> bytes:
        raise CannotOpen

    monkeypatch.setattr(KeyRing, "derive", no_secret)

    answer = Client(raise_request_exception=False).get(
        "/api/v1/orders", headers={"Authorization": f"Bearer {scene.thief.key}"}
    )

    assert answer.status_code == 500


def test_an_order_given_to_another_client_does_not_open(scene: Scene) -> None:
    tamper("DELETE FROM orders_order WHERE id = %(own)s", own=scene.own.pk)
    tamper(
        "UPDATE orders_order SET client_id = %(client)s WHERE id = %(other)s",
        client=scene.thief.client.pk,
        other=scene.other.pk,
    )

    assert scene.read(scene.thief, scene.other)[0] == 500


def test_a_stored_response_does_not_open_under_another_key(scene: Scene) -> None:
    """The victim's record becomes one of the thief, with the thief's key and fingerprint."""
    tamper(
        "UPDATE idempotency_idempotencyrecord AS record SET response = victim.response"
        "  FROM idempotency_idempotencyrecord AS victim"
        " WHERE record.client_id = %(thief)s AND victim.client_id = %(victim)s",
        thief=scene.thief.client.pk,
        victim=scene.victim.client.pk,
    )
    shelf = scene.own.shelf
    assert shelf

    answer = with_own_http(scene.thief).buy("one", product_id=shelf.product_id, quantity=2)

    assert answer.status_code == 500
    assert "Idempotent-Replay" not in answer.headers


def test_codes_stay_with_their_order_when_nobody_tampers(scene: Scene) -> None:
    answer = with_own_http(scene.thief).get(f"/orders/{scene.own.reference}")

    assert len(codes_of(answer)) == 2
    assert reconcile(decrypt=True)["findings"] == []
