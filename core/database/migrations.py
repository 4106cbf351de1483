"""Migration operations: SQL files pinned by the SHA-256 of their text, concurrent indexes, and the
validation of constraints.

`sql/` holds the current version of every function and trigger. A migration contains the SHA-256 of
each file it installs and refuses a file with any other text, so a released migration always
installs the same SQL. To change a released file, follow docs/develop.md, "Change an SQL function".
"""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from django.contrib.postgres import operations
from django.db import NotSupportedError
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import RunSQL
from django.db.migrations.state import ProjectState


class SQLFileChanged(Exception):
    """The text of an SQL file differs from the text that its migration was released with."""


class InstallSQL(RunSQL):
    """Runs one SQL file that has this SHA-256 (hexadecimal). Migrating backwards changes nothing.

    Functions and triggers are written with CREATE OR REPLACE, so that a later migration can install
    a new version. A file with ALTER TABLE ... ADD or CREATE SEQUENCE runs only once.
    """

    def __init__(self, path: Path, digest: str) -> None:
        super().__init__(path.read_text(), reverse_sql=RunSQL.noop)
        self.path = path
        self.digest = digest

    def check(self) -> None:
        """Raises SQLFileChanged when the file does not have the pinned SHA-256."""
        digest = digest_of(self.path)
        if digest != self.digest:
            raise SQLFileChanged(
                f"{self.path} changed after its migration was written. Its SHA-256 is now {digest}."
                ' See docs/develop.md, "Change an SQL function".'
            )

    def database_forwards(self, *arguments: object) -> None:
        self.check()
        super().database_forwards(*arguments)  # type: ignore[arg-type]


def install_sql(folder: Path, files: dict[str, str]) -> list[InstallSQL]:
    """The operations that install these files of `folder` in this order.

    `files` maps each file name to the SHA-256 of its text, in hexadecimal.
    """
    return [InstallSQL(folder / name, digest) for name, digest in files.items()]


def digest_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    return sha256(path.read_bytes()).hexdigest()


class AddIndexConcurrently(operations.AddIndexConcurrently):
    """Builds an index while purchases go on. Needs a migration with `atomic = False`.

    Use it instead of Django's operation of the same name, which two timeouts of the service would
    cancel. PostgreSQL keeps the remains of a cancelled build as an invalid index, which slows down
    every write and stops the next run. This operation removes it and builds the index again.
    """

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        _refuse_transaction(schema_editor)
        with _without_timeouts(schema_editor):
            if not _is_built(schema_editor, self.index.name):
                super().database_forwards(app_label, schema_editor, from_state, to_state)


class RemoveIndexConcurrently(operations.RemoveIndexConcurrently):
    """Drops an index while purchases go on. Needs a migration with `atomic = False`.

    Django's operation of the same name would be cancelled by the service's timeouts: the drop waits
    for every transaction that may use the index.
    """

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        _refuse_transaction(schema_editor)
        with _without_timeouts(schema_editor):
            if schema_editor.collect_sql or _index_is_valid(schema_editor, self.name) is not None:
                super().database_forwards(app_label, schema_editor, from_state, to_state)


class ValidateConstraint(operations.ValidateConstraint):
    """Checks the rows that were there before the constraint, while purchases go on.

    Use it in a migration of its own. Otherwise a later operation that does not get its lock rolls
    the check back, and `migrate` repeats it.
    Django's operation of the same name would be cancelled on a large table by `statement_timeout`.
    """

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        schema_editor.execute("SET LOCAL statement_timeout = 0")  # until the migration is committed
        super().database_forwards(app_label, schema_editor, from_state, to_state)


def _refuse_transaction(editor: BaseDatabaseSchemaEditor) -> None:
    """Django refuses, too, but only after the remains of an earlier run were to be removed."""
    if editor.connection.in_atomic_block:
        raise NotSupportedError("This operation needs atomic = False on its migration.")


@contextmanager
def _without_timeouts(editor: BaseDatabaseSchemaEditor) -> Iterator[None]:
    """A build takes minutes, and waits for every transaction that is older than it."""
    timeouts = ("statement_timeout", "lock_timeout")
    for name in timeouts:
        editor.execute(f"SET {name} = 0")
    try:
        yield
    finally:
        for name in timeouts:
            editor.execute(f"RESET {name}")  # to the value of the connection's options


def _is_built(editor: BaseDatabaseSchemaEditor, name: str) -> bool:
    """Whether an earlier run was interrupted between the build and its record. Removes what a
    cancelled build left."""
    valid = None if editor.collect_sql else _index_is_valid(editor, name)
    if valid is False:
        editor.execute(f"DROP INDEX CONCURRENTLY {editor.quote_name(name)}")
    return bool(valid)


def _index_is_valid(editor: BaseDatabaseSchemaEditor, name: str) -> bool | None:
    """None when there is no index of this name."""
    with editor.connection.cursor() as cursor:
        cursor.execute(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(quote_ident(%s))",
            [name],
        )
        row = cursor.fetchone()
    return bool(row[0]) if row else None
