"""The rows of the contract's tables, copied by hand.

A test is parametrized over each table by `table` below: a row without a case fails, and a case
without a row fails. The rows of top-ups are in separate lists, named TOP_UP_…
"""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

# Contract, "Errors": code and HTTP status.
ERROR_CODES = {
    "missing_token": 401,
    "invalid_token": 401,
    "client_disabled": 403,
    "ip_not_allowed": 403,
    "rate_limited": 429,
    "client_without_wallet": 409,
    "idempotency_key_required": 400,
    "idempotency_key_too_long": 400,
    "idempotency_key_reused": 409,
    "request_in_progress": 409,
    "request_abandoned": 409,
    "validation_failed": 422,
    "variation_mismatch": 422,
    "product_not_found": 404,
    "product_reference_not_found": 404,
    "product_reference_ambiguous": 422,
    "order_not_found": 404,
    "order_refused": 409,
    "server_error": 500,
}

# Contract, "Reasons under order_refused", in the order in which they are checked.
REASONS = [
    "product_inactive",
    "quantity_step",
    "price_unavailable",
    "client_without_wallet",
    "insufficient_stock",
    "insufficient_balance",
]

# Contract, "Endpoints": the statuses of each endpoint besides 401, 403 and 429.
ENDPOINTS = {
    "GET /ping": {200},
    "GET /balance": {200, 409},
    "GET /products": {200},
    "GET /products/{product}": {200, 404},
    "GET /orders": {200},
    "POST /orders": {201, 400, 404, 409, 422, 500},
    "GET /orders/{reference}": {200, 404},
}
TOP_UP_ENDPOINTS = {
    "GET /topup-products": {200},
    "GET /topup-products/{product}": {200, 404},
}

# Contract, "Authentication": callers that every endpoint refuses, with status and code.
IDENTITIES = {
    "no header": (401, "missing_token"),
    "other scheme": (401, "invalid_token"),
    "empty token": (401, "invalid_token"),
    "junk token": (401, "invalid_token"),
    "unknown key": (401, "invalid_token"),
    "wrong secret": (401, "invalid_token"),
    "expired key": (401, "invalid_token"),
    "revoked key": (401, "invalid_token"),
    "disabled client": (403, "client_disabled"),
    "disabled account": (403, "client_disabled"),
    "IPv4 not on the allowlist": (403, "ip_not_allowed"),
    "IPv6 not on the allowlist": (403, "ip_not_allowed"),
    "rate limited": (429, "rate_limited"),
}

# Contract, "Resources and their fields" and "Error object": the type of each field.
FIELDS = {
    "Ping": {
        "client": "string",
        "server_time": "date-time",
        "rate_limit_per_minute": "integer",
    },
    "Balance": {"balance": "number", "currency": "string"},
    "Pagination": {
        "page": "integer",
        "per_page": "integer",
        "total": "integer",
        "last_page": "integer",
    },
    "Product": {
        "id": "integer",
        "name": "string",
        "type": "string or null",
        "currency": "string",
        "merchant_reference": "string or null",
        "available_stock": "integer",
        "in_stock": "boolean",
        "price": "number or null",
        "quantity_step": "integer",
        "sellable": "boolean",
        "variations": "array",
    },
    "Variation": {
        "id": "integer",
        "name": "string",
        "merchant_reference": "string or null",
        "available_stock": "integer",
        "price": "number or null",
        "quantity_step": "integer",
        "sellable": "boolean",
    },
    "Code": {"code": "string", "serial_number": "string", "pin_code": "string"},
    "VoucherOrder": {
        "reference": "string",
        "status": "string",
        "product_id": "integer",
        "variation_id": "integer or null",
        "merchant_reference": "string or null",
        "quantity": "integer",
        "units": "integer",
        "units_per_sale": "integer",
        "unit_price": "number",
        "total_price": "number",
        "currency": "string",
        "created_at": "date-time or null",
        "codes": "array",
    },
    "Error": {
        "code": "string",
        "message": "string",
        "reason": "string or null",
        "fields": "object",
        "reference": "string",
        "merchant_reference": "string",
        "retry_after_seconds": "integer",
        "recovery": "object",
    },
}
OPTIONAL_FIELDS = {
    "Code": {"serial_number", "pin_code"},
    "Error": {
        "reason",
        "fields",
        "reference",
        "merchant_reference",
        "retry_after_seconds",
        "recovery",
    },
}
TOP_UP_FIELDS = {
    "TopUpProduct": {
        "id": "integer",
        "name": "string",
        "category": "string or null",
        "delivery_type": "string",
        "price": "number",
        "currency": "string",
        "available_stock": "integer or null",
        "sellable": "boolean",
        "quantity_step": "integer",
        "max_quantity": "integer",
        "fields": "array",
    },
    "TopUpField": {
        "id": "integer",
        "name": "string",
        "label": "string",
        "type": "string",
        "required": "boolean",
        "options": "array",
    },
    "TopUpFieldOption": {"value": "string", "label": "string or null"},
    "TopUpOrder": {
        "reference": "string",
        "status": "string",
        "delivery_type": "string",
        "system_product_id": "integer",
        "player_id": "string",
        "quantity": "integer",
        "units": "integer",
        "units_per_sale": "integer",
        "unit_price": "number",
        "total_price": "number",
        "currency": "string",
        "created_at": "date-time or null",
        "fulfilment_status": "string",
        "refunded": "boolean",
        "failure_reason": "string or null",
        "codes": "array",
    },
}
FIELDS |= TOP_UP_FIELDS

