"""Compares your purchases with the statement. It needs only Python 3.9+.

    python reconcile.py purchases 2026-10-01 2026-10-31

The file order-1042.json in the folder purchases is what the program that
buys printed for the idempotency key order-1042. It is empty while the
outcome is unknown. The days are in UTC.
Exit codes:
    0  no difference
    1  each difference is printed
    2  a file or the statement could not be read; the reason is printed
"""

import http.client
import json
import os
import sys
import urllib.error
import urllib.request
from decimal import Decimal
from pathlib import Path

SITE = os.environ["VOUCHER_SITE"]
BOOK_KEY = os.environ["VOUCHER_BOOK_KEY"]


def read_purchases(folder):
    """The orders by idempotency key. None means that the outcome is unknown."""
    purchases = {}
    for file in sorted(path for path in Path(folder).iterdir() if path.suffix == ".json"):
        text = file.read_text(encoding="utf-8")
        answer = json.loads(text, parse_float=Decimal) if text.strip() else None
        # Some programs print the whole response.
        purchases[file.stem] = answer and answer.get("data", answer)
    return purchases


def read_debits(first, last):
    """The debits of the account's statement, oldest first."""
    address = f"{SITE}/merchant/wallet/statement.json?since={first}&until={last}&kind=purchase"
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {BOOK_KEY}"})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            # Amounts must not become binary floats.
            return json.loads(response.read(), parse_float=Decimal)["entries"]
    except urllib.error.HTTPError as refusal:
        raise OSError(f"HTTP status {refusal.code}: {refusal.read().decode()}") from None


def compare(purchases, debits, first, last):
    """Yields one line for each difference."""
    amounts = {debit["order_reference"]: -debit["amount"] for debit in debits}
    known, refused = set(), set()
    for key, order in purchases.items():
        if order is None:
            yield f"open: {key}"
        elif "total_price" not in order:
            refused.add(key)
        else:
            reference, total = order["reference"], Decimal(order["total_price"])
            known.add(reference)
            if reference not in amounts:
                if first <= order["created_at"][:10] <= last:
                    yield f"no debit: {reference}, {key}"
            elif (amount := amounts[reference]) != total:
                yield f"another amount: {reference}, {key}, {total} here, {amount} debited"
    seen = set()
    for debit in debits:
        reference, key = debit["order_reference"], debit["idempotency_key"] or ""
        if reference in seen:
            yield f"debited twice: {reference}, {key}"
        elif key in refused:
            yield f"bought, not refused: {reference}, {key}, {-debit['amount']} debited"
        elif reference not in known:
            yield f"unknown here: {reference}, {key}, {debit['client']}, {-debit['amount']} debited"
        seen.add(reference)


if __name__ == "__main__":
    folder, first, last = sys.argv[1:]
    try:
        purchases = read_purchases(folder)
        debits = read_debits(first, last)
    except (OSError, http.client.HTTPException, ValueError, LookupError) as problem:
        print(problem, file=sys.stderr)
        sys.exit(2)
    differences = list(compare(purchases, debits, first, last))
    for line in differences:
        print(line)
    print(f"{len(purchases)} purchases, {len(debits)} debits, {len(differences)} differences")
    sys.exit(1 if differences else 0)
