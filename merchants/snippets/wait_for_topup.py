"""Waits until a top-up is delivered, or has failed and is refunded.

    python wait_for_topup.py ORDER_REFERENCE

It needs only Python 3.9+. The service sends no callbacks, so
this program polls. Keep the pause within your rate limit.
Exit codes:
    0  the top-up was delivered, or it failed and was refunded
    1  not refunded, or the order cannot be read; the last line
       says why
"""

import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.request

BASE_URL = os.environ["VOUCHER_BASE_URL"]
API_KEY = os.environ["VOUCHER_API_KEY"]
PAUSE = float(os.environ.get("VOUCHER_PAUSE_SECONDS", "30"))
# A refund normally takes seconds. If none came after this time, contact
# support.
REFUND_WAIT = float(os.environ.get("VOUCHER_REFUND_WAIT_SECONDS", "900"))


def wait(reference):
    """Returns the order once it is completed, or failed and refunded.

    Also returns a failed order that is not refunded within REFUND_WAIT
    seconds.
    """
    failed_at = None
    while True:
        order = read(reference)
        if not order:
            print("The order cannot be read now: trying again", file=sys.stderr)
        if order and order["status"] == "completed":
            return order
        if order and order["status"] == "failed":
            failed_at = failed_at or time.monotonic()
            # `refunded` is true once the money is back in the wallet.
            if order["refunded"] or time.monotonic() - failed_at >= REFUND_WAIT:
                return order
        time.sleep(PAUSE)


def read(reference):
    """Returns the current order, or None if it cannot be read now.

    Ends the program if the service says that waiting does not help, such
    as for an unknown reference. An answer of a proxy does not say that.
    """
    request = urllib.request.Request(f"{BASE_URL}/orders/{reference}")
    request.add_header("Authorization", f"Bearer {API_KEY}")
    try:
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                status, answer = response.status, json.load(response)
        except urllib.error.HTTPError as response:
            status, answer = response.code, json.load(response)
    except (OSError, http.client.HTTPException, ValueError):
        return None
    # The service's own JSON is {success: true, data} or
    # {success: false, error: {code}}.
    if isinstance(answer, dict) and answer.get("success") is True:
        return answer.get("data")
    if isinstance(answer, dict) and answer.get("success") is False:
        error = answer.get("error")
        code = error.get("code") if isinstance(error, dict) else None
        if isinstance(code, str) and 400 <= status < 500 and status != 429:
            sys.exit(f"The order cannot be read: {code}")
    return None


if __name__ == "__main__":
    ended = wait(sys.argv[1])
    print(json.dumps(ended))
    if ended["status"] == "failed" and not ended["refunded"]:
        sys.exit("The top-up failed and was not refunded. Contact support before you buy it again.")
