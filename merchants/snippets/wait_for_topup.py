"""Waits until a top-up is delivered, or has failed and is refunded. Python 3.9 or newer.

    python wait_for_topup.py ORDER_REFERENCE

There are no callbacks: ask, and not more often than your rate limit allows.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request

BASE_URL = os.environ["VOUCHER_BASE_URL"]
API_KEY = os.environ["VOUCHER_API_KEY"]
PAUSE = float(os.environ.get("VOUCHER_PAUSE_SECONDS", "30"))


def wait(reference):
    """The order in its end state."""
    while True:
        order = read(reference)
        if order and order["status"] == "completed":
            return order
        # `refunded` is true once the money is back. After a review it may stay false: then support
        # decides, and you need not wait here.
        if order and order["status"] == "failed":
            return order
        time.sleep(PAUSE)


def read(reference):
    """The order now; None where it could not be read this time."""
    request = urllib.request.Request(f"{BASE_URL}/orders/{reference}")
    request.add_header("Authorization", f"Bearer {API_KEY}")
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)["data"]
    except urllib.error.HTTPError as error:
        if error.code < 500 and error.code != 429:
            raise  # an unknown reference, a key that does not work: waiting changes nothing
    except (OSError, ValueError):
        pass
    return None


if __name__ == "__main__":
    print(json.dumps(wait(sys.argv[1])))
