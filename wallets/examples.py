"""An example of `GET /balance` for the OpenAPI document."""

BALANCE = {"balance": 250.75, "currency": "USD"}
