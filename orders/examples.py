"""Example purchases and orders for the OpenAPI document."""

from drf_spectacular.utils import OpenApiExample

from core.api.openapi import example

# Digits below 8, so that PyYAML quotes the number: readers of YAML 1.1 would take it for an octal
# number without quotes, and readers of YAML 1.2 for a decimal one.
PLAYER_ID = "0012345670"
VOUCHER_ORDER = {
    "reference": "01JZX8Q4T5V6W7X8Y9Z0A1B2C3",
    "status": "completed",
    "product_id": 10,
    "variation_id": 100,
    "merchant_reference": "steam-10-eu",
    "quantity": 2,
    "units": 2,
    "units_per_sale": 1,
    "unit_price": 9.49,
    "total_price": 18.98,
    "currency": "USD",
    "created_at": "2026-11-21T09:30:00.123456Z",
    "codes": [
        {"code": "AAAA-BBBB-CCCC", "serial_number": "0001", "pin_code": "1234"},
        {"code": "DDDD-EEEE-FFFF"},
    ],
}
TOP_UP_ORDER = {
    "reference": "01JZX8R9D0E1F2G3H4J5K6M7N8",
    "status": "pending",
    "delivery_type": "top_up",
    "system_product_id": 500,
    "player_id": PLAYER_ID,
    "quantity": 1,
    "units": 1,
    "units_per_sale": 1,
    "unit_price": 4.99,
    "total_price": 4.99,
    "currency": "USD",
    "created_at": "2026-11-21T09:31:00.123456Z",
    "fulfilment_status": "pending",
    "refunded": False,
    "failure_reason": None,
    "codes": [],
}
DELIVERED_TOP_UP = {**TOP_UP_ORDER, "status": "completed", "fulfilment_status": "completed"}

PURCHASES = [
    OpenApiExample(
        "Voucher by product",
        value={"product_id": 10, "variation_id": 100, "quantity": 2},
        request_only=True,
    ),
    OpenApiExample(
        "Voucher by merchant reference",
        value={"merchant_reference": "steam-10-eu", "quantity": 2},
        request_only=True,
    ),
    OpenApiExample(
        "Top-up",
        value={
            "delivery_type": "top_up",
            "system_product_id": 500,
            "player_id": PLAYER_ID,
            "fields": {"1": "eu"},
        },
        request_only=True,
    ),
]
CREATED = [example(VOUCHER_ORDER, "Voucher order"), example(TOP_UP_ORDER, "Top-up order")]
READ = [
    example(VOUCHER_ORDER, "Voucher order"),
    example(DELIVERED_TOP_UP, "Top-up order after the delivery"),
]
