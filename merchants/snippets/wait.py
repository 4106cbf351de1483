"""Waits until top-ups are delivered, or have failed and are refunded.

    python wait.py REFERENCE...

It needs only Python 3.9+. The service sends no callbacks, so this program
polls. One request reads the 100 newest orders; older ones are read one by
one, one a second. Keep the pause within your rate limit.
A line says how each top-up ended: REFERENCE completed, REFERENCE refunded
or REFERENCE not refunded. For the last one, contact support before you buy
it again.
Exit codes:
    0  each top-up was delivered, or it failed and was refunded
    1  one was not refunded, or cannot be read; a line says why
    64 started wrongly, and this run sent nothing; the reason is printed
"""

import http.client
import json
import os
import re
import sys
import time
import urllib.error
import urllib.request

BASE_URL = os.environ.get("VOUCHER_BASE_URL", "")
API_KEY = os.environ.get("VOUCHER_API_KEY", "")


def seconds(name, usual):
    """Returns the number in a variable, or 0 if it is not a positive number."""
    text = os.environ.get(name) or usual
    return float(text) if re.fullmatch(r"[0-9]{1,6}(\.[0-9]+)?", text) else 0


PAUSE = seconds("VOUCHER_PAUSE_SECONDS", "30")
# How long it waits for a refund, which normally takes seconds, and how long
# it goes on while no order can be read.
PATIENCE = seconds("VOUCHER_PATIENCE_SECONDS", "900")

unreadable = {}  # "since": the first failure after the last order that was read


def wait(references):
    """Yields each reference with how its top-up ended."""
    waiting = dict.fromkeys(references)  # the value: when it had failed
    while True:
        for reference, order in current(list(waiting)):
            if order["status"] == "completed":
                del waiting[reference]
                yield reference, "completed"
            elif order["status"] == "failed":
                failed_at = waiting[reference] = waiting[reference] or time.monotonic()
                # `refunded` is true once the money is back in the wallet.
                if order["refunded"]:
                    del waiting[reference]
                    yield reference, "refunded"
                elif time.monotonic() - failed_at >= PATIENCE:
                    del waiting[reference]
                    yield reference, "not refunded"
        if not waiting:
            return
        time.sleep(PAUSE)


def current(references):
    """Yields the references and orders that can be read now."""
    newest = {}
    if len(references) > 1:
        page = read("/orders?per_page=100")
        if page is None:
            return
        newest = {order["reference"]: order for order in page["items"]}
    pause = 0
    for reference in references:
        order = newest.get(reference)
        if order is None:
            time.sleep(pause)
            pause = 1
            order = read(f"/orders/{reference}")
        if order is not None:
            unreadable.clear()
            yield reference, order


def read(path):
    """Returns the service's data, or None if it cannot be read now.

    Waits and repeats the request after 429. Ends the program if the
    service says that waiting does not help, such as for an unknown
    reference. An answer of a proxy does not say that.
    """
    while True:
        status, answer = call(path)
        if status == 200 and answer.get("success"):
            return answer["data"]
        error = answer.get("error", {})
        if error and 400 <= status < 500 and status != 429:
            sys.exit(f"{path} cannot be read: {error['code']}")
        since = unreadable.setdefault("since", time.monotonic())
        if time.monotonic() - since >= PATIENCE:
            sys.exit("Gave up, because no order could be read: check VOUCHER_BASE_URL")
        print(f"HTTP status {status or 'unknown'}: trying again", file=sys.stderr)
        if status != 429:
            return None
        # A 429 of a proxy does not say how long to wait.
        time.sleep(max(PAUSE, error.get("retry_after_seconds", 0)))


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Takes a redirect as an error: the key must not go elsewhere."""

    def redirect_request(self, *_):
        return None


opener = urllib.request.build_opener(NoRedirect)


def call(path):
    """Returns the status and the service's own JSON.

    Status 0 means that no complete response came. The JSON is empty if
    the response is from elsewhere, such as a proxy.
    """
    headers = {"Authorization": f"Bearer {API_KEY}", "Accept": "application/json"}
    request = urllib.request.Request(BASE_URL + path, headers=headers)
    try:
        try:
            with opener.open(request, timeout=35) as response:
                status, text = response.status, response.read()
        except urllib.error.HTTPError as response:
            status, text = response.code, response.read()
    except (OSError, http.client.HTTPException):
        return 0, {}
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    return status, answer if is_from_service(answer) else {}


def is_from_service(answer):
    """Whether it is {success: true, data} or {success: false, error: {code}}."""
    if not isinstance(answer, dict):
        return False
    if answer.get("success") is True:
        return isinstance(answer.get("data"), dict)
    error = answer.get("error")
    is_error = isinstance(error, dict) and isinstance(error.get("code"), str)
    return answer.get("success") is False and is_error


def problem(references):
    """Returns what is wrong with the start of the program, or None."""
    if not BASE_URL:
        return "Set VOUCHER_BASE_URL"
    if not re.fullmatch("[!-~]+", API_KEY):  # never print it
        return "Set VOUCHER_API_KEY to the key only, without spaces or line ends"
    if not references or not all(re.fullmatch("[0-9A-Za-z_-]+", each) for each in references):
        return "Usage: wait.py REFERENCE..."
    if not PAUSE:
        return "Set VOUCHER_PAUSE_SECONDS to a number of seconds"
    if not PATIENCE:
        return "Set VOUCHER_PATIENCE_SECONDS to a number of seconds"
    return None


if __name__ == "__main__":
    if wrong := problem(sys.argv[1:]):
        print(wrong, file=sys.stderr)
        sys.exit(64)
    exit_code = 0
    for reference, end in wait(sys.argv[1:]):
        print(reference, end, flush=True)
        if end == "not refunded":
            exit_code = 1
    sys.exit(exit_code)
