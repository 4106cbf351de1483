"""The outcome of an API request, for its record."""

from dataclasses import dataclass
from typing import Any

from core.api.errors import ApiError


@dataclass
class Outcome:
    """Facts from the code that handled a request.

    key_prefix: of the API key, also if the key does not work.
    client_id, account_id: whose key it was, also if the client is switched off.
    error: why the request failed.
    order_reference: of the order that it bought.
    """

    key_prefix: str = ""
    client_id: int | None = None
    account_id: int | None = None
    error: ApiError | None = None
    order_reference: str = ""


def outcome_of(request: Any) -> Outcome:
    """The outcome of a request, Django's or DRF's. It is empty at first."""
    inner = vars(request).get("_request", request)
    outcome: Outcome = vars(inner).setdefault("outcome", Outcome())
    return outcome
