"""Operators add proofs of delivery at the desk; other staff read them."""

from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from core.backoffice.staff_roles import StaffRole
from core.database.sealing import CannotOpen
from orders.models import Order
from tests.cases.complaints import PNG
from tests.factories import Merchant, buy_topup, make_merchant, make_operator, move_now
from tests.operators.back_office import signed_in, staff_with, text_of, url
from topups.fulfilment.transitions import Move
from topups.fulfilment.versions import version_of
from topups.models import DeliveryFile, DeliveryProof, Fulfilment

pytestmark = pytest.mark.django_db


def picture(content: bytes = PNG, name: str = "sent.png") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content)


def bought(merchant: Merchant) -> Fulfilment:
    return Fulfilment.objects.get(order_reference=buy_topup(merchant))


def delivered(merchant: Merchant) -> Fulfilment:
    reference = buy_topup(merchant)
    return move_now(reference=reference, move=Move.COMPLETE, operator=make_operator())


def send_delivery(browser: Client, order: Fulfilment, **data: Any) -> Any:
    address = reverse("admin:topups_fulfilment_move", args=[order.pk, Move.COMPLETE])
    form = {"version": version_of(order), "confirmed": "1", **data}
    return browser.post(address, form, follow=True)


@pytest.fixture
def browser() -> Client:
    return signed_in(staff_with(StaffRole.OPERATOR))


def test_delivering_takes_a_proof(merchant: Merchant, browser: Client) -> None:
    order = bought(merchant)
    question = reverse("admin:topups_fulfilment_move", args=[order.pk, Move.COMPLETE])
    shown = text_of(browser.get(question))
    assert 'enctype="multipart/form-data"' in shown
    assert 'name="transaction_number"' in shown

    answer = send_delivery(browser, order, transaction_number="TX-9", file=picture())

    proof = DeliveryProof.objects.get(fulfilment=order)
    assert (proof.transaction_number, proof.file.content()) == ("TX-9", PNG)
    page = text_of(answer)
    assert "TX-9" in page
    assert f"/proof/{proof.pk}/" in page
    assert "Proof of delivery added" in page


@pytest.mark.usefixtures("alone")
def test_a_delivery_with_a_proof_leads_to_the_next_order(merchant: Merchant) -> None:
    user = staff_with(StaffRole.OPERATOR)
    browser, first, second = signed_in(user), bought(merchant), bought(merchant)
    question = reverse("admin:topups_fulfilment_move", args=[first.pk, Move.COMPLETE])
    assert "Mark delivered, claim next" not in text_of(browser.get(question))
    browser.post(reverse("admin:topups_fulfilment_next"))
    assert "Mark delivered, claim next" in text_of(browser.get(question))

    form = {"transaction_number": "TX-9", "claim_next": "1"}
    answer = send_delivery(browser, first, **form)

    assert answer.redirect_chain[-1][0] == url(second)
    assert DeliveryProof.objects.get(fulfilment=first).transaction_number == "TX-9"
    assert Fulfilment.objects.get(claimed_by=user) == second
    again = send_delivery(browser, first, **form)  # claims nothing more, and ends nothing
    assert again.redirect_chain[-1][0] == url(first)
    second.refresh_from_db()
    assert second.status == "processing"


def test_delivering_needs_no_proof(merchant: Merchant, browser: Client) -> None:
    order = bought(merchant)
    page = text_of(send_delivery(browser, order))
    order.refresh_from_db()
    assert order.status == "completed"
    assert "No proof was added." in page


def test_a_delivery_that_is_sent_twice_adds_one_proof(merchant: Merchant, browser: Client) -> None:
    order = bought(merchant)
    version = version_of(order)
    for _ in range(2):
        send_delivery(browser, order, version=version, transaction_number="TX-9", file=picture())
    assert DeliveryProof.objects.count() == 1


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        (picture(b"", "sent.png"), "empty"),
        (picture(b"<script>", "sent.html"), "not a PNG"),
        (picture(b"<script>", "sent.png"), "not a PNG"),
        (picture(PNG + bytes(5_000_000), "sent.png"), "larger than"),
    ],
)
def test_a_file_that_cannot_be_used_delivers_nothing(
    merchant: Merchant, browser: Client, file: Any, problem: str
) -> None:
    order = bought(merchant)
    page = text_of(send_delivery(browser, order, transaction_number="TX-9", file=file))
    order.refresh_from_db()
    assert order.status == "pending"
    assert problem in page
    assert "TX-9" in page
    assert not DeliveryProof.objects.exists()


def test_a_body_beyond_the_limit_is_not_read(merchant: Merchant, browser: Client) -> None:
    order = bought(merchant)
    answer = send_delivery(browser, order, file=picture(PNG + bytes(6_000_000)))
    assert answer.status_code == 413


def test_a_selection_takes_no_proof(merchant: Merchant, browser: Client) -> None:
    order = bought(merchant)
    form = {
        "action": "complete_selected",
        "_selected_action": [order.pk],
        f"version-{order.pk}": version_of(order),
    }
    page = text_of(browser.post("/admin/topups/fulfilment/", form))
    assert "cannot be undone" in page
    assert 'name="transaction_number"' not in page


