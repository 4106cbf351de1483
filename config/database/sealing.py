"""Encryption at rest of what is money: voucher codes, pins and stored replay bodies.

AES-256-GCM with keys from `CODE_ENCRYPTION_KEYS`, a list of `id:base64url` pairs. The first key
seals, every key opens, so a new key is put in front and the old ones stay behind it until
`manage.py reseal` has moved everything over.

A sealed value is `key id (1 byte) + nonce (12 bytes) + ciphertext and tag`. The context (what the
value is) is authenticated with it, so that a stored replay cannot be passed off as a code.
"""

import base64
import binascii
import os
from collections.abc import Sequence
from enum import Enum
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings

KEY_BYTES = 32
NONCE_BYTES = 12


class Context(Enum):
    """What a sealed value is; a value opens only as what it was sealed as."""

    VOUCHER_CODE = b"voucher-code"
    REPLAY_BODY = b"replay-body"
    DIGEST_KEY = b"digest-key"


class BadKeys(ValueError):
    """CODE_ENCRYPTION_KEYS cannot be used; the message says why and never holds a key."""


class CannotOpen(Exception):
    """The value was sealed under an unknown key, as something else, or was altered."""


def parse_keys(entries: Sequence[str]) -> dict[int, AESGCM]:
    """Returns the ciphers by key id, the sealing one first. Raises BadKeys."""
    if not entries:
        raise BadKeys("is not set; give at least one `id:base64url of 32 bytes`.")
    ciphers: dict[int, AESGCM] = {}
    for place, entry in enumerate(entries, start=1):
        key_id, _, encoded = entry.strip().partition(":")
        if not (key_id.isascii() and key_id.isdecimal() and 0 < int(key_id) < 256):
            raise BadKeys(f"entry {place} needs an id from 1 to 255 before the colon.")
        if int(key_id) in ciphers:
            raise BadKeys(f"id {key_id} is used twice.")
        try:
            key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise BadKeys(f"entry {place} is not base64url.") from None
        if len(key) != KEY_BYTES:
            raise BadKeys(f"entry {place} is {len(key)} bytes long, not {KEY_BYTES}.")
        ciphers[int(key_id)] = AESGCM(key)
    return ciphers


@lru_cache(maxsize=4)
def _ciphers(entries: tuple[str, ...]) -> dict[int, AESGCM]:
    return parse_keys(entries)


def _configured() -> dict[int, AESGCM]:
    return _ciphers(tuple(settings.CODE_ENCRYPTION_KEYS))


def sealing_key_id() -> int:
    """The id of the key that seals now."""
    return next(iter(_configured()))


def seal(plain: bytes, context: Context) -> bytes:
    """Encrypts under the first key."""
    key_id, cipher = next(iter(_configured().items()))
    nonce = os.urandom(NONCE_BYTES)
    return bytes([key_id]) + nonce + cipher.encrypt(nonce, plain, context.value)


def open_sealed(sealed: bytes | memoryview, context: Context) -> bytes:
    """Decrypts what `seal` made. Raises CannotOpen, whose message holds nothing of the value."""
    sealed = bytes(sealed)
    cipher = _configured().get(sealed[0]) if sealed else None
    if cipher is None:
        raise CannotOpen("sealed under a key that is not configured")
    nonce, body = sealed[1 : 1 + NONCE_BYTES], sealed[1 + NONCE_BYTES :]
    try:
        return cipher.decrypt(nonce, body, context.value)
    except (InvalidTag, ValueError):
        raise CannotOpen("altered, or sealed as something else") from None
