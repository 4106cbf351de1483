"""A delivered top-up gets proofs, one for each form. None is ever changed."""

from functools import partial
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from audit.models import AuditAction, AuditEntry
from core.files.uploads import MAX_BYTES
from core.inputs import InputProblem
from tests.concurrency.racing import race
from tests.factories import Merchant, buy_topup, make_merchant, make_operator, move_now
from topups.fulfilment import proofs
from topups.fulfilment.fulfilments import AlreadyDone, MoveRefused, Operator
from topups.fulfilment.proofs import NewProof, add_proof, deliver, proofs_of
from topups.fulfilment.transitions import Move
from topups.fulfilment.versions import version_of
from topups.models import Channel, DeliveryFile, DeliveryProof, Fulfilment

pytestmark = pytest.mark.django_db

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
PROOF = NewProof(transaction_number="TX-1", file=("sent.png", PNG))


def delivered(merchant: Merchant, operator: Operator) -> Fulfilment:
    return move_now(reference=buy_topup(merchant), move=Move.COMPLETE, operator=operator)


def execute(statement: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


def test_a_delivery_has_its_proof_and_an_audit_entry(merchant: Merchant) -> None:
    operator, reference = make_operator(), buy_topup(merchant)
    order = Fulfilment.objects.get(order_reference=reference)

    deliver(reference=reference, version=version_of(order), operator=operator, note="", proof=PROOF)

    order.refresh_from_db()
    (proof,) = proofs_of(order)
    assert (order.status, proof.transaction_number) == ("completed", "TX-1")
    assert (proof.added_by, proof.file.name) == (operator.user, "sent.png")
    assert (proof.file.content_type, proof.file.content()) == ("image/png", PNG)
    assert bytes(proof.file.sealed).find(PNG) == -1
    entry = AuditEntry.objects.get(action=AuditAction.PROOF_ADDED)
    assert (entry.actor, entry.object_id, entry.reference) == (
        operator.user,
        str(order.pk),
        reference,
    )
    assert entry.changes == {"transaction number": [None, "TX-1"], "file": [None, "image/png"]}


def test_a_delivery_that_is_sent_twice_has_one_proof(merchant: Merchant) -> None:
    operator, reference = make_operator(), buy_topup(merchant)
    order = Fulfilment.objects.get(order_reference=reference)
    again = partial(
        deliver, reference=reference, version=version_of(order), operator=operator, note=""
    )
    again(proof=PROOF)
    with pytest.raises(AlreadyDone):
        again(proof=PROOF)
    assert proofs_of(order).count() == 1


def test_an_order_is_not_delivered_without_the_proof_that_was_sent(merchant: Merchant) -> None:
    operator, reference = make_operator(), buy_topup(merchant)
    order = Fulfilment.objects.get(order_reference=reference)
    with pytest.raises(InputProblem):
        deliver(
            reference=reference,
            version=version_of(order),
            operator=operator,
            note="",
            proof=NewProof(file=("sent.png", b"no picture")),
        )
    order.refresh_from_db()
    assert order.status == "pending"


def test_a_wrong_proof_is_corrected_by_another(merchant: Merchant) -> None:
    operator = make_operator()
    order = delivered(merchant, operator)
    add_proof(fulfilment=order, operator=operator, proof=PROOF)
    add_proof(fulfilment=order, operator=operator, proof=NewProof(transaction_number="TX-2"))

    assert [proof.transaction_number for proof in proofs_of(order)] == ["TX-1", "TX-2"]
    assert AuditEntry.objects.filter(action=AuditAction.PROOF_ADDED).count() == 2


def test_the_same_form_adds_one_proof(merchant: Merchant) -> None:
    operator = make_operator()
    order = delivered(merchant, operator)
    first = add_proof(fulfilment=order, operator=operator, proof=PROOF)
    assert add_proof(fulfilment=order, operator=operator, proof=PROOF) == first
    assert (DeliveryProof.objects.count(), DeliveryFile.objects.count()) == (1, 1)
    assert AuditEntry.objects.filter(action=AuditAction.PROOF_ADDED).count() == 1


@pytest.mark.django_db(transaction=True)
def test_forms_sent_at_once_add_one_proof(merchant: Merchant) -> None:
    operator = make_operator()
    order = delivered(merchant, operator)
    again = partial(add_proof, fulfilment=order, operator=operator, proof=PROOF)

    made = race([again] * 4)

    assert len({proof.pk for proof in made}) == 1
    assert (proofs_of(order).count(), DeliveryFile.objects.count()) == (1, 1)


@pytest.mark.parametrize("moves", [[], [Move.CLAIM], [Move.CLAIM, Move.REVIEW], [Move.REJECT]])
def test_only_a_delivered_order_has_a_proof(merchant: Merchant, moves: list[Move]) -> None:
    operator, reference = make_operator(senior=True), buy_topup(merchant)
    for move in moves:
        move_now(reference=reference, move=move, operator=operator)
    order = Fulfilment.objects.get(order_reference=reference)

    with pytest.raises(InputProblem, match="Only a delivered order"):
        add_proof(fulfilment=order, operator=operator, proof=PROOF)
    with pytest.raises(DatabaseError, match="not delivered"):
        execute(
            "INSERT INTO topups_deliveryproof (fulfilment_id, token, transaction_number,"
            f" added_by_id) VALUES ({order.pk}, gen_random_uuid(), 'x', {operator.user.pk})"
        )


def test_people_who_may_not_work_on_orders_add_no_proof(merchant: Merchant) -> None:
    operator = make_operator()
    order = delivered(merchant, operator)
    operator.user.user_permissions.clear()
    left = Operator(
        user=type(operator.user).objects.get(pk=operator.user.pk), channel=Channel.ADMIN
    )
    with pytest.raises(MoveRefused):
        add_proof(fulfilment=order, operator=left, proof=PROOF)


ODD: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "Enter a transaction number"),
    "white space": ({"transaction_number": " \t "}, "Enter a transaction number"),
    "a long number": ({"transaction_number": "1" * 101}, "longer than 100"),
    "a number with NUL": ({"transaction_number": "a\x00b"}, "cannot be printed"),
    "two lines": ({"transaction_number": "a\nb"}, "cannot be printed"),
    "an empty file": ({"file": ("a.png", b"")}, "not a PNG"),
    "a script": ({"file": ("a.html", b"<script>")}, "not a PNG"),
    "a script with another name": ({"file": ("a.png", b"<script>")}, "not a PNG"),
    "a picture with another name": ({"file": ("a.pdf", PNG)}, "not a PNG"),
    "a file without a name": ({"file": ("", PNG)}, "is empty"),
    "a name in two lines": ({"file": ("a\n.png", PNG)}, "cannot be printed"),
    "a large file": ({"file": ("a.png", PNG + bytes(MAX_BYTES))}, "larger than"),
}


