"""Signed roots of the ledger: once a day, one signed hash stands for every entry of every wallet.

The root is stored and also logged, and the logs leave the host. The database's owner can rewrite
the ledger, but not unnoticed: `manage.py verify_ledger --roots` compares the ledger with the logged
roots (wallets/evidence/verification.py). Each root contains the hash of the one before.

The signing key is derived from the root secret, which the database holds only sealed
(core/database/key_ring.py).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from hashlib import sha256
from typing import Any

import structlog
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import QuerySet

from core.database.functions import database_now, remove_statement_timeout
from core.database.key_ring import key_ring
from core.telemetry.logs import DirectLogger
from wallets.evidence.chain import Entry, Leaf, merkle_root, time_text
from wallets.models import LedgerEntry, SignedRoot

logger = structlog.get_logger(__name__)

EVENT = "ledger_root"
DUE_AFTER = timedelta(hours=23)  # the task asks every hour
MAX_AHEAD = timedelta(minutes=5)  # another worker may sign after this one read the clock
FIRST = bytes(32)  # what the first root names as the one before
CHUNK = 2000
PURPOSE = b"ledger roots"

# The newest leaf of each wallet up to a root.
LEAVES = """
    SELECT wallet.account_id, leaf.last_entry, entry.chain
      FROM wallets_wallet AS wallet
     CROSS JOIN LATERAL (
           SELECT last_entry FROM wallets_rootleaf
            WHERE wallet_id = wallet.account_id AND root_id <= %s
            ORDER BY wallet_id DESC, root_id DESC LIMIT 1) AS leaf
      JOIN wallets_ledgerentry AS entry ON entry.id = leaf.last_entry
     ORDER BY wallet.account_id
"""
# Adds the leaves of the wallets that have moved since their newest leaf.
ADD_LEAVES = """
    INSERT INTO wallets_rootleaf (root_id, wallet_id, last_entry)
    SELECT %s, wallet.account_id, newest.id
      FROM wallets_wallet AS wallet
     CROSS JOIN LATERAL (
           SELECT id FROM wallets_ledgerentry
            WHERE wallet_id = wallet.account_id
            ORDER BY wallet_id DESC, id DESC LIMIT 1) AS newest
     WHERE newest.id IS DISTINCT FROM (
           SELECT last_entry FROM wallets_rootleaf
            WHERE wallet_id = wallet.account_id
            ORDER BY wallet_id DESC, root_id DESC LIMIT 1)
