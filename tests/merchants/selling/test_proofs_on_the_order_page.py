"""Members see the proofs of their own deliveries on the order's page. The API has none."""

import pytest

from merchants.models import Role
from tests.cases.complaints import PNG
from tests.factories import Merchant, buy_topup, make_merchant, make_operator, move_now
from tests.merchants.people import browser_of, make_member
from tests.operators.back_office import text_of
from topups.fulfilment.proofs import NewProof, add_proof
from topups.fulfilment.transitions import Move
from topups.models import DeliveryFile, Fulfilment

pytestmark = pytest.mark.django_db


def prove(merchant: Merchant) -> tuple[Fulfilment, str]:
    """A delivered order with a proof, and the address of its file."""
    operator = make_operator()
    reference = buy_topup(merchant)
    order = move_now(reference=reference, move=Move.COMPLETE, operator=operator)
    new = NewProof(transaction_number="<TX>-7", file=("sent to you.png", PNG))
    proof = add_proof(fulfilment=order, operator=operator, proof=new)
    return order, f"/merchant/orders/{reference}/proofs/{proof.pk}/"


def test_a_viewer_reads_the_number_and_downloads_the_file(merchant: Merchant) -> None:
    order, file = prove(merchant)
    browser = browser_of(make_member(merchant.account, Role.VIEWER))

    page = text_of(browser.get(f"/merchant/orders/{order.order_reference}/"))
    assert "&lt;TX&gt;-7" in page
    assert file in page
    answer = browser.get(file)
    assert (answer.content, answer["X-Content-Type-Options"]) == (PNG, "nosniff")
    assert answer["Content-Disposition"] == "attachment; filename*=UTF-8''sent%20to%20you.png"
    assert "no-store" in answer["Cache-Control"]


def test_a_proof_is_out_of_reach_of_other_accounts_and_orders(merchant: Merchant) -> None:
    order, file = prove(merchant)
    other = make_merchant()
    theirs, _ = prove(other)
    stranger = browser_of(make_member(other.account))
    assert stranger.get(file).status_code == 404
    proof = file.split("/")[-2]
    mixed = f"/merchant/orders/{theirs.order_reference}/proofs/{proof}/"
    assert stranger.get(mixed).status_code == 404
    owner = browser_of(make_member(merchant.account))
    assert owner.get(mixed).status_code == 404
    assert owner.get(f"/merchant/orders/{order.order_reference}/proofs/0/").status_code == 404
    for reference in ("NOTHING", "a%00b", "%ed%a0%80", "x" * 5000):
        assert owner.get(f"/merchant/orders/{reference}/proofs/{proof}/").status_code == 404


def test_the_number_stays_when_the_file_is_gone(merchant: Merchant) -> None:
    order, file = prove(merchant)
    browser = browser_of(make_member(merchant.account))
    DeliveryFile.objects.all().delete()
    page = text_of(browser.get(f"/merchant/orders/{order.order_reference}/"))
    assert "&lt;TX&gt;-7" in page
    assert file not in page
    assert browser.get(file).status_code == 404


def test_an_order_without_a_proof_says_nothing_of_one(merchant: Merchant) -> None:
    reference = buy_topup(merchant)
    page = text_of(browser_of(make_member(merchant.account)).get(f"/merchant/orders/{reference}/"))
    assert "Proof of delivery" not in page


def test_the_api_has_no_proof(merchant: Merchant) -> None:
    before = set(merchant.get(f"/orders/{buy_topup(merchant)}").json()["data"])
    order, _ = prove(merchant)
    answer = merchant.get(f"/orders/{order.order_reference}")
    assert "<TX>" not in text_of(answer)
    assert set(answer.json()["data"]) == before
