"""Voucher codes: sealed when they come in, opened only to be handed over."""

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
    return sealing.seal(orjson.dumps(parts), Context.VOUCHER_CODE)


def open_code(sealed: bytes | memoryview) -> Code:
    """Decrypts a stored code. Raises sealing.CannotOpen."""
    return Code(*orjson.loads(sealing.open_sealed(sealed, Context.VOUCHER_CODE)))


def code_digester() -> Callable[[str], bytes]:
    """Returns the function that tells what the same code, whatever its serial and pin, has in
    common wherever it is stored: a keyed digest. Raises sealing.CannotOpen."""
    keyed = hmac.new(digest_key(), digestmod="sha256")

    def digest(code: str) -> bytes:
        this = keyed.copy()
        this.update(code.encode())
        return this.digest()

    return digest


def digest_key() -> bytes:
    """The key of all digests, made at first use. Raises sealing.CannotOpen.

    It is stored sealed rather than set in the environment, so that a rotation of the encryption
    keys leaves every digest valid: `reseal` only wraps it anew.
    """
    secret, _ = SealedSecret.objects.get_or_create(
        name=DIGEST_KEY_NAME,
        defaults={
            "sealed": sealing.seal(secrets.token_bytes(DIGEST_KEY_BYTES), Context.DIGEST_KEY)
        },
    )
    return sealing.open_sealed(secret.sealed, Context.DIGEST_KEY)
