"""A migration installs the SQL it was released with, for ever (docs/develop.md)."""

from pathlib import Path

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from core.database.migrations import InstallSQL, SQLFileChanged, digest_of
from embedded.environment import PROJECT

# The steps of all migrations that install a file. Django loads the migrations of an app in any
# order, and all processes of a test run must name the same tests.
STEPS = [
    step
    for _, migration in sorted(MigrationLoader(None).disk_migrations.items())
    for step in migration.operations
    if isinstance(step, InstallSQL)
]


def test_each_migration_installs_the_text_it_was_written_with() -> None:
    assert STEPS
    assert [name for step in STEPS if (name := changed_file(step))] == []


def changed_file(step: InstallSQL) -> str | None:
    try:
        step.check()
    except SQLFileChanged as error:
        return str(error)
    return None


def test_every_sql_file_is_installed_by_a_migration() -> None:
    files = [*PROJECT.glob("*/sql/**/*.sql"), *PROJECT.glob("operators/*/sql/**/*.sql")]
    assert set(files) == {step.path for step in STEPS}


def test_a_changed_file_is_refused_and_installs_nothing(tmp_path: Path, db: None) -> None:
    file = tmp_path / "function.sql"
    file.write_text("CREATE TABLE released (); -- as released")
    step = InstallSQL(file, digest_of(file))
    file.write_text("CREATE TABLE changed ();")

    with (
        connection.schema_editor() as editor,
        pytest.raises(SQLFileChanged, match=r"docs/develop.md"),
    ):
        step.database_forwards("catalogue", editor, None, None)

    assert not {"released", "changed"} & set(connection.introspection.table_names())
