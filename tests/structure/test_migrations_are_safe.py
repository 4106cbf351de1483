"""Migrations that are not released yet can run while the old version sells (docs/develop.md).

squawk reads the SQL of each migration, and django-migration-linter what would break the old code.
Released migrations are frozen: they install for ever what they installed at their release.
"""

import ast
import io
import json
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db.migrations.loader import MigrationLoader
from django_migration_linter import MigrationLinter

from core.database import functions
from embedded.environment import PROJECT
from tests.concurrency.racing import rows
from tests.factories import buy_topup, make_merchant, make_product
from tests.old_version import has_history, old_migrations, old_text

pytestmark = pytest.mark.history

Name = tuple[str, str]

# Rules that a migration may break, with the reason why it is safe all the same.
ACCEPTED: dict[Name, dict[str, str]] = {}

OURS = {one.label for one in apps.get_app_configs() if (PROJECT / one.name.split(".")[0]).is_dir()}
RELEASED = sorted(old_migrations()) if has_history() else []
ON_DISK = MigrationLoader(None).disk_migrations
NEW = sorted(name for name in ON_DISK if name[0] in OURS and name not in RELEASED)
TIMEOUT = re.compile(r"(RESET|SET LOCAL|SET) statement_timeout")
SCAN = re.compile(
    r'ALTER TABLE "?(\w+)"?\s+VALIDATE CONSTRAINT|CREATE (?:UNIQUE )?INDEX .*? ON "?(\w+)',
    re.DOTALL,
)
# The tables that each purchase writes, and those that it only reads, in its transaction.
BOTH_WRITE = {
    "idempotency_idempotencyrecord",
    "orders_clientcounter",
    "orders_order",
    "orders_spendinglimit",
    "wallets_ledgerentry",
    "wallets_wallet",
}
BOTH_READ = {"accounts_account", "catalogue_category", "catalogue_pricelistentry"}
WRITTEN = {
    "voucher": BOTH_WRITE | {"catalogue_shelf", "catalogue_vouchercode"},
    "top_up": BOTH_WRITE | {"topups_fulfilment", "topups_fulfilmentevent", "topups_topupproduct"},
}
READ = {
    "voucher": BOTH_READ | {"catalogue_product", "catalogue_referencelink", "catalogue_variation"},
    "top_up": BOTH_READ | {"topups_topupfield", "topups_topupfieldoption"},
}
WRITERS_WAIT = re.compile(
    r'REFERENCES "?(\w+)|ALTER TABLE "?(\w+)"? ADD CONSTRAINT [^;]*? FOREIGN KEY'
    r'|CREATE (?:OR REPLACE )?(?:CONSTRAINT )?TRIGGER [^;]*? ON "?(\w+)'
)
ALL_WAIT = re.compile(
    r'ALTER TABLE "?(\w+)"? (?!ADD CONSTRAINT [^;]*? FOREIGN KEY|VALIDATE)'
    r'|DROP TRIGGER [^;]*? ON "?(\w+)|LOCK TABLE "?(\w+)'
)
SQUAWK = str(Path(sys.executable).parent / "squawk")


def broken_rules(sql: str, *, atomic: bool = True) -> set[str]:
    """The names of squawk's rules that this SQL breaks."""
    options = ["--assume-in-transaction"] if atomic else []
    done = subprocess.run(
        [SQUAWK, "--reporter=json", f"--config={PROJECT / '.squawk.toml'}", *options],
        input=sql,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout or "[]")
    return {one["rule_name"] for one in found}


@cache
def sql_of(name: Name) -> str:
    printed = io.StringIO()
    call_command("sqlmigrate", *name, stdout=printed, no_color=True)
    return re.sub(r"^(BEGIN|COMMIT);$", "", printed.getvalue(), flags=re.MULTILINE)


def problems_in(sql: str, *, atomic: bool = True) -> set[str]:
    """The rules of squawk, and ours, that this SQL breaks.

    A statement that times out would end every attempt of the upgrade. A migration that locks two
    tables of a purchase can hold one and wait for the other, while a purchase does the reverse.
    """
    found = broken_rules(sql, atomic=atomic)
    if scans_that_time_out(sql, atomic=atomic):
        found.add("scan-that-times-out")
    if atomic and any(len(locked_tables(sql, purchase)) > 1 for purchase in WRITTEN):
        found.add("tables-of-a-purchase")
    return found


