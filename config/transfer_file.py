"""Files that carry codes or an account from one cell to another (docs/operate/cells.md).

The first line is a header in clear text: what the file holds, from which cell and to which.
Each further line is JSON, encrypted with CELL_TRANSFER_KEY (AES-SIV) and bound to the header and to
its place. A line that was changed, moved, added or taken from another file does not open. The last
line says that it is the last, so an incomplete file is noticed.

AES-SIV needs no random nonce: the same content gives the same file.
"""

import base64
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from django.conf import settings

from config.env import CELL_PATTERN
from config.inputs import InputProblem, clean_text
from config.version import VERSION

TRANSFER_REFERENCE_LENGTH = 64
END: dict[str, Any] = {"end": True}

Transfer = TypeVar("Transfer")


class FileKind(StrEnum):
    """What a file holds."""

    STOCK = "stock"
    ACCOUNT = "account"


@dataclass(frozen=True)
class Header:
    """The first line. `reference` names the transfer in both cells. The receiver of a `trial`
    checks the file and keeps nothing."""

    kind: str
    reference: str
    origin: str
    destination: str
    version: str
    trial: bool = False


@dataclass(frozen=True)
class Received(Generic[Transfer]):
    """What became of a file. `before`: an earlier run received it. A `trial` leaves nothing."""

    transfer: Transfer
    before: bool = False
    trial: bool = False


def new_header(kind: FileKind, *, reference: str, to: str, trial: bool = False) -> Header:
    """The header of a file from this cell. Raises InputProblem."""
    reference = clean_text(reference, what="reference", max_length=TRANSFER_REFERENCE_LENGTH)
    _require_settings()
    if not CELL_PATTERN.fullmatch(to) or to == settings.CELL:
        raise InputProblem("--to must be the name (CELL) of another cell.")
    return Header(kind, reference, settings.CELL, to, VERSION, trial)


def write_file(path: Path, header: Header, rows: Iterable[Any]) -> None:
    """Writes a file that only its owner may read. Raises InputProblem.

    An existing file stays unchanged until the new one is complete.
    """
    first = orjson.dumps(asdict(header))
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        unfinished.unlink(missing_ok=True)
        unfinished.touch(mode=0o600, exist_ok=False)
        with unfinished.open("wb") as file:
            file.write(first + b"\n")
            place = 0
            for place, row in enumerate(rows, start=1):
                file.write(_sealed(row, first, place))
            file.write(_sealed(END, first, place + 1))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        raise InputProblem(f"Cannot write {path}: {error.strerror}.") from None


@contextmanager
def read_file(path: Path, kind: FileKind) -> Iterator[tuple[Header, Iterator[Any]]]:
    """The header of a file to this cell, and its rows. Raises InputProblem.

    Reading the rows raises InputProblem too, for an incomplete file only after its last row: use
    them in one transaction.
    """
    _require_settings()
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputProblem(f"Cannot read {path}: {error.strerror}.") from None
    with file:
        first = file.readline().rstrip(b"\n")
        yield _read_header(first, path, kind), _rows(file, first)


def _read_header(first: bytes, path: Path, kind: FileKind) -> Header:
    try:
        header = Header(**orjson.loads(first))
    except (orjson.JSONDecodeError, TypeError):
        raise InputProblem(f"{path} is not a transfer file.") from None
    if header.kind != kind:
        raise InputProblem(f"{path} is a transfer of {header.kind!r}, not of {kind.value!r}.")
    if header.destination != settings.CELL:
        raise InputProblem(
            f"{path} is for cell {header.destination!r}. This is cell {settings.CELL!r}."
        )
    if header.version != VERSION:
        raise InputProblem(
            f"{path} was written by version {header.version}, and this cell runs {VERSION}. Run the"
            " same version in both cells."
        )
    return header


def _rows(file: BinaryIO, first: bytes) -> Iterator[Any]:
    for place, line in enumerate(file, start=1):
        row = _opened(line, first, place)
        if row == END:
            return
        yield row
    raise InputProblem("The file is incomplete: its last line is missing. Copy it again.")


def _sealed(row: Any, first: bytes, place: int) -> bytes:
    sealed = AESSIV(settings.CELL_TRANSFER_KEY).encrypt(orjson.dumps(row), [first, b"%d" % place])
    return base64.b64encode(sealed) + b"\n"


def _opened(line: bytes, first: bytes, place: int) -> Any:
    try:
        sealed = base64.b64decode(line.rstrip(b"\n"), validate=True)
        plain = AESSIV(settings.CELL_TRANSFER_KEY).decrypt(sealed, [first, b"%d" % place])
    except (InvalidTag, ValueError):
        raise InputProblem(
            f"The file was changed in line {place + 1}, or CELL_TRANSFER_KEY is not the key of the"
            " other cell."
        ) from None
    return orjson.loads(plain)


def _require_settings() -> None:
    if not settings.CELL or not settings.CELL_TRANSFER_KEY:
        raise InputProblem("Set CELL and CELL_TRANSFER_KEY (docs/operate/cells.md).")
