"""Migration steps that install SQL files."""

from pathlib import Path

from django.db.migrations import RunSQL


def run_sql_file(path: Path) -> RunSQL:
    """A migration step that installs the present version of an SQL file.

    Such files can be run again; a migration that changes one does.
    """
    return RunSQL(path.read_text(), reverse_sql=RunSQL.noop)
