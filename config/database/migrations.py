"""Migration operations that install SQL files, each pinned by the SHA-256 of its text.

`sql/` holds the current version of every function and trigger. A migration contains the SHA-256 of
each file it installs and refuses a file with any other text, so a released migration always
installs the same SQL. To change a released file, follow docs/develop.md, "Change an SQL function".
"""

from hashlib import sha256
from pathlib import Path

from django.db.migrations import RunSQL


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
        found = digest_of(self.path)
        if found != self.digest:
            raise SQLFileChanged(
                f"{self.path} changed after its migration was written. Its SHA-256 is now {found}."
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
