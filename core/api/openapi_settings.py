"""Settings of drf-spectacular that are the same in every deployment and name no app.

`config.settings` imports this module, so it must not import Django.
"""

from typing import Any

from core.api.paths import API_BASE

OPENAPI_SETTINGS: dict[str, Any] = {
    "TITLE": "Voucher and Player-ID Top-up Purchasing API",
    "VERSION": "1.1.0",
    "OAS_VERSION": "3.0.3",
    "DESCRIPTION": (
        "Buy voucher codes and game top-ups from a prepaid wallet. Send"
        " `Authorization: Bearer <API_KEY>` with every request and an `Idempotency-Key` with every"
        " purchase.\n\n"
        "A success is `{success: true, data}`. A failure is"
        " `{success: false, error: {code, message}}`; branch on `error.code`. A request that is"
        " rejected before it reaches the API (unknown path, wrong method) returns only"
        " `{message}`.\n\n"
        "Money values are exact JSON numbers; read them as decimals."
    ),
    "CONTACT": {"name": "Support"},
    "LICENSE": {"name": "MIT", "url": "https://opensource.org/license/mit"},
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": API_BASE,
    "SCHEMA_PATH_PREFIX_TRIM": True,
    "SERVERS": [{"url": API_BASE}],
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "core.api.openapi.allow_null_beside_enums",
        "core.api.openapi.set_success_values",
        "core.api.openapi.add_request_ids",
        "core.api.openapi.require_bodies",
        "core.api.openapi.add_links",
    ],
}
