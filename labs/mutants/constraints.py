"""Mutants of the schema: the database without one check, unique index or declared foreign key.

The list comes from the database, so a new constraint is a new mutant. Foreign keys are left out,
apart from those that a file of `sql/` declares: Django makes one for each relation.
"""

from django.apps import apps
from django.db import connection

from labs.mutants.mutant import Mutant
from tests.database import connect

PACKAGES = (
    "accounts audit cases catalogue core figures idempotency merchants operators orders topups"
    " wallets"
)
GUARDS = """
SELECT conrelid::regclass::text, conname,
       format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname)
  FROM pg_constraint
 WHERE connamespace = 'public'::regnamespace AND conrelid <> 0
   AND (contype IN ('c', 'u', 'x') OR contype = 'f' AND conname !~ '_fk_[a-z]+_[a-z]+_id$')
UNION ALL
SELECT indrelid::regclass::text, indexrelid::regclass::text,
       format('DROP INDEX %s', indexrelid::regclass)
  FROM pg_index
 WHERE indisunique AND indrelid IN (SELECT oid FROM pg_class
                                     WHERE relnamespace = 'public'::regnamespace)
   AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
 ORDER BY 1, 2
"""


def constraint_mutants() -> list[Mutant]:
    """One mutant for each guard of the tables of our apps. Reads the test database."""
    with connect(str(connection.settings_dict["NAME"])) as database:
        rows = database.execute(GUARDS).fetchall()
    packages = _packages()
    return [
        Mutant(f"{package}/schema: {table}: no {name}", f"{package}/schema", statement)
        for table, name, statement in rows
        if (package := packages.get(table))
    ]


def _packages() -> dict[str, str]:
    """The package of each table that is ours; the wings of `operators` count as one."""
    tables = {
        model._meta.db_table: model.__module__.partition(".")[0]
        for model in apps.get_models(include_auto_created=True)
    }
    return {table: package for table, package in tables.items() if package in PACKAGES.split()}
