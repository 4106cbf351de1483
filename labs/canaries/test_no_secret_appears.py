"""Codes, PINs, keys, tokens and passwords go through every path and appear only where they may."""

import base64
import json
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest

from labs.canaries.canaries import ALLOWED, Canaries
from labs.canaries.running import Running, running_service
from labs.canaries.walk import (
    LATER,
    buy,
    buy_topups,
    fail,
    import_codes,
    link_telegram,
    make_buyer,
    use_back_office,
    use_merchant_site,
)
from tests.tasks.running import wait_until

# Every secret that the walk makes or meets. A name that is missing was not tested.
SECRETS = {
    *("code", "serial number", "PIN", "API key", "a wrong API key", "idempotency key"),
    *("player id", "field of a top-up", "password", "a wrong password", "session", "CSRF token"),
    *("invitation link", "reset link", "link code of Telegram", "the bot's token"),
    *("the secret key", "an encryption key", "a password of a server"),
}
# What is allowed to appear, and does. It shows that the sinks are read.
SEEN = {
    ("player id", "database"),
    ("player id", "Telegram"),
    ("field of a top-up", "database"),
    ("field of a top-up", "Telegram"),
    ("idempotency key", "database"),
    ("session", "database"),
    ("invitation link", "emails"),
    ("reset link", "emails"),
}


def walk(running: Running, folder: Path) -> None:
    merchant = make_buyer(running)
    product = import_codes(running, folder, number=8)
    buy(running, merchant, product)
    topup = buy_topups(running, merchant)
    use_merchant_site(running, merchant)
    use_back_office(running)
    link_telegram(running)
    fail(running, merchant, product, topup)


@pytest.mark.django_db(transaction=True)
def test_no_secret_appears_where_it_does_not_belong(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with running_service(monkeypatch) as running:
        walk(running, tmp_path)
        report = partial(running.receiver.report, "task_failed")
        wait_until(report, "a report of the failed task", LATER)
        sinks = running.sinks()
    assert running.canaries.values.keys() == SECRETS
    assert running.canaries.leaks(sinks) == set()
    assert running.canaries.seen(sinks) == SEEN
    assert {name for name, text in sinks.items() if not text} == set()  # nothing was looked at


@pytest.mark.parametrize(
    "form",
    [
        lambda secret: secret.encode(),
        lambda secret: secret.encode().hex().encode(),
        lambda secret: b'{"a": "' + base64.b64encode(b"x" + secret.encode() + b"yz") + b'"}',
        lambda secret: base64.urlsafe_b64encode(b"??" + secret.encode()),
        lambda secret: f"GET /?code={quote(secret)}".encode(),
        lambda secret: json.dumps({"a": [secret]}).encode(),
    ],
)
@pytest.mark.parametrize("name", ["code", "player id"])
def test_control_a_planted_leak_is_found_in_any_form(form: object, name: str) -> None:
    canaries = Canaries()
    secret = canaries.make(name, prefix='é/"')
    planted = {"log": form(secret), "database": form(secret), "cache": b"nothing"}  # type: ignore[operator]
    expected = {"log", "database"} - ALLOWED.get(name, set())
    assert canaries.leaks(planted) == {(name, sink) for sink in expected}
