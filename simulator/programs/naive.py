"""A shop that fails the exam. Each of its mistakes is common."""

import json
import os
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path

BASE_URL, KEY = os.environ["VOUCHER_BASE_URL"], os.environ["VOUCHER_API_KEY"]
RESULTS = Path(os.environ["EXAM_RESULTS"])


def call(method, path, text=None, key=None):
    request = urllib.request.Request(BASE_URL + path, text and text.encode(), method=method)
    request.add_header("Authorization", f"Bearer {KEY}")
    if text:
        request.add_header("Content-Type", "application/json")
        request.add_header("Idempotency-Key", key)
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def buy(order):
    """Returns what it takes for the outcome."""
    text, key = json.dumps(order["body"]), str(uuid.uuid4())
    for _ in range(20):
        try:
            status, answer = call("POST", "/orders", text, key)
        except (OSError, ValueError):
            key = str(uuid.uuid4())  # a new key after an unknown outcome
            continue  # at once
        if status == 201:
            try:
                return json.loads(answer)["data"]  # amounts as binary floats
            except ValueError:
                return {"reference": "?", "unit_price": 0, "codes": []}  # any 201 is a success
        if status >= 500:
            text = json.dumps(order["body"], indent=2)  # the same, in other bytes
        elif status != 429:
            return None  # a 408 of a proxy is taken for a refusal
    return None


def main():
    print(f"Buying with {KEY}")  # a secret in the log
    known = RESULTS.read_text() if RESULTS.exists() else ""
    for line in Path(os.environ["EXAM_ORDERS"]).open():
        order = json.loads(line)
        number = order["order_number"]
        if f'"{number}"' in known:
            continue
        bought = buy(order)
        result = {"order_number": number, "outcome": "bought" if bought else "refused"}
        if bought:
            result["reference"] = bought["reference"]
            result["total"] = (
                bought.get("unit_price", 0) * order["body"].get("quantity", 1) * 1.1 / 1.1
            )
            if order["body"].get("delivery_type"):
                for _ in range(30):  # polls without a pause
                    try:
                        call("GET", f"/orders/{bought['reference']}")
                    except (OSError, ValueError):
                        time.sleep(0)
        with RESULTS.open("a") as file:
            file.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
