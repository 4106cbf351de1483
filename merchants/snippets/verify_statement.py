"""Checks a signed statement, downloaded from the merchant site.

    python verify_statement.py signed-statement.json --key KEY

KEY is the public key of the service, from its page /docs/ledger-key.
Write the public key down once: one that comes with the file shows
nothing. The program needs Python 3.11+ and the package `cryptography`.

Exit codes:
    0  every entry is as it was signed
    1  one line says what is wrong
"""

import argparse
import json
import sys
from decimal import Decimal
from hashlib import sha256
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


class Wrong(Exception):
    """The file does not show what it claims. The message says why."""


def counted(text):
    """The text with its length in bytes in front.

    The lengths keep two different lists of texts from looking alike.
    """
    return "-" if text is None else f"{len(text.encode())}:{text}"


def body(wallet, entry):
    """The hash of one entry.

    `hidden` is the hash of what only the service may see.
    """
    fields = [
        "voucher entry v1",
        str(wallet),
        entry["kind"],
        entry["counterpart"],
        entry["amount"],
        entry["time"],
        counted(entry["order_reference"]),
        counted(entry["note"]),
        entry["balance_after"],
        entry["hidden"],
    ]
    return sha256("|".join(fields).encode()).digest()


def follow_entries(signed):
    """The chain's value after the last entry of the file.

    The balance after each entry must follow from the balance before it.
    """
    wallet, entries = signed["wallet"], signed["entries"]
    if not entries:
        raise Wrong("the file has no entry")
    balance = Decimal(entries[0]["balance_after"]) - Decimal(entries[0]["amount"])
    if signed["start"] is None:
        # The file starts with the wallet's first entry.
        chain = sha256(f"voucher opening v1|{wallet}".encode()).digest()
    else:
        chain = bytes.fromhex(signed["start"])
    last = 0
    for entry in entries:
        balance += Decimal(entry["amount"])
        if Decimal(entry["balance_after"]) != balance or entry["id"] <= last:
            raise Wrong(f"entry {entry['id']} does not follow the entry before it")
        chain, last = sha256(chain + body(wallet, entry)).digest(), entry["id"]
    return chain


def follow_path(signed, chain):
    """The root that the wallet's chain leads to."""
    # The entries after the period, up to the signed one.
    for later in signed["later"]:
        chain = sha256(chain + bytes.fromhex(later)).digest()
    text = f"voucher leaf v1|{signed['wallet']}|{signed['last_entry']}|{chain.hex()}"
    value = sha256(b"\0" + text.encode()).digest()
    for step in signed["path"]:
        beside = bytes.fromhex(step["hash"])
        pair = beside + value if step["side"] == "left" else value + beside
        value = sha256(b"\1" + pair).digest()
    return value


def check_root(root, key):
    """The root must carry the signature of this public key."""
    fields = ["voucher root v1", root["number"], root["previous"], root["signed_at"]]
    statement = "|".join(map(str, [*fields, root["wallets"], root["root"]])).encode()
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(bytes.fromhex(root["signature"]), statement)
    except InvalidSignature:
        raise Wrong(f"root {root['number']} was not signed with this public key") from None


def verify(signed, key):
    """Raises Wrong, or returns a sentence about what was checked."""
    if signed.get("format") != "voucher signed statement v1":
        raise Wrong("the file is not a signed statement, version 1")
    root, entries = signed["root"], signed["entries"]
    check_root(root, key)
    if follow_path(signed, follow_entries(signed)).hex() != root["root"]:
        raise Wrong(f"the entries do not lead to root {root['number']}: something was changed")
    first, last = entries[0], entries[-1]
    opening = Decimal(first["balance_after"]) - Decimal(first["amount"])
    return (
        f"OK: {len(entries)} entries from {first['time']} to {last['time']}, balance"
        f" {opening} before and {last['balance_after']} {signed['currency']} after, as signed in"
        f" root {root['number']} at {root['signed_at']}"
    )


def main():
    parser = argparse.ArgumentParser(description="Checks a signed statement.")
    parser.add_argument("file", help="signed-statement.json")
    parser.add_argument("--key", required=True, help="the public key of the service, 64 digits")
    options = parser.parse_args()
    try:
        signed = json.loads(Path(options.file).read_text(encoding="utf-8"))
        print(verify(signed, bytes.fromhex(options.key)))
    except Wrong as error:
        sys.exit(f"WRONG: {error}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
        sys.exit(f"WRONG: the file or KEY cannot be read: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
