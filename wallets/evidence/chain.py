"""The hash chain of a wallet's entries, as wallets/sql/chain.sql computes it, and hash trees.

Each entry carries a hash over the hash of the entry before and its own fields. A changed, removed,
added or moved entry changes every later hash of the wallet
(docs/decisions/0051-hash-chain.md).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import sha256
from typing import NamedTuple
from uuid import UUID


class Entry(NamedTuple):
    """The fields of a ledger entry that its hash covers, and the stored hash."""

    pk: int
    wallet: int
    kind: str
    counterpart: str
    amount: Decimal
    balance_after: Decimal
    created_at: datetime
    order_reference: str | None
    note: str
    reason: str | None
    actor: str
    booking_reference: str | None
    salt: UUID | None
    chain: bytes

    @property
    def merchant_note(self) -> str:
        """The part of the note that merchants see: notes of credits."""
        return self.note if self.kind == "credit" else ""

    def hidden(self) -> str:
        """The hash of what merchants do not see and of the reason, in hexadecimal."""
        salt = None if self.salt is None else str(self.salt)
        fields = [salt, self.actor, self.booking_reference, self.note]
        if self.reason is not None:
            fields.append(self.reason)
        return sha256("".join(map(_with_length, fields)).encode()).hexdigest()

    def body(self) -> bytes:
        """The hash of the entry itself."""
        fields = (
            "voucher entry v1",
            str(self.wallet),
            self.kind,
            self.counterpart,
            money(self.amount),
            time_text(self.created_at),
            _with_length(self.order_reference),
            _with_length(self.merchant_note),
            money(self.balance_after),
            self.hidden(),
        )
        return sha256("|".join(fields).encode()).digest()

    def chained(self, before: bytes | None) -> bytes:
        """The chain's value after this entry. `before` is None for the first entry of a wallet."""
        if before is None:
            before = sha256(f"voucher opening v1|{self.wallet}".encode()).digest()
        return sha256(before + self.body()).digest()


def money(amount: Decimal) -> str:
    """Exactly four decimals, as PostgreSQL writes the column."""
    return format(amount.quantize(Decimal("0.0001")), "f")


def time_text(moment: datetime) -> str:
    """In UTC with microseconds: `2026-11-22T12:00:00.000001Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _with_length(text: str | None) -> str:
    return "-" if text is None else f"{len(text.encode())}:{text}"


@dataclass(frozen=True)
class Leaf:
    """The state of one wallet in a root: the value of its chain after `last_entry`."""

    wallet: int
    last_entry: int
    chain: bytes

    def hash(self) -> bytes:
        text = f"voucher leaf v1|{self.wallet}|{self.last_entry}|{self.chain.hex()}"
        return sha256(b"\0" + text.encode()).digest()


def merkle_root(hashes: Sequence[bytes]) -> bytes:
    """The root of a tree over these hashes (RFC 6962); of no hash, the hash of nothing."""
    level = list(hashes)
    while len(level) > 1:
        level = [_join(level[at : at + 2]) for at in range(0, len(level), 2)]
    return level[0] if level else sha256(b"").digest()


def merkle_path(hashes: Sequence[bytes], place: int) -> list[tuple[str, bytes]]:
    """The hashes to join with the one at `place` on the way to the root, each with its side."""
    path, level = [], list(hashes)
    while len(level) > 1:
        beside = place ^ 1
        if beside < len(level):
            path.append(("left" if beside < place else "right", level[beside]))
        level = [_join(level[at : at + 2]) for at in range(0, len(level), 2)]
        place //= 2
    return path


def _join(pair: Iterable[bytes]) -> bytes:
    """A hash without a partner moves up as it is."""
    hashes = list(pair)
    return hashes[0] if len(hashes) == 1 else sha256(b"\1" + hashes[0] + hashes[1]).digest()
