"""Voucher codes: sealed on import, opened only to hand them over (contract, "Code")."""

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

import orjson

from catalogue.models import SealedSecret
from config.database import sealing
from config.database.sealing import Context

DIGEST_KEY_NAME = "code-digest"
DIGEST_KEY_BYTES = 32


@dataclass(frozen=True)
class Code:
    """One code as a merchant receives it. Its repr shows none of its parts."""

    code: str = field(repr=False)
    serial_number: str = field(default="", repr=False)
    pin_code: str = field(default="", repr=False)

    def shown(self) -> dict[str, str]:
        """The code as the API shows it, without empty parts."""
        parts = {
            "code": self.code,
            "serial_number": self.serial_number,
            "pin_code": self.pin_code,
        }
        return {name: part for name, part in parts.items() if part}


def seal_code(code: Code) -> bytes:
    """The code, encrypted for storage."""
    parts = [code.code, code.serial_number, code.pin_code]
    return sealing.seal(orjson.dumps(parts), Context.VOUCHER_CODE)


def open_code(sealed: bytes | memoryview) -> Code:
    """The stored code, decrypted. Raises sealing.CannotOpen."""
    return Code(*orjson.loads(sealing.open_sealed(sealed, Context.VOUCHER_CODE)))


def code_digester() -> Callable[[str], bytes]:
    """The function that computes a code's digest: a keyed SHA-256 of the code without its serial
    number and PIN. Equal codes have equal digests. Raises sealing.CannotOpen."""
    keyed = hmac.new(digest_key(), digestmod="sha256")

    def digest(code: str) -> bytes:
        this = keyed.copy()
        this.update(code.encode())
        return this.digest()

    return digest


def digest_key() -> bytes:
    """The key of all digests, created at first use. Raises sealing.CannotOpen.

    It is stored sealed in the database, not set in the environment. A rotation of the encryption
    keys only seals it again (`manage.py reseal`), so all digests stay valid.
    """
    secret, _ = SealedSecret.objects.get_or_create(
        name=DIGEST_KEY_NAME,
        defaults={
            "sealed": sealing.seal(secrets.token_bytes(DIGEST_KEY_BYTES), Context.DIGEST_KEY)
        },
    )
    return sealing.open_sealed(secret.sealed, Context.DIGEST_KEY)