@pytest.mark.parametrize("odd", ODD)
def test_odd_input_adds_nothing(merchant: Merchant, odd: str) -> None:
    operator = make_operator()
    order = delivered(merchant, operator)
    values, problem = ODD[odd]
    with pytest.raises(InputProblem, match=problem):
        add_proof(fulfilment=order, operator=operator, proof=NewProof(**values))
    assert not DeliveryProof.objects.exists()
    assert not AuditEntry.objects.filter(action=AuditAction.PROOF_ADDED).exists()


def test_an_order_and_an_account_have_a_limit(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = make_operator()
    first, second = delivered(merchant, operator), delivered(merchant, operator)
    monkeypatch.setattr(proofs, "MAX_STORED", len(PNG))
    add_proof(fulfilment=first, operator=operator, proof=PROOF)
    with pytest.raises(InputProblem, match="of this account"):
        add_proof(fulfilment=second, operator=operator, proof=NewProof(file=("a.png", PNG)))
    other = delivered(make_merchant(), operator)
    add_proof(fulfilment=other, operator=operator, proof=NewProof(file=("a.png", PNG)))

    monkeypatch.setattr(proofs, "MAX_PROOFS", 1)
    with pytest.raises(InputProblem, match="at most 1"):
        add_proof(fulfilment=first, operator=operator, proof=NewProof(transaction_number="2"))


def test_a_proof_goes_with_its_file_unless_it_has_a_number(merchant: Merchant) -> None:
    operator = make_operator()
    order = delivered(merchant, operator)
    add_proof(fulfilment=order, operator=operator, proof=PROOF)
    add_proof(fulfilment=order, operator=operator, proof=NewProof(file=("a.png", PNG)))
    assert proofs_of(order).count() == 2

    DeliveryFile.objects.all().delete()

    assert [proof.transaction_number for proof in proofs_of(order)] == ["TX-1"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE topups_deliveryproof SET transaction_number = 'x'",
        "DELETE FROM topups_deliveryproof",
        "UPDATE topups_deliveryfile SET name = 'x'",
        "UPDATE topups_deliveryfile SET size = 1",
        "UPDATE topups_deliveryfile SET content_type = 'text/html'",
        "UPDATE topups_deliveryfile SET token = gen_random_uuid()",
        "UPDATE topups_deliveryfile SET proof_id = proof_id + 1",
    ],
)
def test_the_database_keeps_proofs(merchant: Merchant, statement: str) -> None:
    operator = make_operator()
    add_proof(fulfilment=delivered(merchant, operator), operator=operator, proof=PROOF)
    with pytest.raises(DatabaseError, match="is kept"):
        execute(statement)


def test_the_list_of_proofs_does_not_read_the_files(
    merchant: Merchant, django_assert_num_queries: Any
) -> None:
    operator = make_operator()
    order = delivered(merchant, operator)
    add_proof(fulfilment=order, operator=operator, proof=PROOF)
    with django_assert_num_queries(1) as queries:
        assert [proof.file.name for proof in proofs_of(order)] == ["sent.png"]
    assert "sealed" not in queries[0]["sql"]