"""


@dataclass(frozen=True)
class Root:
    """A root with its signature, as the row and the log line have it."""

    number: int
    signed_at: datetime
    previous: bytes
    wallets: int
    root: bytes
    public_key: bytes
    signature: bytes = b""

    def statement(self) -> bytes:
        """The text that the signature covers."""
        fields = (
            "voucher root v1",
            str(self.number),
            self.previous.hex(),
            time_text(self.signed_at),
            str(self.wallets),
            self.root.hex(),
        )
        return "|".join(fields).encode()

    def digest(self) -> bytes:
        """The hash by which the next root names this one."""
        return sha256(self.statement()).digest()

    def is_signed(self) -> bool:
        """Whether this service signed it, with any encryption keys that it ever had."""
        if self.public_key != public_key():
            return False
        try:
            Ed25519PublicKey.from_public_bytes(self.public_key).verify(
                self.signature, self.statement()
            )
        except InvalidSignature:
            return False
        return True

    def as_json(self) -> dict[str, Any]:
        """For the log line and for signed statements."""
        return {
            "number": self.number,
            "previous": self.previous.hex(),
            "signed_at": time_text(self.signed_at),
            "wallets": self.wallets,
            "root": self.root.hex(),
            "public_key": self.public_key.hex(),
            "signature": self.signature.hex(),
        }


def public_key() -> bytes:
    """The key with which everybody can check roots, 32 bytes."""
    return _signing_key().public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def sign_if_due(now: datetime) -> Root | None:
    """Signs the ledger if there is no root, or if the newest is at least 23 hours old.

    A root dated more than five minutes ahead counts as old: the clock was wrong when it was signed.
    """
    return sign_ledger(due_at=now) if _is_due(_newest(), now) else None


def sign_ledger(*, due_at: datetime | None = None) -> Root | None:
    """Signs the state of every wallet in one snapshot. Blocks no purchase.

    With `due_at`, signs only if a root is due at that time in the snapshot. Returns None if none is
    due, or if another process signed at the same moment.
    """
    try:
        with transaction.atomic(durable=True):
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            remove_statement_timeout()
            newest = _newest()
            if due_at and not _is_due(newest, due_at):
                return None
            root = _add_root(stored_root(newest) if newest else None)
    except IntegrityError:
        return None
    _log_root(root)
    return root


def _newest() -> SignedRoot | None:
    return SignedRoot.objects.order_by("-number").first()


def _is_due(newest: SignedRoot | None, now: datetime) -> bool:
    return newest is None or not -MAX_AHEAD < now - newest.signed_at < DUE_AFTER


def row_is_signed(number: int, signed_at: datetime, *rest: Any) -> bool:
    """Whether the columns of a row carry our signature, for `reconcile --decrypt`."""
    previous, wallets, root, key, signature = rest
    return Root(
        number, signed_at, bytes(previous), wallets, bytes(root), bytes(key), bytes(signature)
    ).is_signed()


def stored_root(row: SignedRoot) -> Root:
    return Root(
        number=row.number,
        signed_at=row.signed_at,
        previous=bytes(row.previous),
        wallets=row.wallets,
        root=bytes(row.root),
        public_key=bytes(row.public_key),
        signature=bytes(row.signature),
    )


def leaves_of(number: int) -> list[Leaf]:
    """The leaves of a root, in the order of the tree."""
    with connection.cursor() as cursor:
        cursor.execute(LEAVES, [number])
        return [Leaf(wallet, last, bytes(chain)) for wallet, last, chain in cursor]


def read_entries(wallet: int | None = None) -> Iterator[Entry]:
    """The entries of one wallet or of all, in the order of their chains, in bounded memory.

    Call it in a transaction.
    """
    rows = _rows() if wallet is None else _rows().filter(wallet=wallet)
    yield from map(_entry, rows.iterator(chunk_size=CHUNK))


def entries_between(wallet: int, first: int, last: int) -> Iterator[Entry]:
    """The entries of a wallet with ids from `first` to `last`, in bounded memory.

    Each chunk is a query of its own, so a slow download holds no transaction open.
    """
    rows = _rows().filter(wallet=wallet, pk__lte=last)
    while chunk := list(rows.filter(pk__gte=first)[:CHUNK]):
        yield from map(_entry, chunk)
        first = chunk[-1][0] + 1


def _entry(row: tuple[Any, ...]) -> Entry:
    # NULL only after the owner of the table dropped NOT NULL: the empty hash is then a finding.
    return Entry._make((*row[:-1], bytes(row[-1] or b"")))


def _rows() -> QuerySet[LedgerEntry, tuple[Any, ...]]:
    return LedgerEntry.objects.order_by("wallet_id", "pk").values_list(
        *("pk", "wallet_id", "kind", "counterpart", "amount", "balance_after", "created_at"),
        *("order_reference", "note", "reason", "actor", "booking_reference", "salt", "chain"),
    )


def _add_root(before: Root | None) -> Root:
    number = before.number + 1 if before else 1
    row = SignedRoot(
        number=number,
        signed_at=database_now(),
        previous=before.digest() if before else FIRST,
        public_key=public_key(),
    )
    with connection.cursor() as cursor:
        cursor.execute(ADD_LEAVES, [number])  # the foreign key is checked at the commit
    leaves = leaves_of(number)
    row.wallets, row.root = len(leaves), merkle_root([leaf.hash() for leaf in leaves])
    row.signature = b""
    row.signature = _signing_key().sign(stored_root(row).statement())
    row.save(force_insert=True)
    return stored_root(row)


def _signing_key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(key_ring().derive(PURPOSE))


def _log_root(root: Root) -> None:
    """Writes the line of a root, whatever LOG_LEVEL is."""
    try:
        _log().info(EVENT, **root.as_json())
    except (OSError, ValueError) as error:
        logger.error("ledger_root_not_logged", number=root.number, cause=type(error).__name__)


@cache
def _log() -> Any:
    return DirectLogger("wallets.evidence.roots", level="INFO", secrets=settings.LOG_SECRETS)
