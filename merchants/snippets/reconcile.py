"""Compares your purchases with the statement. It needs only Python 3.9+.

    python reconcile.py purchases 2026-10-01 2026-10-31

The file order-1042.json in the folder purchases is what the program that
buys printed for the idempotency key order-1042. It is empty while the
outcome is unknown. The days are in UTC.
Exit codes:
    0  no difference
    1  each difference is printed
    2  there is no comparison; the reason is printed
"""

import json
import os
import re
import sys
import urllib.error
import urllib.request
from decimal import Decimal
from pathlib import Path

SITE = os.environ.get("VOUCHER_SITE")
BOOK_KEY = os.environ.get("VOUCHER_BOOK_KEY", "")


def read_purchases(folder):
    """The orders by idempotency key. None means that the outcome is unknown."""
    purchases = {}
    for file in sorted(path for path in Path(folder).iterdir() if path.suffix == ".json"):
        text = file.read_bytes()
        purchases[file.stem] = read_answer(text, file.name) if text.strip() else None
    return purchases


def read_answer(text, file):
    """The order, or the error of a refusal."""
    try:
        answer = json.loads(text, parse_float=Decimal)
        # Some programs print the whole response.
        answer = answer.get("data") or answer.get("error") or answer
        if answer.get("total_price", answer.get("code")) is not None:
            return answer
    except (ValueError, AttributeError):
        pass
    raise ValueError(f"{file} contains no response of the service")


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Takes a redirect as an error: the key must not go elsewhere."""

    def redirect_request(self, *_):
        return None


opener = urllib.request.build_opener(NoRedirect)


def read_debits(first, last):
    """The debits of the account's statement, oldest first."""
    address = f"{SITE}/merchant/wallet/statement.json?since={first}&until={last}&kind=purchase"
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {BOOK_KEY}"})
    try:
        with opener.open(request, timeout=60) as response:
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
            if reference in known:
                yield f"one order twice: {reference}, {key}"
            elif reference not in amounts:
                day = (order.get("created_at") or first)[:10]
                # A replacement costs 0 and has no debit.
                if total and first <= day <= last:
                    yield f"no debit: {reference}, {key}"
            elif (amount := amounts[reference]) != total:
                yield f"another amount: {reference}, {key}, {total} here, {amount} debited"
            known.add(reference)
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


def check(arguments):
    """Raises ValueError if the program was started wrongly."""
    if len(arguments) != 3:
        raise ValueError("Usage: reconcile.py purchases 2026-10-01 2026-10-31")
    for day in arguments[1:]:
        if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", day):
            raise ValueError(f"Not a day such as 2026-10-31: {day}")
    if not SITE:
        raise ValueError("Set VOUCHER_SITE")
    if not re.fullmatch("[!-~]+", BOOK_KEY):  # never print it
        raise ValueError("Set VOUCHER_BOOK_KEY to the key only, without spaces or line ends")


if __name__ == "__main__":
    try:
        check(sys.argv[1:])
        folder, first, last = sys.argv[1:]
        purchases = read_purchases(folder)
        debits = read_debits(first, last)
        differences = list(compare(purchases, debits, first, last))
    except Exception as problem:  # after a crash, Python would end with 1
        print(f"{type(problem).__name__}: {problem}", file=sys.stderr)
        sys.exit(2)
    for line in differences:
        print(line)
    print(f"{len(purchases)} purchases, {len(debits)} debits, {len(differences)} differences")
    sys.exit(1 if differences else 0)
