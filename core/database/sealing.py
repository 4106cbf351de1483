"""Encryption at rest (AES-256-GCM) of voucher codes, pins, stored replay bodies, and more.

The keys come from `CODE_ENCRYPTION_KEYS`, a list of `id:base64url` pairs. The first key seals and
every key opens. docs/operate/rotate-keys.md says how to rotate them.

A sealed value is `key id (1 byte) + nonce (12 bytes) + ciphertext and tag`. Two things are
authenticated with it: the context, which says what the value is, and the row that it belongs to.
A stored replay does not open as a code, and a value that was copied into another row does not open
at all (docs/decisions/0026-values-bound-to-rows.md).
"""

import base64
import binascii
import os
from collections.abc import Callable, Sequence
from enum import Enum
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings

KEY_BYTES = 32
NONCE_BYTES = 12
AFTER_NONCE = 1 + NONCE_BYTES  # where the ciphertext begins in a sealed value
# How many values one key may seal with random nonces: NIST SP 800-38D, section 8.3.
VALUES_PER_KEY = 2**32
# Decrypts with nonce, ciphertext and what was authenticated with it.
Decrypt = Callable[[bytes, bytes, bytes], bytes]


class Context(Enum):
    """The kind of a sealed value. A value opens only with the context it was sealed with."""

    VOUCHER_CODE = b"voucher-code"
    REPLAY_BODY = b"replay-body"
    ROOT = b"root"
    SECOND_FACTOR = b"second-factor"
    LOGGED_REQUEST = b"logged-request"
    IMPORTED_FILE = b"imported-file"
    CASE_FILE = b"case-file"
    DELIVERY_FILE = b"delivery-file"
    PREPARED_FILE = b"prepared-file"


class BadKeys(ValueError):
    """CODE_ENCRYPTION_KEYS is not valid. The message says why and never contains a key."""


class CannotOpen(Exception):
    """The value was sealed with an unknown key, for another row or context, or was altered."""


class UnknownKey(CannotOpen):
    """The value was sealed with a key that this process does not have: nothing is damaged."""


def parse_keys(entries: Sequence[str]) -> dict[int, AESGCM]:
    """The ciphers by key id (1 to 255), the sealing key first.

    Raises BadKeys when there is no entry, or when an entry is not `id:base64url of 32 bytes`.
    """
    if not entries:
        raise BadKeys("is not set; set at least one `id:base64url of 32 bytes`.")
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


def _configured_ciphers() -> dict[int, AESGCM]:
    return _ciphers(tuple(settings.CODE_ENCRYPTION_KEYS))


def key_ids() -> list[int]:
    """The ids of the configured keys, the sealing key first."""
    return list(_configured_ciphers())


def sealing_key_id() -> int:
    """The id of the key that seals new values."""
    return next(iter(_configured_ciphers()))


def seal(plain: bytes, context: Context, row: bytes) -> bytes:
    """Encrypts with the first key. `row` names the row that the value belongs to: bytes that never
    change and that no other row of this context has."""
    return sealer(context)(plain, row)


def sealer(context: Context) -> Callable[[bytes, bytes], bytes]:
    """`seal` for many values of one context: it looks the key up once."""
    return _sealer(tuple(settings.CODE_ENCRYPTION_KEYS), sealing_key_id(), context)


def wrap(root: bytes, key_id: int) -> bytes:
    """Encrypts the root secret with one of the configured keys (core/database/key_ring.py)."""
    wrapping = _sealer(tuple(settings.CODE_ENCRYPTION_KEYS), key_id, Context.ROOT)
    return wrapping(root, bytes([key_id]))


@lru_cache(maxsize=32)
def _sealer(
    entries: tuple[str, ...], key_id: int, context: Context
) -> Callable[[bytes, bytes], bytes]:
    start, bound_to, encrypt = (
        bytes([key_id]),
        _bound_to(context, b""),
        _ciphers(entries)[key_id].encrypt,
    )

    def seal_one(plain: bytes, row: bytes) -> bytes:
        nonce = os.urandom(NONCE_BYTES)
        return start + nonce + encrypt(nonce, plain, bound_to + row)

    return seal_one


def open_sealed(sealed: bytes | memoryview, context: Context, row: bytes) -> bytes:
    """Decrypts a sealed value. Raises CannotOpen; its message contains nothing of the value."""
    return opener(context)(bytes(sealed), row)


def opener(context: Context) -> Callable[[bytes, bytes], bytes]:
    """`open_sealed` for many values of one context: it looks the keys up once."""
    return _opener(tuple(settings.CODE_ENCRYPTION_KEYS), context)


def open_all(sealed: Sequence[bytes], context: Context, rows: Sequence[bytes]) -> list[bytes]:
    """`open_sealed` for the values of many rows, faster than as many calls."""
    decrypts = _decrypts(tuple(settings.CODE_ENCRYPTION_KEYS))
    bound_to = _bound_to(context, b"")
    try:
        return [
            decrypts[value[0]](value[1:AFTER_NONCE], value[AFTER_NONCE:], bound_to + row)
            for value, row in zip(sealed, rows, strict=True)
        ]
    except (KeyError, IndexError, InvalidTag, ValueError):
        open_one = opener(context)  # raises CannotOpen for the value that does not open
        return [open_one(value, row) for value, row in zip(sealed, rows, strict=True)]


@lru_cache(maxsize=4)
def _decrypts(entries: tuple[str, ...]) -> dict[int, Decrypt]:
    return {key_id: cipher.decrypt for key_id, cipher in _ciphers(entries).items()}


@lru_cache(maxsize=32)
def _opener(entries: tuple[str, ...], context: Context) -> Callable[[bytes, bytes], bytes]:
    decrypts = _decrypts(entries)
    bound_to = _bound_to(context, b"")

    def open_one(sealed: bytes, row: bytes) -> bytes:
        decrypt = decrypts.get(sealed[0]) if sealed else None
        if decrypt is None:
            if not sealed or not sealed[0]:  # no key has the id 0
                raise CannotOpen("the value was altered")
            raise UnknownKey("the value was sealed with a key that is not configured")
        try:
            return decrypt(sealed[1:AFTER_NONCE], sealed[AFTER_NONCE:], bound_to + row)
        except (InvalidTag, ValueError):
            raise CannotOpen(
                "the value was altered, or sealed for another row or context"
            ) from None

    return open_one


def _bound_to(context: Context, row: bytes) -> bytes:
    return context.value + b"\0" + row  # no context contains a NUL
