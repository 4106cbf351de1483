"""A running server logs one JSON object per line, with the X-Request-Id and without secrets."""

import json
import logging
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from accounts.models import ApiClient
from core.telemetry.logs import SHARED_PROCESSORS
from tests.contract.situations import (
    data,
    make_shop,
    unreadable_codes,
)
from tests.factories import Merchant, make_client
from tests.live import LiveServer

pytestmark = pytest.mark.django_db(transaction=True)

SECRETS_SENT = {
    "Idempotency-Key": "idempotency-key-of-the-merchant",
    "User-Agent": "user-agent-with-a-password",
    "Cookie": "sessionid=cookie-of-somebody",
}


def lines_of(log: str) -> list[dict[str, Any]]:
    """The lines of the log as objects, including the lines of granian."""
    return [json.loads(line) for line in log.splitlines() if line.strip()]


def test_the_log_has_every_response_and_no_secret(live: LiveServer) -> None:
    shop = make_shop(codes=3)
    merchant = Merchant(shop.merchant.client, http=live.http)
    body = json.dumps({"product_id": shop.product.pk, "quantity": 1})
    headers = {name: value for name, value in SECRETS_SENT.items() if name != "Idempotency-Key"}
    key = SECRETS_SENT["Idempotency-Key"]

    bought = merchant.post(body, key=key, **headers)
    answers = [
        bought,
        merchant.post(body, key=key, **headers),
        merchant.post('{"merchant_reference": "text-of-the-merchant", "x": 1}', key="a"),
        merchant.post('{"not json": text-of-the-merchant', key="a"),
        merchant.get("/orders"),
        merchant.get("/products", search="search-of-the-merchant"),
        merchant.get("/nothing"),
        live.http.get("/api/v1/ping", headers={"Authorization": "Bearer junk-key-of-somebody"}),
        live.http.get("/api/v1/ping", headers={"Authorization": f"Basic {merchant.key}"}),
    ]
    with unreadable_codes(shop.product):
        answers.append(merchant.post(body, key="lost", **headers))
    assert [answer.status_code for answer in answers] == [
        *(201, 201, 422, 422, 200, 200, 404, 401, 401),
        500,
    ]

    log = live.log
    lines = lines_of(log)
    for answer in answers:
        found = [line for line in lines if line.get("request_id") == answer["X-Request-Id"]]
        assert answer.status_code in [line.get("code") for line in found], answer.content
    codes = [part for code in data(bought)["codes"] for part in code.values() if len(part) > 4]
    for secret in [
        *codes,
        *SECRETS_SENT.values(),
        merchant.key,
        merchant.key.rpartition("_")[2],
        "junk-key-of-somebody",
        "text-of-the-merchant",
        "search-of-the-merchant",
    ]:
        assert secret not in log, secret


def test_an_unexpected_error_is_logged_with_its_cause(live: LiveServer) -> None:
    shop = make_shop()
    merchant = Merchant(shop.merchant.client, http=live.http)
    with unreadable_codes(shop.product):
        answer = merchant.buy("one", product_id=shop.product.pk, quantity=1)
    errors = [
        line
        for line in lines_of(live.log)
        if line.get("request_id") == answer["X-Request-Id"] and line["level"] == "error"
    ]
    assert "CannotOpen" in errors[0]["exception"]


def test_a_database_error_is_logged_without_row_values(
    transactional_db: None,
) -> None:
    client = make_client()
    with pytest.raises(IntegrityError) as refused, transaction.atomic():
        ApiClient.objects.filter(pk=client.pk).update(
            name="player-of-somebody", rate_limit_per_minute=0
        )
    assert "player-of-somebody" in str(refused.value)
    error = RuntimeError("while it was handled")
    error.__cause__ = refused.value
    event: Any = {"exc_info": error, "error": str(refused.value), "event": repr(refused.value)}

    for processor in SHARED_PROCESSORS:
        event = processor(logging.getLogger("test"), "error", event)

    assert "player-of-somebody" not in str(event)
    assert "accounts_apiclient_rate_limit_is_positive" in event["error"]
    assert "accounts_apiclient_rate_limit_is_positive" in event["exception"]
    assert "while it was handled" in event["exception"]