# A concurrent index refuses to be printed inside the transaction of a test.
@pytest.mark.django_db(transaction=True)
def test_no_migration_that_is_not_released_breaks_a_rule() -> None:
    problems = {}
    for name in NEW:
        accepted = ACCEPTED.get(name, {})
        linter = MigrationLinter(
            str(PROJECT),
            analyser_string="postgresql",
            no_cache=True,
            no_output=True,
            exclude_migration_tests=accepted,
        )
        linter.lint_migration(ON_DISK[name])
        found = problems_in(sql_of(name), atomic=ON_DISK[name].atomic) - accepted.keys()
        if linter.has_errors:
            found.add("django-migration-linter")
        if found:
            problems[f"manage.py sqlmigrate {' '.join(name)}"] = found

    assert problems == {}


def test_each_kind_of_problem_is_found() -> None:
    found = problems_in(
        "ALTER TABLE orders_order ADD COLUMN a int; ALTER TABLE wallets_wallet ADD COLUMN b int;\n"
        "CREATE INDEX quick ON orders_order (a);"
    )

    ours = {"scan-that-times-out", "tables-of-a-purchase"}
    assert found & ours == ours
    assert "require-concurrent-index-creation" in found


def scans_that_time_out(sql: str, *, atomic: bool = True) -> list[str]:
    """The statements that read a whole table while `statement_timeout` holds.

    A table that the migration creates is empty.
    """
    new = set(re.findall(r'^CREATE TABLE "?(\w+)', sql, re.MULTILINE))
    lifted, found = False, []
    for statement in re.split(r";\s*$", sql, flags=re.MULTILINE):
        if change := TIMEOUT.search(statement):
            lifted = change[1] == "SET" or (change[1] == "SET LOCAL" and atomic)
        table = SCAN.search(statement)
        if table and not lifted and (table[1] or table[2]) not in new:
            found.append(statement.strip())
    return found


@pytest.mark.parametrize(
    ("sql", "atomic"),
    [
        ('ALTER TABLE "orders_order" VALIDATE CONSTRAINT few;', True),
        ("ALTER TABLE orders_order\n VALIDATE CONSTRAINT few;", True),
        ('CREATE INDEX CONCURRENTLY "quick" ON "orders_order" ("id");', False),
        ("CREATE UNIQUE INDEX quick ON orders_order (id);", True),
        ("SET LOCAL statement_timeout = 0;\nALTER TABLE one VALIDATE CONSTRAINT few;", False),
        ("SET statement_timeout = 0;\nRESET statement_timeout;\nCREATE INDEX a ON b (c);", True),
    ],
)
def test_a_scan_that_times_out_is_found(sql: str, *, atomic: bool) -> None:
    assert len(scans_that_time_out(sql, atomic=atomic)) == 1


@pytest.mark.parametrize(
    ("sql", "atomic"),
    [
        ("SET LOCAL statement_timeout = 0;\nALTER TABLE one VALIDATE CONSTRAINT few;", True),
        ("SET statement_timeout = 0;\nCREATE INDEX CONCURRENTLY a ON b (c);", False),
        ('CREATE TABLE "b" ("c" bigint);\nCREATE INDEX "a" ON "b" ("c");', True),
    ],
)
def test_a_scan_without_a_timeout_is_accepted(sql: str, *, atomic: bool) -> None:
    assert not scans_that_time_out(sql, atomic=atomic)


def locked_tables(sql: str, purchase: str) -> set[str]:
    """The tables of this purchase for which it may have to wait until the migration ends."""
    new = set(re.findall(r'^CREATE TABLE "?(\w+)', sql, re.MULTILINE))
    sql = " ".join(sql.split())

    def found(pattern: re.Pattern[str]) -> set[str]:
        return {table for match in pattern.findall(sql) for table in match}

    written, read = WRITTEN[purchase] - new, READ[purchase] - new
    return (found(WRITERS_WAIT) & written) | (found(ALL_WAIT) & (written | read))


