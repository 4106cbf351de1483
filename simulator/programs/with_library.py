"""A shop that passes the exam: it buys through the Python library."""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from voucher_topup import ApiError, Client, Outcome, Rules, SQLiteJournal

WORKERS = int(sys.argv[1]) if len(sys.argv) > 1 else 1
SECOND = float(os.environ.get("VOUCHER_SECOND", "1"))  # tests set a shorter one
RULES = Rules(attempt_lifetime=90 * SECOND)
FOLDER, RESULTS = Path(os.environ["EXAM_FOLDER"]), Path(os.environ["EXAM_RESULTS"])
ORDERS = [json.loads(line) for line in Path(os.environ["EXAM_ORDERS"]).open()]


def write_result(outcome: Outcome) -> None:
    result = {"order_number": outcome.order_number, "outcome": outcome.kind}
    if outcome.kind == "bought":
        result["reference"] = outcome.order.reference
        result["total"] = str(outcome.order.total_price)
    with RESULTS.open("a") as file:
        # The empty line ends a line that a kill has cut.
        file.write("\n" + json.dumps(result) + "\n")


def has_result(number: str) -> bool:
    text = RESULTS.read_text() if RESULTS.exists() else ""
    return f'"{number}", "outcome": "bought"' in text or f'"{number}", "outcome": "ref' in text


def learn_limit(client: Client) -> None:
    """Asks until the service tells the limit. It may refuse for a moment."""
    while True:
        try:
            client.ping()
        except ApiError:
            time.sleep(1)
        else:
            return


def main() -> None:
    journal = SQLiteJournal(FOLDER / "purchases.db")
    address, key = os.environ["VOUCHER_BASE_URL"], os.environ["VOUCHER_API_KEY"]
    with Client(address, key, journal, rules=RULES) as client, ThreadPoolExecutor(WORKERS) as pool:
        learn_limit(client)
        for outcome in client.resume():
            write_result(outcome)
        # A purchase stays open, or its order cannot be read for a moment: buying goes on with both.
        while missing := [one for one in ORDERS if not has_result(one["order_number"])]:
            bought = pool.map(lambda one: client.buy(one["order_number"], one["body"]), missing)
            for outcome in bought:
                write_result(outcome)
            if journal.open_entries():
                time.sleep(SECOND)


if __name__ == "__main__":
    main()
