"""Voucher codes: sealed when they come in, opened only to be handed over."""

import json
from dataclasses import dataclass, field

from config import sealing
from config.sealing import Context


@dataclass(frozen=True)
class Code:
    """One code as a merchant receives it; its parts never show in a repr."""

    code: str = field(repr=False)
    serial_number: str = field(default="", repr=False)
    pin_code: str = field(default="", repr=False)

    def shown(self) -> dict[str, str]:
        """The contract's "Code": empty parts are left out."""
        parts = {
            "code": self.code,
            "serial_number": self.serial_number,
            "pin_code": self.pin_code,
        }
        return {name: part for name, part in parts.items() if part}


def seal_code(code: Code) -> bytes:
    """Encrypts a code for storage."""
    parts = [code.code, code.serial_number, code.pin_code]
    return sealing.seal(json.dumps(parts, ensure_ascii=False).encode(), Context.VOUCHER_CODE)


def open_code(sealed: bytes | memoryview) -> Code:
    """Decrypts a stored code. Raises sealing.CannotOpen."""
    return Code(*json.loads(sealing.open_sealed(sealed, Context.VOUCHER_CODE)))
