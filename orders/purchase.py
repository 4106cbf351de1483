"""The purchase: one debit for one delivery.

    1 claim     the key is ours for one attempt
                idempotency.services.claim_key
    2 purchase  order, debit and codes or fulfilment: all or nothing
                orders/sql/purchase_vouchers.sql and purchase_topup.sql
    3 store     the answer, for replays
                idempotency.services.store_response

Only step 2 is a durable commit. docs/architecture.md says why that is enough.
"""

from typing import Any

from psycopg.types.json import Jsonb
from ulid import ULID

from accounts.models import ApiClient
from catalogue.codes import open_code
from config.api.errors import ApiError, ErrorCode, ValidationFailed, order_refused
from config.database.functions import call, refusals
from idempotency.services import Claim
from orders.models import OrderStatus
from topups.fields import read_fields
from topups.models import Fulfilment, FulfilmentStatus
from topups.signals import fulfilment_opened


def purchase_vouchers(
    *,
    client: ApiClient,
    claim: Claim,
    quantity: int,
    product_id: int | None = None,
    variation_id: int | None = None,
    merchant_reference: str | None = None,
    delivery_type: str = "voucher",
) -> dict[str, Any]:
    """Debits the wallet and hands the codes over, in one transaction; returns the order to show.

    Raises `validation_failed` for an unknown product, `variation_mismatch`,
    `product_reference_not_found`, `product_reference_ambiguous`, `order_refused` with its reason,
    or `request_in_progress` where another attempt took the key over. All of them changed nothing.
    """

    def name_refusal(word: str) -> ApiError:
        return _name_refusal(word, merchant_reference=merchant_reference)

    reference = str(ULID())
    with refusals(name_refusal):
        sale = call(
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
        )
    sealed_codes = sale.pop("sealed_codes")
    return {
        **sale,
        "reference": reference,
        "status": OrderStatus.COMPLETED,
        "quantity": quantity,
        "units": quantity // sale["units_per_sale"],
        "codes": [open_code(sealed).shown() for sealed in sealed_codes],
    }


def purchase_topup(
    *,
    client: ApiClient,
    claim: Claim,
    system_product_id: int,
    player_id: str,
    fields: dict[str, str | None] | None = None,
    quantity: int = 1,
    delivery_type: str = "top_up",
) -> dict[str, Any]:
    """Debits the wallet and puts the top-up before the operators, in one transaction; returns the
    order to show.

    Raises `validation_failed` for an unknown product or bad field values, `order_refused` with its
    reason, or `request_in_progress` where another attempt took the key over. All of them changed
    nothing.
    """
    read = read_fields(product_id=system_product_id, player_id=player_id, values=fields or {})
    reference = str(ULID())
    with refusals(_name_refusal):
        sale = call(
            "orders_purchase_topup",
            claim.record_id,
            claim.attempt,
            reference,
            client.pk,
            client.account_id,
            system_product_id,
            player_id,
            Jsonb(read),
        )
    fulfilment_opened.send_robust(sender=Fulfilment, fulfilment_id=sale["fulfilment_id"])
    return {
        "reference": reference,
        "status": OrderStatus.PENDING,
        "delivery_type": delivery_type,
        "system_product_id": system_product_id,
        "player_id": player_id,
        "quantity": quantity,
        "units": 1,
        "units_per_sale": 1,
        "unit_price": sale["unit_price"],
        "total_price": sale["unit_price"],
        "currency": sale["currency"],
        "created_at": sale["created_at"],
        "fulfilment_status": FulfilmentStatus.PENDING,
        "refunded": False,
        "failure_reason": None,
        "codes": [],
    }


def _name_refusal(word: str, *, merchant_reference: str | None = None) -> ApiError:
    """The contract's error for a word that the purchase function refused with."""
    match word:
        case "attempt_lost":
            return ApiError(ErrorCode.REQUEST_IN_PROGRESS)
        case "product_unknown":
            return ValidationFailed({"product_id": ["There is no product with this id."]})
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
