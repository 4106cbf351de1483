"""The lists of mutants and the code agree; the rules find the guards they promise to find."""

import functools
import importlib.util
import os
import subprocess
import sys
from fnmatch import filter as filter_names
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from labs.mutants.constraints import PACKAGES
from labs.mutants.lists import equivalents, listed_mutants, unguarded
from labs.mutants.mutant import PROJECT, Mutant, Stale
from labs.mutants.python_code import apply_python, tell_processes
from labs.mutants.selection import Selection
from labs.mutants.sql_rules import sql_mutants
from merchants.models import Role
from tests.answers import CheckedClient
from tests.factories import make_account, make_merchant, make_product
from tests.merchants.people import browser_of, make_member


@pytest.mark.django_db
def test_the_service_works(client: CheckedClient) -> None:
    """`make mutants` runs this test first. Its forks copy the database that it set up, and start
    with what the service loads at its first purchase and its first pages."""
    merchant, product = make_merchant(), make_product(codes=1)
    assert merchant.buy(product_id=product.pk, quantity=1).status_code == 201
    assert merchant.get("/products").status_code == 200
    assert browser_of(make_member(make_account(), Role.OWNER)).get("/merchant/").status_code == 200
    client.force_login(User.objects.create_superuser("staff"))
    assert client.get("/admin/").status_code in (200, 302)


def test_no_list_is_stale() -> None:
    mutants = [*sql_mutants(), *listed_mutants()]
    names = {mutant.name for mutant in mutants}
    assert len(names) == len(mutants)
    assert {name for name in equivalents() if "/schema: " not in name} <= names
    for mutant in mutants:
        assert mutant.text != mutant.before, mutant.name
        if mutant.is_python:
            compile(mutant.text, mutant.file, "exec")


def test_every_mutant_has_tests() -> None:
    selection = Selection()
    for mutant in [*sql_mutants(), *listed_mutants()]:
        assert selection.names(mutant)
    missing = [test for test in selection.tests if not (PROJECT / test).exists()]
    assert not missing


def test_every_file_has_a_mutant_or_a_reason() -> None:
    files = {
        str(path.relative_to(PROJECT))
        for package in (*PACKAGES.split(), "config")
        for path in (PROJECT / package).rglob("*")
        if path.suffix in (".py", ".sql") and path.parent.name != "migrations"
    }
    left = files - {mutant.file for mutant in [*sql_mutants(), *listed_mutants()]}
    named = {path: set(filter_names(left, path)) for path in unguarded()}

    assert left - set().union(*named.values()) == set(), "these need a mutant or a reason"
    assert [path for path, matches in named.items() if not matches] == [], "these have a mutant"


SQL = """
CREATE FUNCTION f(p_id bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    -- AND not this
    PERFORM 1 FROM shelf s JOIN item i ON i.id = s.item
      WHERE s.id = p_id AND (s.a IS NULL OR s.stock BETWEEN 1 AND 9) FOR UPDATE;
    IF p_id > 5 THEN
        RAISE EXCEPTION 'no AND, no WHERE';
    END IF;
END $$;

CREATE TRIGGER t
    BEFORE INSERT OR UPDATE OF a, b ON shop_shelf
    FOR EACH ROW WHEN ((OLD.a, OLD.b) IS DISTINCT FROM (NEW.a, NEW.b)) EXECUTE FUNCTION g();
"""
CHANGES = {
    "f: skip PERFORM 1 FROM shelf s JOIN item i ON i.id = s.item"
    " WHERE s.id = p_id AND (s.a IS NULL OR": "NULL;",
    "f: drop i.id = s.item": "ON true\n",
    "f: drop s.id = p_id": "WHERE (s.a IS",
    "f: drop (s.a IS NULL OR s.stock BETWEEN 1 AND 9)": "s.id = p_id FOR UPDATE",
    "f: drop s.a IS NULL": "(s.stock BETWEEN 1 AND 9)",
    "f: drop s.stock BETWEEN 1 AND 9": "(s.a IS NULL)",
    "f: unlocked FOR UPDATE": "9);",
    "f: never p_id > 5": "IF false THEN",
    "f: edge IF p_id > 5 THEN": "IF p_id >= 5 THEN",
    "t: trigger on shop_shelf": "DROP TRIGGER IF EXISTS t ON shop_shelf;",
    "t: event INSERT": "BEFORE UPDATE OF a, b ON",
    "t: event UPDATE OF a, b": "BEFORE INSERT ON",
    "t: event UPDATE OF a": "BEFORE INSERT OR UPDATE OF b ON",
    "t: event UPDATE OF b": "BEFORE INSERT OR UPDATE OF a ON",
    "t: column OLD.a": "(OLD.b) IS DISTINCT FROM (NEW.b)",
    "t: column OLD.b": "(OLD.a) IS DISTINCT FROM (NEW.a)",
}


def test_the_rules_find_every_guard_of_an_sql_file(tmp_path: Path) -> None:
    (tmp_path / "shop" / "sql").mkdir(parents=True)
    (tmp_path / "shop" / "sql" / "f.sql").write_text(SQL)
    made = {mutant.name.partition(": ")[2]: mutant.text for mutant in sql_mutants(tmp_path)}
    assert set(made) == set(CHANGES)
    for name, text in CHANGES.items():
        assert text in made[name], name


BEFORE = """
from dataclasses import dataclass
from functools import wraps

def kept(function):
    @wraps(function)
    def call(*arguments):
        return function(*arguments)
    return call

@kept
def allowed(age):
    return [n for n in [age] if n >= 18] != []

@dataclass(frozen=True)
class Check:
    sql: str

CHECK = Check("SELECT 1 WHERE true")
LIMIT = 5
"""


@pytest.fixture
def module(tmp_path: Path) -> Any:
    path = tmp_path / "shop.py"
    path.write_text(BEFORE)
    spec = importlib.util.spec_from_file_location("shop", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def mutate(module: Any, old: str, new: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "environ", {**os.environ})
        apply_python(Mutant("m", module.__file__, BEFORE.replace(old, new)))


def test_functions_and_texts_are_replaced_where_they_are_kept(module: Any) -> None:
    allowed, check = functools.partial(module.allowed), module.CHECK
    assert (allowed(17), allowed(18)) == (False, True)
    mutate(module, ">= 18", "\n    >= 17")
    assert (allowed(16), allowed(17)) == (False, True)
    mutate(module, "WHERE true", "WHERE false")
    assert check.sql == "SELECT 1 WHERE false"


def test_processes_that_start_later_import_the_mutant(module: Any) -> None:
    path = Path(module.__file__)
    mutant = Mutant("m", module.__file__, BEFORE.replace("LIMIT = 5", "LIMIT = 6"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "environ", {**os.environ})
        tell_processes(str(path), mutant.text)
        command = [sys.executable, "-c", "import shop; print(shop.LIMIT)"]
        told = subprocess.check_output(command, cwd=path.parent, env=os.environ)
    assert told == b"6\n"


def test_what_cannot_be_replaced_is_stale(module: Any) -> None:
    with pytest.raises(Stale, match="only while it is imported"):
        mutate(module, "LIMIT = 5", "LIMIT = 6")
    with pytest.raises(Stale, match="adds or removes a function"):
        mutate(module, "LIMIT = 5", "LIMIT = (lambda: 6)()")
