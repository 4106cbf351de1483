"""Two complete installations on one database server, each with its own encryption keys.

The test's own database is cell `a`; cell `b` has another one.
"""

import base64
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from django.conf import settings
from django.test import override_settings

from embedded.environment import PROJECT
from tests.commands import run
from tests.database import another_database, backup_of, django_uses
from tests.live import as_service, owner_url
from tests.quick_starts import QuickProcess, run_quickly

TRANSFER_KEY = bytes(range(64))
PRODUCT, VARIATION, TOPUP = 9001, 9001, 9101
CATALOGUE = """
{"categories": [{"id": 9001, "name": "Cards"}],
 "products": [{"id": 9001, "name": "Card", "type": "voucher", "category": 9001, "currency": "USD",
               "price": "1.00",
               "variations": [{"id": 9001, "name": "Large", "price": "2.00"}]}],
 "topup_products": [{"id": 9101, "name": "Gems", "currency": "USD", "price": "3.00"}]}
"""


@dataclass
class Cell:
    """One installation: its name, its database as the owner, and its encryption keys."""

    name: str
    url: str
    keys: list[str]
    folder: Path

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Django works in this cell, as a process of it would."""
        names = {"CELL": self.name, "CELL_TRANSFER_KEY": TRANSFER_KEY}
        with override_settings(CODE_ENCRYPTION_KEYS=self.keys, **names), django_uses(self.url):
            yield

    def run(self, *words: object) -> dict[str, Any]:
        """Runs a command here, in this process. Returns what it printed."""
        with self.entered():
            return run(*words)

    @property
    def environment(self) -> Mapping[str, str]:
        """For processes of this cell: they have the service's role."""
        return {
            **os.environ,
            "DATABASE_URL": as_service(self.url),
            "CODE_ENCRYPTION_KEYS": ",".join(self.keys),
            "CELL": self.name,
            "CELL_TRANSFER_KEY": base64.urlsafe_b64encode(TRANSFER_KEY).decode(),
        }

    def run_apart(self, *words: object) -> CompletedProcess[str]:
        """Runs a command in a process of its own, as the service's role."""
        command = [str(PROJECT / "manage.py"), *map(str, words)]
        return run_quickly(command, environment=self.environment)

    def start(self, *words: object) -> QuickProcess:
        """Starts a command that the test kills."""
        return QuickProcess(
            "command",
            [sys.executable, str(PROJECT / "manage.py"), *map(str, words)],
            environment=self.environment,
            folder=PROJECT,
            log=self.folder / f"{self.name}.log",
        )

    def fill(self, codes: Sequence[str] = (), large: Sequence[str] = ()) -> None:
        """Adds the products that both cells sell, and codes for PRODUCT and its variation."""
        file = self.folder / "import"
        with self.entered():
            file.write_text(CATALOGUE)
            run("import_catalogue", file)
            for given, options in ((codes, ()), (large, ("--variation", VARIATION))):
                if given:
                    file.write_text("\n".join(["code", *given]))
                    run("import_codes", PRODUCT, file, *options)


@contextmanager
def backup(cell: Cell) -> Iterator[Cell]:
    """The cell as it is now: what a later restore to this moment gives."""
    with backup_of(cell.url, f"restored_{cell.name}_{os.getpid()}") as url:
        yield Cell(cell.name, url, cell.keys, cell.folder)


@contextmanager
def two_cells(folder: Path) -> Iterator[tuple[Cell, Cell]]:
    """Cell `a`, which is the test's database, and cell `b`, which has a database of its own."""
    key = base64.urlsafe_b64encode(b"b" * 32).decode()
    with ExitStack() as stack:
        here = owner_url()
        stack.enter_context(another_database(f"cell_b_{os.getpid()}"))
        there = owner_url()
        with django_uses(here):
            yield (
                Cell("a", here, list(settings.CODE_ENCRYPTION_KEYS), folder),
                Cell("b", there, [f"2:{key}"], folder),
            )
