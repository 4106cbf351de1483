"""The keys of CODE_ENCRYPTION_KEYS, checked against those that the other processes have.

The table of `core.models.EncryptionKey` holds one row per key id: the root secret, sealed with
that key. The first process of a new service makes the root secret, and stores its fingerprint
(`core.models.RootFingerprint`). Every later process must open each row whose key it has, and find
the same fingerprint. An empty table is no new service if there is a fingerprint, or if a value is
sealed (`orders/sql/root_secret.sql`): it lost its root secret.
A process with another key under the same id is noticed before it seals anything. So is a process
that lacks a key with which others seal.

Other secrets are derived from the root secret. A rotation of the encryption keys does not change
them, because each new key wraps the same root secret.
"""

import hmac
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import structlog
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.backends.utils import CursorWrapper

from core.database import sealing
from core.database.sealing import CannotOpen, Context

logger = structlog.get_logger(__name__)

ROOT_BYTES = 32
# Processes that start together on an empty table must not make two root secrets.
LOCK = "SELECT pg_advisory_xact_lock(hashtext('core.encryption_keys'))"
READ = "SELECT key_id, wrapped, sealing_since IS NOT NULL FROM core_encryptionkey ORDER BY key_id"
READ_FINGERPRINT = "SELECT fingerprint FROM core_rootfingerprint"
ADD_FINGERPRINT = "INSERT INTO core_rootfingerprint (id, fingerprint) VALUES (1, %s)"
ADD = "INSERT INTO core_encryptionkey (key_id, wrapped) VALUES (%s, %s)"
START_SEALING = (
    "UPDATE core_encryptionkey SET sealing_since = clock_timestamp()"
    " WHERE key_id = %s AND sealing_since IS NULL"
)
LOST = "core_encryptionkey is empty, so no stored code opens. Restore it from a backup."
FORGET = "DELETE FROM core_encryptionkey WHERE NOT key_id = ANY (%s)"


class WrongKeys(CannotOpen):
    """CODE_ENCRYPTION_KEYS does not fit the stored values. The message says which key and why."""


@dataclass(frozen=True)
class KeyRing:
    """The keys of this process, all of them checked.

    ids: the id of each key, one byte each.
    root: the secret that all keys wrap.
    """

    ids: bytes
    root: bytes = field(repr=False)

    def derive(self, purpose: bytes, subject: bytes = b"") -> bytes:
        """A secret of 32 bytes for one purpose, the same in every process and for ever."""
        return hmac.digest(self.root, purpose + b"\0" + subject, "sha256")


@dataclass(frozen=True)
class _Row:
    wrapped: bytes = field(repr=False)
    seals: bool


_rings: dict[tuple[str, ...], KeyRing] = {}


def key_ring() -> KeyRing:
    """The checked keys. Asks the database until they have been checked once.

    Raises WrongKeys and Django's database errors.
    """
    entries = tuple(settings.CODE_ENCRYPTION_KEYS)
    ring = _rings.get(entries)
    if ring is None:
        ring = check_keys()
        if not connection.in_atomic_block:  # or a rollback could undo what was registered
            _rings[entries] = ring
    return ring


def check_keys() -> KeyRing:
    """Checks the keys against the table, and registers those that are not in it yet.

    Raises WrongKeys and Django's database errors.
    """
    rows, fingerprint = _read()
    if fingerprint is None or not _is_registered(rows):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(LOCK)
            rows, fingerprint = _read()
            root = _open_or_make_root(rows, fingerprint)
            if fingerprint is None:
                _add_fingerprint(cursor, root)
            for key_id in sealing.key_ids():
                if key_id not in rows:
                    cursor.execute(ADD, [key_id, sealing.wrap(root, key_id)])
                    logger.info("encryption_key_registered", key_id=key_id)
            cursor.execute(START_SEALING, [sealing.sealing_key_id()])
            rows, fingerprint = _read()
    return KeyRing(ids=bytes(sealing.key_ids()), root=_open_root(rows, fingerprint))


def root_problem() -> str | None:
    """The reason why the stored root secret is not the one that the service has made; else None.

    Registers nothing. Raises Django's database errors.
    """
    rows, fingerprint = _read()
    try:
        if rows or fingerprint is not None:
            _open_root(rows, fingerprint)
    except WrongKeys as error:
        return str(error)
    return None


def check_stored_root() -> None:
    """Checks that the keys of this process open the stored root secret. Registers none of them.

    Raises WrongKeys and Django's database errors.
    """
    _open_root(*_read())


def forget_keys(*, in_use: Sequence[int]) -> None:
    """Removes all other keys from the table: no value needs them, so no process needs them.

    A process that still has one of them registers it again: as a key that seals if it is the first
    one there, otherwise as a key that seals nothing.
    """
    with connection.cursor() as cursor:
        cursor.execute(FORGET, [list(in_use)])


def _read() -> tuple[dict[int, _Row], bytes | None]:
    """The rows, and the fingerprint of the root secret; None before it is made."""
    with connection.cursor() as cursor:
        cursor.execute(READ)
        rows = {key_id: _Row(bytes(wrapped), seals) for key_id, wrapped, seals in cursor}
        cursor.execute(READ_FINGERPRINT)
        stored = cursor.fetchone()
    return rows, bytes(stored[0]) if stored else None


def _fingerprint(root: bytes) -> bytes:
    return KeyRing(b"", root).derive(b"fingerprint of the root secret")


def _add_fingerprint(cursor: CursorWrapper, root: bytes) -> None:
    """Raises WrongKeys when the database refuses a second root secret."""
    try:
        cursor.execute(ADD_FINGERPRINT, [_fingerprint(root)])
    except IntegrityError:
        raise WrongKeys(LOST) from None


def _open_or_make_root(rows: Mapping[int, _Row], fingerprint: bytes | None) -> bytes:
    if not rows and fingerprint is None:
        return os.urandom(ROOT_BYTES)
    return _open_root(rows, fingerprint)


def _open_root(rows: Mapping[int, _Row], fingerprint: bytes | None) -> bytes:
    """The root secret, which has this fingerprint if there is one. Raises WrongKeys."""
    if not rows:
        raise WrongKeys(LOST)
    root = _unwrap(rows)
    if fingerprint is not None and not hmac.compare_digest(fingerprint, _fingerprint(root)):
        raise WrongKeys(
            "core_encryptionkey holds another root secret than the one with which codes were"
            " stored. Restore it from a backup."
        )
    return root


def _is_registered(rows: Mapping[int, _Row]) -> bool:
    """Whether every key of this process has its row, and the first is known to seal."""
    first = rows.get(sealing.sealing_key_id())
    return first is not None and first.seals and all(key in rows for key in sealing.key_ids())


def _unwrap(rows: Mapping[int, _Row]) -> bytes:
    """The root secret, opened with every key that this process has. Raises WrongKeys."""
    held = sealing.key_ids()
    for key_id, row in rows.items():
        if key_id not in held and row.seals:
            raise WrongKeys(
                f"CODE_ENCRYPTION_KEYS lacks key {key_id}, with which other processes seal. Add it."
            )
    roots = set()
    for key_id in held:
        if key_id in rows:
            try:
                roots.add(sealing.open_sealed(rows[key_id].wrapped, Context.ROOT, bytes([key_id])))
            except CannotOpen:
                raise WrongKeys(
                    f"CODE_ENCRYPTION_KEYS: key {key_id} differs from that of other processes."
                ) from None
    if len(roots) != 1:
        raise WrongKeys("CODE_ENCRYPTION_KEYS has none of the keys of other processes. Add them.")
    return roots.pop()
