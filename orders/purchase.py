"""The two purchases: one debit for one delivery (contract, "POST /orders").

    1 claim     the key is ours for one attempt       idempotency.services.claim_key
    2 purchase  stamp, delivery, debit and order      orders/sql/purchase_vouchers.sql
                                                      or orders/sql/purchase_topup.sql
    3 store     the response, for replays             idempotency.services.store_response

`buy` takes the three steps. Step 2 is one transaction and the only durable commit.
docs/architecture.md, "A purchase", says why one is enough.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db import DatabaseError, Error
from psycopg.types.json import Jsonb
from ulid import ULID

from accounts.models import ApiClient
from catalogue.stock.codes import open_as_json
from core.api.envelope import success
from core.api.errors import (
    ApiError,
    ErrorCode,
    OrderRefused,
    RefusalReason,
    ValidationFailed,
    order_refused,
)
from core.api.outcome import Outcome
from core.database.functions import (
    call,
    is_unavailable,
    query,
    refusal_detail,
    refusal_word,
)
from core.database.key_ring import key_ring
from core.json_output import dumps
from idempotency.lost_attempts import end_later
from idempotency.services import (
    Claim,
    Replay,
    StoredSuccess,
    claim_key,
    fingerprint,
    release_key,
    store_response,
)
from orders.codes import order_secret
from orders.models import OrderStatus
from orders.recovery.purchase_log import log_abandoned, log_purchase
from orders.spending_limits import BEYOND_LIMIT, record_refusal
from topups.fields import NO_OPTIONS, read_fields, unknown_product
from topups.models import Fulfilment, FulfilmentStatus
from topups.signals import fulfilment_opened

NOTHING_ON_SHELF = {RefusalReason.INSUFFICIENT_STOCK, RefusalReason.PRICE_UNAVAILABLE}
LIMIT_REACHED = (
    "The client has reached its spending limit for the day or the month: an owner can raise it."
    " Then send the same request again."
)
BY_VARIATIONS = (
    "This product is sold through its variations: send the variation_id of one, from"
    " `GET /products/{}`."
)
LOST_BY_RESTORE = (
    "A request with this `Idempotency-Key` made a purchase whose record was lost when the database"
    " was restored. Do not buy again; keep what you received, and contact support."
)


@dataclass(frozen=True)
class Bought:
    """The exact bytes of the response to a purchase. A replay has those of the first response."""

    body: bytes = field(repr=False)
    is_replay: bool = False


def buy(
    *,
    client: ApiClient,
    key: str,
    parameters: list[tuple[str, list[str]]],
    body: dict[str, Any],
    topup: bool,
    purchase: dict[str, Any],
    outcome: Outcome,
    stored: StoredSuccess | None = None,
) -> Bought:
    """Buys a top-up or voucher codes, once for each `key`. Returns the response.

    `parameters` and `body` are the request as it was sent: a retry sends the same. `purchase` has
    the validated fields of `body`. `outcome` gets the reference of the order. `stored` is a success
    that was looked up (`claim_key`). Raises what the three steps raise.
    """
    content = fingerprint(endpoint="POST /orders", query=parameters, body=body)
    try:
        claim = claim_key(client=client, key=key, fingerprint=content, stored=stored)
    except ApiError as error:
        if error.code is ErrorCode.REQUEST_ABANDONED:
            reference = error.extra["reference"]
            if not log_abandoned(client=client, key=key, fingerprint=content, reference=reference):
                raise ApiError(error.code, LOST_BY_RESTORE, reference=reference) from None
        raise
    if isinstance(claim, Replay):
        return Bought(claim.body, is_replay=True)

    with release_on_refusal(claim):
        if topup:
            order = purchase_topup(
                client=client,
                claim=claim,
                product_id=purchase["system_product_id"],
                player_id=purchase["player_id"],
                fields=purchase.get("fields", {}),
            )
        else:
            order = purchase_vouchers(
                client=client,
                claim=claim,
                product_id=purchase.get("product_id"),
                variation_id=purchase.get("variation_id"),
                merchant_reference=purchase.get("merchant_reference"),
                quantity=purchase["quantity"],
            )
    outcome.order_reference = order["reference"]

    response = dumps(success(order))
    store_response(claim=claim, body=response)
    return Bought(response)


@contextmanager
def release_on_refusal(claim: Claim) -> Iterator[None]:
    """Releases the key if the block raises a refusal (4xx): the client may send the request again.

    Any other failure leaves the key in progress, because the outcome is unknown. If the database
    was lost, the attempt is ended later, unless it has bought.
    """
    try:
        try:
            yield
        except ApiError as refusal:
            if refusal.code.status < 500:
                release_key(claim)
            raise
    except Error as error:
        if is_unavailable(error):
            end_later(claim)
        raise


def purchase_vouchers(
    *,
    client: ApiClient,
    claim: Claim,
    quantity: int,
    product_id: int | None = None,
    variation_id: int | None = None,
    merchant_reference: str | None = None,
) -> dict[str, Any]:
    """Debits the wallet and takes the codes in one transaction; returns the order to show.

    The product is named by `product_id` or by `merchant_reference`; `quantity` counts codes.

    Raises `validation_failed` for an unknown product, `variation_mismatch`,
    `product_reference_not_found`, `product_reference_ambiguous`, `order_refused` with a reason,
    or `request_in_progress` if another attempt has taken the key over. Raises DatabaseError if the
    shelf's next codes were sealed with an encryption key that this process does not have. None of
    these changes anything.
    """
    reference = str(ULID())
    try:
        with _refusals(client, lambda word: _voucher_refusal(word, merchant_reference)):
            order = call(
                "orders_purchase_vouchers",
                claim.record_id,
                claim.attempt,
                reference,
                client.pk,
                client.account_id,
                product_id,
                variation_id,
                merchant_reference,
                quantity,
                key_ring().ids,
                order_secret(client_id=client.pk, reference=reference),
            )
    except OrderRefused as refused:
        if product_id is not None and variation_id is None and refused.reason in NOTHING_ON_SHELF:
            _name_variations(client, refused.reason, product_id)
        raise
    digests = order.pop("digests")
    log_purchase(
        client_id=client.pk,
        key=claim.key,
        fingerprint=claim.fingerprint,
        reference=reference,
        price=order["total_price"],
        currency=order["currency"],
        sold_at=order["created_at"],
        digests=digests,
    )
    sealed_codes = order.pop("sealed_codes")
    return {
        **order,
        "reference": reference,
        "status": OrderStatus.COMPLETED,
        "quantity": quantity,
        "units": quantity // order["units_per_sale"],
        "codes": open_as_json(sealed_codes, digests),
    }


def purchase_topup(
    *,
    client: ApiClient,
    claim: Claim,
    product_id: int,
    player_id: str,
    fields: dict[str, str | None],
) -> dict[str, Any]:
    """Debits the wallet and opens a fulfilment in one transaction; returns the order to show.

    `fields` maps field ids to the values sent.

    Raises `validation_failed` for an unknown product or invalid field values, `order_refused` with
    a reason, or `request_in_progress` if another attempt has taken the key over. None of these
    changes anything.
    """
    values = read_fields(product_id=product_id, player_id=player_id, values=fields)
    reference = str(ULID())
    with _refusals(client, _topup_refusal):
        order = call(
            "orders_purchase_topup",
            claim.record_id,
            claim.attempt,
            reference,
            client.pk,
            client.account_id,
            product_id,
            player_id,
            Jsonb(values),
        )
    log_purchase(
        client_id=client.pk,
        key=claim.key,
        fingerprint=claim.fingerprint,
        reference=reference,
        price=order["unit_price"],
        currency=order["currency"],
        sold_at=order["created_at"],
    )
    fulfilment_opened.send_robust(sender=Fulfilment, fulfilment_id=order["fulfilment_id"])
    return {
        "reference": reference,
        "status": OrderStatus.PENDING,
        "delivery_type": "top_up",
        "system_product_id": product_id,
        "player_id": player_id,
        "quantity": 1,
        "units": 1,
        "units_per_sale": 1,
        "unit_price": order["unit_price"],
        "total_price": order["unit_price"],
        "currency": order["currency"],
        "created_at": order["created_at"],
        "fulfilment_status": FulfilmentStatus.PENDING,
        "refunded": False,
        "failure_reason": None,
        "codes": [],
    }


@contextmanager
def _refusals(client: ApiClient, to_error: Callable[[str], ApiError]) -> Iterator[None]:
    """Raises the contract's error for the word with which the SQL function in the block refused."""
    try:
        yield
    except DatabaseError as error:
        word = refusal_word(error)
        if word is None:
            raise
        if refusal_detail(error) == BEYOND_LIMIT:
            record_refusal(client)
            reason = RefusalReason.INSUFFICIENT_BALANCE
            raise OrderRefused(reason, LIMIT_REACHED) from None
        raise to_error(word) from None


