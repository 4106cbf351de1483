"""An example of `GET /ping` for the OpenAPI document."""

PING = {
    "client": "Acme web shop",
    "server_time": "2026-11-21T09:30:00.123456Z",
    "rate_limit_per_minute": 120,
}
