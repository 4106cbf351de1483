"""Waits until a top-up is completed or has failed. It needs Python 3.9 or newer.

    python wait_for_topup.py ORDER_REFERENCE

The service sends no callbacks, so this program polls. Keep the pause within your rate limit.
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
    """Returns the order once its status is completed or failed."""
    while True:
        order = read(reference)
        if order and order["status"] == "completed":
            return order
        # `refunded` becomes true once the money is back in the wallet. If an operator reviewed the
        # order, it may stay false: contact support then.
        if order and order["status"] == "failed":
            return order
        time.sleep(PAUSE)


def read(reference):
    """Returns the current order, or None if it could not be read this time."""
    request = urllib.request.Request(f"{BASE_URL}/orders/{reference}")
    request.add_header("Authorization", f"Bearer {API_KEY}")
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)["data"]
    except urllib.error.HTTPError as error:
        if error.code < 500 and error.code != 429:
            raise  # an unknown reference or a bad key: waiting does not help
    except (OSError, ValueError):
        pass
    return None


if __name__ == "__main__":
    print(json.dumps(wait(sys.argv[1])))
