"""Buys once, however often it must retry. It needs only Python 3.9+.

    python buy.py '{"product_id": 10, "quantity": 1}' IDEMPOTENCY_KEY

Make the idempotency key from your own order number, such as order-1042.
Use a new key for each purchase, and store it before you start.
Exit codes:
    0  bought; the order is printed
    1  refused, and this run charged nothing; the error is printed
    2  the outcome is unknown; start again with the same idempotency key
    64 started wrongly, and this run sent nothing; the reason is printed
After 2 or a crash, wait 90 seconds, and start it again with the same key. Of the
refusals, only order_refused is final then: after any other, start it again.
"""

import contextlib
import http.client
import json
import os
import random
import re
import sys
import time
import urllib.error
import urllib.request
from decimal import Decimal

BASE_URL = os.environ.get("VOUCHER_BASE_URL", "")
API_KEY = os.environ.get("VOUCHER_API_KEY", "")
SECOND = float(os.environ.get("VOUCHER_SECOND", "1"))  # tests set a shorter one
PATIENCE = 360 * SECOND  # request_in_progress can last five minutes
LATE = 90 * SECOND  # as long, an attempt without a response may still arrive


class Refused(Exception):
    """This call of buy() charged nothing.

    Branch on error["code"], then on error.get("reason").
    """

    def __init__(self, error):
        super().__init__(error["code"])
        self.error = error


class OutcomeUnknown(Exception):
    """The purchase may have been made.

    Retry with the same body and the same idempotency key, never with a
    new one. Fix `error` first if there is one.
    """

    def __init__(self, error=None):
        super().__init__()
        self.error = error


def buy(body, key):
    """Returns the order. Raises Refused or OutcomeUnknown."""
    unknown_at = None  # when the last attempt with an unknown outcome ended
    ends, whole = time.monotonic() + PATIENCE, SECOND
    while True:
        sent = time.monotonic()
        status, answer = call("POST", "/orders", body, key)
        if status == 201 and answer.get("success"):
            return answer["data"]
        # Only the service's own JSON settles a purchase. After every other
        # response the outcome is unknown.
        error = {"code": "unclear"}
        if 400 <= status < 500:
            error = answer.get("error", error)
        code = error["code"]
        # A 429 of a proxy does not say how long to wait.
        pause = 30 * SECOND if status == 429 else whole * random.uniform(0.5, 1)
        whole = min(2 * whole, 30 * SECOND)
        if code in ("unclear", "request_in_progress", "request_abandoned"):
            unknown_at = time.monotonic()
            if code == "request_abandoned":
                # Bought already: read the order, do not buy again.
                status, answer = call("GET", f"/orders/{error['reference']}")
                if status == 200 and answer.get("success"):
                    return answer["data"]
        elif code == "rate_limited":
            pause = error.get("retry_after_seconds", pause)
        elif unknown_at is None:
            raise Refused(error)
        elif code != "order_refused":
            raise OutcomeUnknown(error)  # it says nothing about earlier attempts
        elif sent >= unknown_at + LATE:
            raise Refused(error)
        else:  # a refusal does not bind the key: an earlier attempt could still buy
            pause = unknown_at + LATE + SECOND - time.monotonic()
        if time.monotonic() + pause > ends:
            raise OutcomeUnknown
        print(f"HTTP status {status or 'unknown'}: trying again", file=sys.stderr)
        time.sleep(max(pause, 0))


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Takes a redirect as an error: the key must not go elsewhere."""

    def redirect_request(self, *_):
        return None


opener = urllib.request.build_opener(NoRedirect)


def call(method, path, body=None, key=None):
    """Returns the status and the service's own JSON.

    Status 0 means that no complete response came. The JSON is empty if
    the response is from elsewhere, such as a proxy.
    """
    headers = {"Authorization": f"Bearer {API_KEY}", "Accept": "application/json"}
    if body is not None:
        headers.update({"Content-Type": "application/json", "Idempotency-Key": key})
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(BASE_URL + path, data, headers, method=method)
    try:
        try:
            with opener.open(request, timeout=35) as response:
                status, text = response.status, response.read()
        except urllib.error.HTTPError as response:
            status, text = response.code, response.read()
    except (OSError, http.client.HTTPException):
        return 0, {}
    try:
        # Amounts must not become binary floats.
        answer = json.loads(text, parse_float=Decimal)
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


def check(arguments):
    """Returns the body and the key. Raises ValueError if the program was started wrongly."""
    if not BASE_URL:
        raise ValueError("Set VOUCHER_BASE_URL")
    if not re.fullmatch("[!-~]+", API_KEY):  # never print it
        raise ValueError("Set VOUCHER_API_KEY to the key only, without spaces or line ends")
    try:
        text, key = arguments
        body = json.loads(text)
        if isinstance(body, dict) and re.fullmatch("[ -~]+", key):
            return body, key
    except (ValueError, RecursionError):
        pass
    raise ValueError("Usage: buy.py BODY IDEMPOTENCY_KEY: a JSON object and printable ASCII")


if __name__ == "__main__":
    try:
        body, key = check(sys.argv[1:])
    except ValueError as problem:
        print(problem, file=sys.stderr)
        sys.exit(64)
    try:
        order = buy(body, key)
        print(json.dumps(order, default=str), flush=True)
    except Refused as refused:
        print(json.dumps(refused.error, default=str))
        sys.exit(1)
    except Exception as unknown:  # uncaught, it would end with 1: refused
        error = unknown.error if isinstance(unknown, OutcomeUnknown) else repr(unknown)
        with contextlib.suppress(OSError):  # standard error may be closed
            if error:
                print(json.dumps(error, default=str), file=sys.stderr)
            message = "The outcome is unknown. Start again with the same idempotency key."
            print(message, file=sys.stderr)
        sys.exit(2)
