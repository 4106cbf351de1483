"""The id of a field never means another field, and a product has at most 30 fields.

The database holds both, for every way in which a field is added.
"""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from tests.concurrency.racing import holding_locks, in_background, wait_for_waiting
from tests.factories import make_field, make_topup_product
from topups.models import FieldId, TopUpField, TopUpProduct


def execute(statement: str, *arguments: Any) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, arguments)


INSERT = (
    "INSERT INTO topups_topupfield (product_id, number, name, label, type, required, position)"
    " SELECT %s, n, 'field' || n, 'Field', 'text', true, n FROM generate_series(1, %s) AS n"
)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "remove", [lambda field: field.delete(), lambda field: TopUpField.objects.all().delete()]
)
def test_the_id_of_a_removed_field_is_not_given_to_another(
    remove: Callable[[TopUpField], object],
) -> None:
    product = make_topup_product()
    remove(make_field(product, number=1, name="server"))

    with (
        pytest.raises(DatabaseError, match='is the id of the field "server"'),
        transaction.atomic(),
    ):
        make_field(product, number=1, name="zone")

    make_field(product, number=1, name="server")
    make_field(make_topup_product(), number=1, name="zone")  # ids are of one product


@pytest.mark.django_db
@pytest.mark.parametrize("change", ["number = 2", "name = 'zone'", "product_id = product_id + 1"])
def test_a_field_keeps_its_id_and_name(change: str) -> None:
    field = make_field(make_topup_product(), number=1, name="server")
    make_topup_product(pk=field.product_id + 1)

    with pytest.raises(DatabaseError, match="never means another field"):
        execute(f"UPDATE topups_topupfield SET {change}")

    execute("UPDATE topups_topupfield SET label = 'Another', type = 'number', required = false")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "statement",
    ["UPDATE {} SET name = 'x'", "UPDATE {} SET number = 9", "DELETE FROM {}", "TRUNCATE {}"],
)
def test_used_ids_are_append_only(statement: str) -> None:
    make_field(make_topup_product())

    with pytest.raises(DatabaseError, match="never means another field"):
        execute(statement.format("topups_fieldid"))


@pytest.mark.django_db(transaction=True)
def test_a_product_can_be_deleted_with_its_fields() -> None:
    product = make_topup_product()
    make_field(product, "dropdown", options=["eu"])

    product.delete()

    assert not FieldId.objects.exists()


@pytest.mark.django_db
def test_a_product_has_at_most_thirty_fields() -> None:
    product, neighbour = make_topup_product(), make_topup_product()
    execute(INSERT, neighbour.pk, 30)

    with pytest.raises(DatabaseError, match="already has 30 fields"):
        execute(INSERT, product.pk, 31)
    execute(INSERT, product.pk, 30)
    with pytest.raises(DatabaseError, match="already has 30 fields"), transaction.atomic():
        make_field(product, number=1000)

    TopUpField.objects.filter(product=product, number=1).delete()
    make_field(product, number=1000)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "control"])
def test_two_new_fields_cannot_both_be_the_thirtieth(guarded: bool) -> None:
    if not guarded:
        definition = rows("SELECT pg_get_functiondef('topups_keep_field_id'::regproc)")
        unlocked = definition.replace("FOR NO KEY UPDATE", "")
        assert unlocked != definition
        execute(unlocked.replace("%", "%%"))
    product = make_topup_product()
    execute(INSERT, product.pk, 29)

    def add() -> bool:
        try:
            make_field(TopUpProduct.objects.get(pk=product.pk), number=1000)
        except DatabaseError:
            return False
        return True

    try:
        last = INSERT.replace("generate_series(1, %s)", "generate_series(30, %s)")
        with holding_locks(last, product.pk, 30) as other, in_background(add) as adding:
            if guarded:
                wait_for_waiting()
            else:
                adding.result()
            other.commit()
        assert adding.result() is not guarded
        assert product.fields.count() == (30 if guarded else 31)
    finally:
        if not guarded:
            execute(definition.replace("%", "%%"))


def rows(statement: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        found: str = cursor.fetchone()[0]
    return found
