"""`migrate` grants the service's role what the apps declare, and `reconcile` compares both."""

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from core.backoffice.registry import declared_rights
from core.database.rights import ALL_ON_TABLES, grant_rights, parameters
from embedded.environment import SERVICE
from operators.upkeep.reconcile import RIGHTS_EXCEEDED, RIGHTS_HELD, reconcile
from tests.concurrency.racing import execute, rows

TABLES = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = %s"
HELD = (
    "SELECT privilege FROM unnest(%s::text[]) AS privilege"
    " WHERE has_table_privilege(%s, %s, privilege)"
)


def findings() -> list[str]:
    """What `reconcile` says of rights."""
    with connection.cursor() as cursor:
        found = []
        for check in (RIGHTS_HELD, RIGHTS_EXCEEDED):
            cursor.execute(check.sql, parameters(declared_rights()))
            found += [finding for (finding,) in cursor]
    return found


@pytest.mark.django_db
def test_each_table_has_declared_rights_and_no_others_are_granted() -> None:
    tables = {name for (name,) in rows(TABLES, "r")}
    sequences = {name for (name,) in rows(TABLES, "S")}
    held = {
        name: {right for (right,) in rows(HELD, list(ALL_ON_TABLES), SERVICE, name)}
        for name in tables
    }

    assert set(declared_rights()) - sequences == tables
    assert held == {name: set(declared_rights()[name].split(", ")) for name in tables}


@pytest.mark.django_db(transaction=True)
def test_a_service_that_runs_as_a_superuser_is_a_warning() -> None:
    assert reconcile()["warnings"] == [
        {
            "check": RIGHTS_EXCEEDED.name,
            "finding": "the service runs as postgres, who is a superuser:"
            " give it a role of its own",
        }
    ]


@pytest.mark.django_db
def test_a_service_that_runs_as_the_owner_is_a_warning() -> None:
    execute("CREATE ROLE owner_of_the_past")
    execute("ALTER TABLE orders_order OWNER TO owner_of_the_past")
    execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO owner_of_the_past")
    execute("SET ROLE owner_of_the_past")

    assert (
        "the service runs as owner_of_the_past, who owns its tables: give it a role of its own"
        in findings()
    )


@pytest.mark.django_db
def test_reconcile_reports_rights_that_differ() -> None:
    execute(f"SET ROLE {SERVICE}")
    assert findings() == []

    execute("RESET ROLE")
    execute(f"GRANT UPDATE ON wallets_ledgerentry TO {SERVICE}")
    execute("GRANT TRUNCATE ON orders_order TO PUBLIC")
    execute(f"REVOKE INSERT ON orders_order FROM {SERVICE}")
    execute(f"GRANT pg_write_server_files TO {SERVICE}")
    execute(f"ALTER ROLE {SERVICE} CREATEROLE")
    execute("GRANT CREATE ON SCHEMA public TO PUBLIC")
    execute(f"SET ROLE {SERVICE}")

    assert sorted(findings()) == [
        f"{SERVICE} lacks INSERT on orders_order: run `migrate` with MIGRATION_DATABASE_URL",
        f"{SERVICE} may TRUNCATE on orders_order",
        f"{SERVICE} may UPDATE on wallets_ledgerentry",
        f"{SERVICE} may act as pg_write_server_files",
        f"{SERVICE} may create objects in schema public",
        f"{SERVICE} may create roles",
    ]


@pytest.mark.django_db(transaction=True)
def test_an_earlier_version_leaves_the_rights_of_a_newer_one() -> None:
    """Processes of the newer version may still run on other hosts."""
    later, held = ("wallets", "9999_later"), "has_table_privilege(%s, 'django_admin_log', 'DELETE')"
    execute(f"GRANT DELETE ON django_admin_log TO {SERVICE}")
    MigrationRecorder(connection).record_applied(*later)
    try:
        call_command("migrate", verbosity=0)
        assert rows(f"SELECT {held}", SERVICE) == [(True,)]
    finally:
        MigrationRecorder(connection).record_unapplied(*later)
        call_command("migrate", verbosity=0)
    assert rows(f"SELECT {held}", SERVICE) == [(False,)]


@pytest.mark.django_db
def test_reconcile_reports_what_the_role_did_to_itself() -> None:
    execute("SELECT lo_creat(-1)")
    execute(f"SET ROLE {SERVICE}")
    execute(f"ALTER ROLE {SERVICE} SET statement_timeout = '20s'")
    execute(f"ALTER ROLE {SERVICE} SET search_path = nowhere")

    assert sorted(findings()) == [
        "the database has 1 large objects, and the service makes none",
        f"{SERVICE} has a setting of its own: search_path=nowhere",
    ]


@pytest.mark.django_db
def test_migrate_corrects_what_was_granted_by_hand() -> None:
    execute(f"GRANT UPDATE, TRUNCATE ON wallets_ledgerentry TO {SERVICE}")
    execute(f"REVOKE INSERT ON orders_order FROM {SERVICE}")
    with connection.cursor() as cursor:
        grant_rights(cursor, SERVICE, declared_rights())
    execute(f"SET ROLE {SERVICE}")

    assert findings() == []
