"""Migration steps that install SQL files, each pinned to the text it was released with.

`sql/` holds the present version of every function and trigger. A migration names the SHA-256 of the
text it installs and refuses any other, so a released migration installs the same SQL for ever. To
change a released file, follow docs/develop.md, "Change an SQL function".
"""

from hashlib import sha256
from pathlib import Path

from django.db.migrations import RunSQL


class SQLFileChanged(Exception):
    """A released migration would install other SQL than it was released with."""


class InstallSQL(RunSQL):
    """Runs one SQL file whose text has this SHA-256; going back leaves what it installed.

    The file can be run again: it replaces what it defines.
    """

    def __init__(self, path: Path, digest: str) -> None:
        super().__init__(path.read_text(), reverse_sql=RunSQL.noop)
        self.path = path
        self.digest = digest

    def check(self) -> None:
        """Raises SQLFileChanged where the file's text is not the one that was pinned."""
        found = digest_of(self.path)
        if found != self.digest:
            raise SQLFileChanged(
                f"{self.path} changed after its migration was written (now {found})."
                ' See docs/develop.md, "Change an SQL function".'
            )

    def database_forwards(self, *arguments: object) -> None:  # type: ignore[override]
        self.check()
        super().database_forwards(*arguments)  # type: ignore[arg-type]


def install_sql(folder: Path, files: dict[str, str]) -> list[InstallSQL]:
    """The steps that install these files of `folder` in this order; `files` maps each name to the
    SHA-256 of its text."""
    return [InstallSQL(folder / name, digest) for name, digest in files.items()]


def digest_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    return sha256(path.read_bytes()).hexdigest()
