"""A shop that passes the exam: it buys through the Python library."""

import json
import os
import time
from pathlib import Path

from voucher_topup import ApiError, Client, Outcome, SQLiteJournal

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
    with Client(address, key, journal) as client:
        learn_limit(client)
        for outcome in client.resume():
            write_result(outcome)
        for order in ORDERS:
            if not has_result(order["order_number"]):
                write_result(client.buy(order["order_number"], order["body"]))
        while journal.open_entries():
            for outcome in client.resume():
                write_result(outcome)


if __name__ == "__main__":
    main()
