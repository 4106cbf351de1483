"""Reads the answer to a request together with its API key: one call of the database, not two.

- `POST /orders`: the stored success of this client and idempotency key, for `claim_key`.
- `GET /orders/{reference}`: this client's order with this reference, for `get_order`.

Nothing leaks, and nothing is decided early:

- The SQL functions only read. They look nothing up unless the digest of the whole key matches. So
  not even the time of a response tells anything to those without the secret.
- They look up by the id of the key's client, as a second call would.
- What they found is in `request.auth`, which nothing reads before the view. A request that is
  refused for its key, its client, its address, its rate or its body never gets there.
- A stored success never changes. An order is as current as that of a request a moment earlier.
"""

from contextlib import suppress
from typing import Any

from rest_framework.request import Request

from accounts.api_access.keys import KeyRow, look_up_key
from core.api.errors import ApiError
from core.database.functions import query
from idempotency.services import StoredSuccess, check_key
from orders.selectors import may_be_reference


def look_ahead(request: Request, prefix: str, digest: str) -> list[KeyRow]:
    """The row of the key with this prefix, with the answer if the digest is the key's."""
    reference = request.parser_context["kwargs"].get("reference", "")
    if may_be_reference(reference):
        return query("orders_find_key_and_order", prefix, digest, reference)
    if request.method == "POST":
        with suppress(ApiError):  # the view refuses the idempotency key, after all that comes first
            key = check_key(request.META.get("HTTP_IDEMPOTENCY_KEY"))
            return query("orders_find_key_and_success", prefix, digest, key)
    return look_up_key(prefix, digest)


def stored_success(request: Request) -> StoredSuccess | None:
    """The stored success that was looked up for this purchase; None if there was none."""
    found: Any = request.auth
    if found.get("response") is None:
        return None
    return StoredSuccess(fingerprint=found["fingerprint"], response=found["response"])


def looked_up_orders(request: Request) -> list[dict[str, Any]]:
    """The order that was looked up for this read, or none."""
    found: Any = request.auth
    return [found] if found.get("reference") is not None else []
