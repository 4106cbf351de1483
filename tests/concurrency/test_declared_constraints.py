"""The database enforces what the models declare: references, uniqueness, and counts of at least 0.

Each constraint is tried alone, by a statement that breaks it. Our triggers are off meanwhile: they
refuse most statements first.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.db.models import Model, Q, UniqueConstraint
from django.db.models.fields import PositiveIntegerRelDbTypeMixin

from accounts.models import BackupCode, SecondFactor
from embedded.environment import PROJECT
from tests.factories import (
    link,
    make_account,
    make_field,
    make_product,
    make_topup_product,
    own_shelf,
)
from tests.operators.back_office import World
from topups.models import TopUpProduct

pytestmark = pytest.mark.django_db

OURS = {each.label for each in apps.get_app_configs() if Path(each.path).parent == PROJECT}
MODELS = [model for model in apps.get_models() if model._meta.app_label in OURS]
# Tables that have no row here.
UNTRIED = {
    "catalogue_codehold",
    "operators_announcementchat",
    "operators_companyidentity",
    "operators_heartbeat",
    "operators_platformsettings",
    "operators_telegramlinkcode",
    "orders_countedsales",  # this and the next: tests/orders/test_sales.py
    "orders_dailysales",
    "orders_lostpurchase",
    "wallets_earlierentries",
    "wallets_rootleaf",
    "wallets_signedroot",
}


@pytest.fixture(autouse=True)
def world() -> None:
    World().grow(1)
    person = User.objects.create_user("anna")
    BackupCode.objects.create(factor=SecondFactor.objects.create(user=person), digest="digest")
    product = make_topup_product()
    make_field(product, "dropdown", options=["eu"])
    TopUpProduct.objects.filter(pk=product.pk).update(price=3)
    link(make_account(), "mine", own_shelf(make_product()))
    execute("SET CONSTRAINTS ALL IMMEDIATE")  # nothing waits for the end of the transaction


def columns_of(model: type[Model]) -> list[Any]:
    return list(model._meta.local_concrete_fields)


def execute(statement: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return int(cursor.rowcount)


def breaks(model: type[Model], statement: str, *before: str) -> str:
    """The name of the constraint that refuses the statement; empty if none does, or `no row`."""
    with transaction.atomic():
        execute(f"ALTER TABLE {model._meta.db_table} DISABLE TRIGGER USER")
        for each in before:
            execute(each)
        name = ""
        try:
            with transaction.atomic():
                name = "" if execute(statement) else "no row"
                execute("SET CONSTRAINTS ALL IMMEDIATE")
        except IntegrityError as refused:
            name = refused.__cause__.diag.constraint_name  # type: ignore[union-attr]
        transaction.set_rollback(True)
    return name


def first(table: str) -> str:
    return f"ctid = (SELECT min(ctid) FROM {table})"


def test_the_tables_that_are_not_tried_are_named() -> None:
    empty = {model._meta.db_table for model in MODELS if not model._default_manager.exists()}
    assert empty == UNTRIED


def test_no_count_is_negative() -> None:
    found = {}
    for model in MODELS:
        table = model._meta.db_table
        for field in columns_of(model):
            name = f"{table}.{field.column}"
            if isinstance(field, PositiveIntegerRelDbTypeMixin):
                found[name] = breaks(model, f"UPDATE {name.replace('.', ' SET ')} = -1")
    assert {name for name, refused in found.items() if not refused} == set()


def test_every_reference_leads_to_a_row() -> None:
    found = {}
    for model in MODELS:
        for field in columns_of(model):
            if field.remote_field and getattr(field, "db_constraint", False):
                value = "'none'" if "char" in str(field.db_type(connection)) else "-5"
                table = model._meta.db_table
                statement = f"UPDATE {table} SET {field.column} = {value} WHERE {first(table)}"
                found[f"{table}.{field.column}"] = breaks(model, statement, drop_other_rules(table))
    assert {name for name, refused in found.items() if not refused} == set()


def uniques() -> Iterator[tuple[type[Model], list[str], Q]]:
    """Each model with the names of fields that are unique together, and in which rows."""
    for model in MODELS:
        for field in columns_of(model):
            if field.unique and not field.primary_key:
                yield model, [field.name], Q()
        for constraint in model._meta.constraints:
            if not isinstance(constraint, UniqueConstraint) or not constraint.fields:
                continue
            if model._meta.pk.name not in constraint.fields:
                yield model, list(constraint.fields), constraint.condition or Q()


def test_what_is_unique_is_there_once() -> None:
    found = {}
    for model, names, condition in uniques():
        table = model._meta.db_table
        known = Q(**{f"{name}__isnull": False for name in names})
        row = model._default_manager.filter(condition, known).first()
        label = f"{table}: {', '.join(names)}"
        if row is None:
            found[label] = "no row"
            continue
        wanted = [field.column for field in columns_of(model) if field.name in names]
        key: str = model._meta.pk.attname
        others: list[str] = [each.column for each in columns_of(model) if not each.primary_key]
        new = "'none'" if "char" in str(model._meta.pk.db_type(connection)) else "-5"
        copy = (
            f"INSERT INTO {table} ({', '.join([key, *others])})"
            f" SELECT {', '.join([new, *others])} FROM {table} WHERE {key} = '{row.pk}'"
        )
        found[label] = breaks(model, copy, drop_other_uniques(table, wanted))
    wrong = {label for label, refused in found.items() if not refused or "_fk_" in refused}
    assert wrong == set()


def drop_other_uniques(table: str, columns: list[str]) -> str:
    """Drops what is unique in a table, except its key and these columns."""
    return f"""
        DO $$ DECLARE other record; BEGIN
            FOR other IN
                SELECT i.indexrelid::regclass AS name, c.conname FROM pg_index i
                  LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid AND c.contype = 'u'
                 WHERE i.indrelid = '{table}'::regclass AND i.indisunique AND NOT i.indisprimary
                   AND ARRAY(SELECT a.attname::text FROM pg_attribute a
                              WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
                              ORDER BY 1)
                       <> ARRAY(SELECT unnest(ARRAY{columns!r}) ORDER BY 1)
            LOOP
                IF other.conname IS NULL THEN
                    EXECUTE format('DROP INDEX %s', other.name);
                ELSE
                    EXECUTE format('ALTER TABLE {table} DROP CONSTRAINT %I CASCADE', other.conname);
                END IF;
            END LOOP;
        END $$"""


def drop_other_rules(table: str) -> str:
    """Drops every rule of a table but its key and its references."""
    return f"""
        DO $$ DECLARE other record; BEGIN
            FOR other IN SELECT conname FROM pg_constraint
                          WHERE conrelid = '{table}'::regclass AND contype IN ('c', 'u') LOOP
                EXECUTE format('ALTER TABLE {table} DROP CONSTRAINT %I CASCADE', other.conname);
            END LOOP;
            FOR other IN SELECT indexrelid::regclass AS name FROM pg_index
                          WHERE indrelid = '{table}'::regclass AND indisunique
                            AND NOT indisprimary LOOP
                EXECUTE format('DROP INDEX %s', other.name);
            END LOOP;
        END $$"""