# Contract, "Query parameters of list endpoints".
LIST_PARAMETERS = {
    "GET /products": {"page", "per_page", "search", "in_stock"},
    "GET /orders": {"page", "per_page"},
}
TOP_UP_LIST_PARAMETERS = {"GET /topup-products": {"page", "per_page", "search"}}

# Contract, "Catalogue visibility rules" 1 and 2; rule 3 is below, for top-up products.
VISIBILITY = ["product off", "category off", "product missing", "variation off"]

TOP_UP_VISIBILITY = [
    "product off",
    "unpublished",
    "category off",
    "mapped to a provider",
    "product missing",
]

# Contract, "Voucher purchase body", rules.
VOUCHER_RULES = [f"rule {number}" for number in range(1, 8)]

# Contract, "Top-up purchase body", rules.
TOP_UP_RULES = [f"rule {number}" for number in range(1, 5)]

# Contract, "Top-up order" under "States and transitions".
TOP_UP_TRANSITIONS = ["accepted", "delivered", "rejected", "uncertain"]

# Contract, "Idempotency record".
RECORD_ROWS = [
    "in progress, window open",
    "in progress, window over, purchase exists",
    "in progress, window over, no purchase",
    "stored success, same content",
    "cleanup of a success",
    "cleanup of an unfinished record",
]

# Contract, "Idempotency rules".
IDEMPOTENCY_RULES = [f"rule {number}" for number in range(1, 7)]

# Contract, "Limits".
LIMITS = [
    "requests per minute",
    "per_page",
    "page",
    "voucher quantity",
    "Idempotency-Key length",
    "merchant_reference length",
    "in-progress window",
    "retention of successes",
    "retention of unfinished records",
]
TOP_UP_LIMITS = ["top-up quantity", "player_id length", "fields object"]

# Contract, "Response envelope".
ENVELOPE = ["success of a read", "success of a purchase", "failure", "before the API"]

# docs/architecture.md, "A purchase": the checks, in their order.
CHECKS = [
    "method",
    "authentication",
    "allowlist",
    "rate limit",
    "idempotency key",
    "fields",
    "idempotency lookup",
    "reference",
    "variation",
    "active",
    "quantity_step",
    "price",
    "wallet",
    "stock",
    "balance",
]


def table(rows: Iterable[str], cases: Mapping[str, Any]) -> pytest.MarkDecorator:
    """Parametrizes `case` over a table. The key of a case is its row, or `row: detail`."""
    named = {name.partition(":")[0] for name in cases}
    assert named == set(rows), f"rows without a case, or cases without a row: {named ^ set(rows)}"
    return pytest.mark.parametrize(
        "case", [pytest.param(case, id=name) for name, case in cases.items()]
    )
