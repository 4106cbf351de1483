"""Bearer authentication (contract, "Authentication")."""

from functools import partial
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from accounts.addresses import client_address, is_within
from accounts.api_access.keys import KeyRow, client_of, find_key_row, look_up_key, prefix_of
from accounts.models import ApiClient
from core.api.errors import ApiError, ErrorCode
from core.api.outcome import outcome_of

NO_BEARER = "Write `Bearer` and a space before the key: `Authorization: Bearer <API_KEY>`."
ACCOUNT_OFF = "This account is disabled."
CLIENT_OFF = "This client of your account is disabled; keys of its other clients still work."


def caller(request: Request) -> ApiClient:
    """The authenticated client of an API request."""
    client = request.user
    if not isinstance(client, ApiClient):  # every API view requires a client
        raise ApiError(ErrorCode.INVALID_TOKEN)
    return client


class BearerAuthentication(BaseAuthentication):
    """Sets `request.user` to the ApiClient whose key the request carries, and `request.auth` to the
    row with which it was found."""

    def authenticate(self, request: Request) -> tuple[ApiClient, KeyRow]:
        """Raises `missing_token`, `invalid_token`, `client_disabled` or `ip_not_allowed`."""
        header = request.META.get("HTTP_AUTHORIZATION")
        if header is None:
            raise ApiError(ErrorCode.MISSING_TOKEN)
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer":
            raise ApiError(ErrorCode.INVALID_TOKEN, NO_BEARER)
        key = token.strip()
        outcome = outcome_of(request)
        outcome.key_prefix = prefix_of(key)
        look_ahead = request.parser_context["view"].look_ahead
        found = find_key_row(key, partial(look_ahead, request) if look_ahead else look_up_key)
        if found is None:
            raise ApiError(ErrorCode.INVALID_TOKEN)
        client = client_of(found, outcome.key_prefix)
        outcome.client_id, outcome.account_id = client.pk, client.account_id
        if client.account is not None and not client.account.enabled:
            raise ApiError(ErrorCode.CLIENT_DISABLED, ACCOUNT_OFF)
        if not client.enabled:
            raise ApiError(ErrorCode.CLIENT_DISABLED, CLIENT_OFF)
        if client.allowed_networks:
            address = client_address(request)
            if address is None or not is_within(address, client.allowed_networks):
                raise ApiError(ErrorCode.IP_NOT_ALLOWED)
        return client, found

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Documents the key that every endpoint requires."""

    target_class = BearerAuthentication
    name = "bearerAuth"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}