@pytest.mark.parametrize(
    ("sql", "number"),
    [
        ('ALTER TABLE "orders_order" ADD COLUMN a int; ALTER TABLE wallets_wallet ADD b int;', 2),
        ("CREATE TRIGGER a BEFORE UPDATE\n ON orders_order; LOCK TABLE accounts_account;", 2),
        (
            'ALTER TABLE "new" ADD CONSTRAINT "a" FOREIGN KEY ("b") REFERENCES "wallets_wallet";'
            ' ALTER TABLE "new" ADD CONSTRAINT "c" FOREIGN KEY ("d") REFERENCES "catalogue_shelf";',
            2,
        ),
        (
            'ALTER TABLE "new" ADD CONSTRAINT "a" FOREIGN KEY ("b") REFERENCES "wallets_wallet";'
            ' ALTER TABLE "new" ADD CONSTRAINT "c" FOREIGN KEY ("d") REFERENCES "auth_user";',
            1,
        ),
        ("ALTER TABLE orders_order ADD COLUMN a int; ALTER TABLE audit_entry ADD b int;", 1),
        ("ALTER TABLE orders_order VALIDATE CONSTRAINT few; ALTER TABLE wallets_wallet ADD b;", 1),
    ],
)
def test_the_locks_of_a_migration_are_found(sql: str, number: int) -> None:
    assert len(locked_tables(sql, "voucher")) == number


@pytest.mark.django_db(transaction=True)
def test_the_tables_of_a_purchase_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    run, locked = functions._rows, dict[str, dict[str, set[str]]]()

    def run_and_list(database: Any, function: str, arguments: tuple[Any, ...]) -> Any:
        database.ensure_connection()
        database.connection.execute("BEGIN")
        found = run(database, function, arguments)
        for table, mode in rows(
            "SELECT relname, mode FROM pg_locks JOIN pg_class ON pg_class.oid = relation"
            " WHERE pid = pg_backend_pid() AND relkind = 'r'"
            " AND relnamespace = 'public'::regnamespace"
        ):
            locked.setdefault(function, {}).setdefault(table, set()).add(mode)
        database.connection.execute("COMMIT")
        return found

    merchant, product = make_merchant(), make_product(codes=1)
    monkeypatch.setattr(functions, "_rows", run_and_list)
    assert merchant.buy(product_id=product.pk, quantity=1).status_code == 201
    buy_topup(merchant)

    optional = {"orders_spendinglimit"}
    for purchase, function in (("voucher", "vouchers"), ("top_up", "topup")):
        tables = locked[f"orders_purchase_{function}"]
        written = {table for table, modes in tables.items() if "RowExclusiveLock" in modes}
        assert written == WRITTEN[purchase] - optional
        assert set(tables) - written == READ[purchase] - {"catalogue_pricelistentry"}


@pytest.mark.parametrize("name", RELEASED, ids=".".join)
def test_a_released_migration_is_frozen(name: Name) -> None:
    """Only the place of the SQL that it installs may change (docs/develop.md)."""
    path = Path(apps.get_app_config(name[0]).path) / "migrations" / f"{name[1]}.py"

    now, then = (
        ast.unparse(ast.parse(re.sub(r"released/\d{4}_", "", text)))  # in any layout
        for text in (path.read_text(), old_text(path))
    )
    assert now == then


@pytest.mark.parametrize(
    ("sql", "rule"),
    [
        ("ALTER TABLE orders_order DROP COLUMN units;", "ban-drop-column"),
        ("ALTER TABLE orders_order RENAME COLUMN units TO amount;", "renaming-column"),
        ("ALTER TABLE orders_order ADD COLUMN note text NOT NULL;", "adding-required-field"),
        ("CREATE INDEX slow ON orders_order (id);", "require-concurrent-index-creation"),
        (
            "ALTER TABLE orders_order ADD CONSTRAINT few CHECK (units < 9);",
            "constraint-missing-not-valid",
        ),
    ],
)
def test_squawk_knows_what_is_not_safe(sql: str, rule: str) -> None:
    assert rule in broken_rules(sql)


def test_squawk_accepts_what_develop_md_recommends() -> None:
    assert not broken_rules("ALTER TABLE orders_order ADD COLUMN note text NULL;")
    assert not broken_rules("CREATE INDEX CONCURRENTLY quick ON orders_order (id);", atomic=False)


def test_squawk_is_installed() -> None:
    assert shutil.which(SQUAWK)
