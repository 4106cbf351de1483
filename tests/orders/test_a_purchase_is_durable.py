"""A purchase waits for the disk, whatever the session, the role or the database says."""

import pytest
from django.db import connection

from idempotency.services import Claim, claim_key
from orders.purchase import purchase_topup, purchase_vouchers
from tests.factories import Merchant, make_product, make_topup_product

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("kind", ["voucher", "top-up"])
def test_a_session_that_would_not_wait_is_made_to(merchant: Merchant, kind: str) -> None:
    claim = claim_key(client=merchant.client, key="one", fingerprint=b"x")
    assert isinstance(claim, Claim)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = off")

        buy(kind, merchant, claim)

        cursor.execute("SHOW synchronous_commit")
        assert cursor.fetchone() == ("on",)


def buy(kind: str, merchant: Merchant, claim: Claim) -> None:
    if kind == "voucher":
        product = make_product(codes=1)
        purchase_vouchers(client=merchant.client, claim=claim, quantity=1, product_id=product.pk)
    else:
        topup = make_topup_product()
        purchase_topup(
            client=merchant.client, claim=claim, product_id=topup.pk, player_id="7", fields={}
        )
