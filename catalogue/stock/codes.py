"""Voucher codes: sealed on import, opened only to hand them over (contract, "Code")."""

import hmac
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import orjson

from core.database import sealing
from core.database.key_ring import key_ring
from core.database.sealing import Context
from core.files.cells import without_marks

# White space and dashes: every character with the Unicode property Dash that is left after NFKC.
SEPARATORS = re.compile(
    r"[\s\-\u00ad\u02d7\u058a\u05be\u1400\u1806\u2010-\u2015\u2043\u2053\u2212\u2e17\u2e1a\u2e3a"
    r"\u2e3b\u2e40\u2e5d\u301c\u3030\u30a0\U00010d6e\U00010ead]+"
)

HALF_BYTES = 16  # of a digest


@dataclass(frozen=True)
class Code:
    """One code as a merchant receives it. Its repr shows none of its parts."""

    code: str = field(repr=False)
    serial_number: str = field(default="", repr=False)
    pin_code: str = field(default="", repr=False)

    def as_json(self) -> dict[str, str]:
        """The code as the API shows it, without empty parts."""
        return _as_json(self.code, self.serial_number, self.pin_code)

    def outline(self) -> str:
        """The shape of its parts, after the names of their columns: each letter is an A, each digit
        a 9. It shows no code."""
        return ", ".join(f"{name}: {_outline(part)}" for name, part in self.as_json().items())


def _as_json(code: str, serial_number: str, pin_code: str) -> dict[str, str]:
    shown = {"code": code}
    if serial_number:
        shown["serial_number"] = serial_number
    if pin_code:
        shown["pin_code"] = pin_code
    return shown


def _outline(part: str) -> str:
    return "".join("9" if one.isdecimal() else "A" if one.isalpha() else "-" for one in part)


def seal_code(code: Code, digest: bytes) -> bytes:
    """The code, encrypted for storage in the row with this digest."""
    return code_sealer()(code, digest)


def code_sealer() -> Callable[[Code, bytes], bytes]:
    """`seal_code` for many codes."""
    seal = sealing.sealer(Context.VOUCHER_CODE)
    dumps = orjson.dumps

    def seal_one(code: Code, digest: bytes) -> bytes:
        return seal(dumps([code.code, code.serial_number, code.pin_code]), digest)

    return seal_one


def open_code(sealed: bytes | memoryview, digest: bytes | memoryview) -> Code:
    """The code that is stored in the row with this digest. Raises sealing.CannotOpen."""
    return Code(*orjson.loads(sealing.open_sealed(sealed, Context.VOUCHER_CODE, bytes(digest))))


def open_as_json(sealed: Sequence[bytes], digests: Sequence[bytes]) -> list[dict[str, str]]:
    """The codes of these rows as the API shows them. Raises sealing.CannotOpen."""
    opened = sealing.open_all(sealed, Context.VOUCHER_CODE, digests)
    return [_as_json(*parts) for parts in orjson.loads(b"[%s]" % b",".join(opened))]


def normal_form(code: str) -> str:
    """The code in NFKC, in which full-width letters become plain ones, without dashes and white
    space, and without quotation marks and marks of spreadsheets around it: these may differ between
    two prints of one code. Letter case is kept.

    Only for comparing codes. What is stored and handed over stays as it was imported.
    """
    if code.isascii():  # the same, four times faster; NFKC does not change ASCII
        plain = "".join(code.split()).replace("-", "")
    else:
        plain = SEPARATORS.sub("", unicodedata.normalize("NFKC", code))
    return without_marks(plain)


def half_digest(digest: bytes) -> UUID:
    """The first half of a digest, by which a code is found (`CodeDigest`)."""
    return UUID(bytes=digest[:HALF_BYTES])


def code_digester() -> Callable[[str], bytes]:
    """The function that computes a code's digest: a keyed SHA-256 of its normal form, without
    serial number and PIN. The same code has the same digest. Raises sealing.CannotOpen."""
    keyed = hmac.new(key_ring().derive(b"code-digest"), digestmod="sha256")

    def digest(code: str) -> bytes:
        this = keyed.copy()
        this.update(normal_form(code).encode())
        return this.digest()

    return digest