def _name_variations(client: ApiClient, reason: RefusalReason, product_id: int) -> None:
    """Raises the refusal with what to do, if this merchant can buy the product's variations."""
    if query("catalogue_sells_by_variations", client.account_id, product_id)[0]["answer"]:
        raise OrderRefused(reason, BY_VARIATIONS.format(product_id)) from None


def _voucher_refusal(word: str, merchant_reference: str | None) -> ApiError:
    """The contract's error for the word that orders_purchase_vouchers refused with."""
    match word:
        case "attempt_lost":
            return ApiError(ErrorCode.REQUEST_IN_PROGRESS)
        case "product_unknown":
            return ValidationFailed(
                {"product_id": ["There is no product with this id; see `GET /products`."]}
            )
        case "variation_mismatch":
            return ApiError(ErrorCode.VARIATION_MISMATCH)
        case "product_reference_ambiguous":
            return ApiError(ErrorCode.PRODUCT_REFERENCE_AMBIGUOUS)
        case "product_reference_not_found":
            return ApiError(
                ErrorCode.PRODUCT_REFERENCE_NOT_FOUND, merchant_reference=merchant_reference
            )
        case _:
            return order_refused(word)


def _topup_refusal(word: str) -> ApiError:
    """The contract's error for the word that orders_purchase_topup refused with."""
    match word:
        case "attempt_lost":
            return ApiError(ErrorCode.REQUEST_IN_PROGRESS)
        case "product_unknown":
            return unknown_product()
        case "options_missing":  # the field lost its options after read_fields had checked it
            return ValidationFailed({"fields": [NO_OPTIONS]})
        case _:
            return order_refused(word)