def test_a_proof_is_added_later_once(merchant: Merchant, browser: Client) -> None:
    order = delivered(merchant)
    address = url(order, "add_proof")
    assert address in text_of(browser.get(url(order)))
    page = browser.get(address)
    token = page.context["form"]["token"].value()
    large = PNG + bytes(3_000_000)
    form = {"token": token, "transaction_number": "TX-9"}

    for _ in range(2):
        answer = browser.post(address, {**form, "file": picture(large)})
        assert answer.status_code == 302

    proof = DeliveryProof.objects.get()
    assert proof.file.size == len(large)
    assert browser.get(address).context["form"]["token"].value() != token


def test_a_form_that_is_sent_again_with_another_proof_is_refused(
    merchant: Merchant, browser: Client
) -> None:
    order = delivered(merchant)
    address, token = url(order, "add_proof"), uuid4()
    first = {"token": token, "transaction_number": "WRONG-1"}
    browser.post(address, {**first, "file": picture()})

    for other in (
        {"token": token, "transaction_number": "RIGHT-2", "file": picture()},
        {"token": token, "transaction_number": "WRONG-1", "file": picture(PNG + b"2")},
        first,
    ):
        page = text_of(browser.post(address, other, follow=True))
        assert "sent before, with another proof" in page

    assert DeliveryProof.objects.get().transaction_number == "WRONG-1"


def test_a_file_whose_key_is_missing_is_an_answer(
    merchant: Merchant, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = bought(merchant)
    send_delivery(browser, order, file=picture())
    proof = DeliveryProof.objects.get()

    def closed(*_: object) -> bytes:
        raise CannotOpen("no key")

    monkeypatch.setattr(DeliveryFile, "content", closed)
    address = reverse("admin:topups_fulfilment_proof_file", args=[order.pk, proof.pk])
    answer = browser.get(address)
    assert (answer.status_code, answer["Content-Type"]) == (503, "text/plain; charset=utf-8")
    assert "cannot be opened" in text_of(answer)


@pytest.mark.parametrize("token", ["", "x", "00000000"])
def test_a_form_without_a_token_adds_nothing(
    merchant: Merchant, browser: Client, token: str
) -> None:
    order = delivered(merchant)
    answer = browser.post(url(order, "add_proof"), {"token": token, "transaction_number": "TX-9"})
    assert answer.status_code == 200
    assert not DeliveryProof.objects.exists()


def test_an_empty_proof_and_an_open_order_add_nothing(merchant: Merchant, browser: Client) -> None:
    order = delivered(merchant)
    empty = browser.post(url(order, "add_proof"), {"token": uuid4()}, follow=True)
    assert "Enter a transaction number, or choose a file." in text_of(empty)
    open_order = bought(merchant)
    assert url(open_order, "add_proof") not in text_of(browser.get(url(open_order)))
    answer = browser.post(
        url(open_order, "add_proof"),
        {"token": uuid4(), "transaction_number": "x"},
        follow=True,
    )
    assert "Only a delivered order" in text_of(answer)
    assert not DeliveryProof.objects.exists()


def test_staff_who_see_topups_download_the_file_and_add_none(
    merchant: Merchant, browser: Client
) -> None:
    order = bought(merchant)
    send_delivery(browser, order, transaction_number="TX-9", file=picture())
    proof = DeliveryProof.objects.get()
    address = reverse("admin:topups_fulfilment_proof_file", args=[order.pk, proof.pk])
    sold = Order.objects.get(reference=order.order_reference)
    for role in (StaffRole.SUPPORT, StaffRole.FINANCE, StaffRole.AUDITOR):
        reader = signed_in(staff_with(role))
        for row in (order, sold):
            page = text_of(reader.get(url(row)))
            assert "TX-9" in page
            assert "Add a proof" not in page
        answer = reader.get(address)
        assert (answer.content, answer["X-Content-Type-Options"]) == (PNG, "nosniff")
        assert answer["Content-Disposition"].startswith("attachment")
        assert "no-store" in answer["Cache-Control"]
        assert reader.post(url(order, "add_proof"), {"token": uuid4()}).status_code == 403
    manager = signed_in(staff_with(StaffRole.MERCHANT_MANAGER))
    assert "TX-9" not in text_of(manager.get(url(sold)))
    assert manager.get(address).status_code == 403


def test_a_file_belongs_to_its_order(merchant: Merchant, browser: Client) -> None:
    order, other = bought(merchant), delivered(make_merchant())
    send_delivery(browser, order, file=picture())
    proof = DeliveryProof.objects.get()
    for fulfilment, pk in ((other.pk, proof.pk), (order.pk, proof.pk + 1), (0, proof.pk)):
        address = reverse("admin:topups_fulfilment_proof_file", args=[fulfilment, pk])
        assert browser.get(address).status_code == 404
