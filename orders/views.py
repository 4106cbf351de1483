"""POST /orders, GET /orders and GET /orders/{reference}."""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from accounts.api_access.authentication import caller
from core.api.envelope import success
from core.api.errors import ApiError, ErrorCode
from core.api.json import JSON_MEDIA_TYPE
from core.api.openapi import (
    REPLAY_HEADER,
    documented,
    page_example,
    page_parameters,
    page_schema,
)
from core.api.outcome import outcome_of
from core.api.pagination import page_data, read_page
from core.api.views import ApiViewSet, ok
from core.json_output import dumps
from idempotency.models import MAX_KEY_BYTES
from idempotency.services import (
    KEY_HEADER,
    Replay,
    check_key,
    claim_key,
    fingerprint,
    release_on_refusal,
    store_response,
)
from orders import selectors
from orders.examples import CREATED, DELIVERED_TOP_UP, PURCHASES, READ, VOUCHER_ORDER
from orders.metrics import CountedPurchase
from orders.purchase import purchase_topup, purchase_vouchers
from orders.recovery.purchase_log import log_abandoned
from orders.requests import (
    PurchaseSerializer,
    is_topup,
    read_topup_purchase,
    read_voucher_purchase,
)
from orders.schemas import OrderSerializer

ORDERS_PER_PAGE = 25
LOST_BY_RESTORE = (
    "A request with this `Idempotency-Key` made a purchase whose record was lost when the database"
    " was restored. Do not buy again; keep what you received, and contact support."
)
# Printable ASCII without a comma; HTTP trims spaces.
IDEMPOTENCY_KEY_PATTERN = r"^[!-+\-.-~]([ -+\-.-~]*[!-+\-.-~])?$"
PURCHASE_ERRORS = [
    ErrorCode.IDEMPOTENCY_KEY_REQUIRED,
    ErrorCode.IDEMPOTENCY_KEY_TOO_LONG,
    ErrorCode.IDEMPOTENCY_KEY_REUSED,
    ErrorCode.REQUEST_IN_PROGRESS,
    ErrorCode.REQUEST_ABANDONED,
    ErrorCode.PRODUCT_REFERENCE_NOT_FOUND,
    ErrorCode.PRODUCT_REFERENCE_AMBIGUOUS,
    ErrorCode.VARIATION_MISMATCH,
    ErrorCode.VALIDATION_FAILED,
    ErrorCode.ORDER_REFUSED,
    ErrorCode.SERVER_ERROR,
]


class OrderViewSet(ApiViewSet):
    @extend_schema(
        operation_id="create_order",
        summary="Buy voucher codes or a top-up",
        parameters=[
            OpenApiParameter(
                KEY_HEADER,
                {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": MAX_KEY_BYTES,
                    "pattern": IDEMPOTENCY_KEY_PATTERN,
                },
                OpenApiParameter.HEADER,
                required=True,
                description="The idempotency key: a new one for each purchase, such as your own"
                " order number or a UUID, and the same one in each retry.",
            ),
            REPLAY_HEADER,
        ],
        request=PurchaseSerializer,
        examples=PURCHASES,
        responses=documented(
            OrderSerializer, status=201, errors=PURCHASE_ERRORS, messages=[413], examples=CREATED
        ),
    )
    def create(self, request: Request) -> HttpResponse:
        """Buys voucher codes or a top-up, paid from the wallet.

        The same idempotency key with the same content does not buy twice: a stored success is
        replayed. After a network failure or a 5xx the outcome is unknown. Send the same request
        with the same idempotency key, within one day. The service remembers a key for seven days
        after a success, and for one day if the request never finished. Later, it buys again.
        """
        with CountedPurchase() as count:
            return self._purchase(request, count)

    def _purchase(self, request: Request, count: CountedPurchase) -> HttpResponse:
        key = check_key(request.META.get("HTTP_IDEMPOTENCY_KEY"))
        body: Any = request.data
        topup = is_topup(body)
        count.kind = "top_up" if topup else "voucher"
        purchase = read_topup_purchase(body) if topup else read_voucher_purchase(body)

        client = caller(request)
        content = fingerprint(endpoint="POST /orders", query=_query(request), body=body)
        try:
            claim = claim_key(client=client, key=key, fingerprint=content)
        except ApiError as error:
            if error.code is ErrorCode.REQUEST_ABANDONED:
                reference = error.extra["reference"]
                if not log_abandoned(
                    client=client, key=key, fingerprint=content, reference=reference
                ):
                    raise ApiError(error.code, LOST_BY_RESTORE, reference=reference) from None
            raise
        if isinstance(claim, Replay):
            count.replayed = True
            return _created(claim.body, replay=True)
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

        outcome_of(request).order_reference = order["reference"]
        response = dumps(success(order))
        store_response(claim=claim, body=response)
        return _created(response)

    @extend_schema(
        operation_id="list_orders",
        summary="List orders, newest first",
        parameters=page_parameters(ORDERS_PER_PAGE),
        responses=documented(
            page_schema(OrderSerializer),
            examples=[page_example([DELIVERED_TOP_UP, VOUCHER_ORDER], ORDERS_PER_PAGE)],
        ),
    )
    def list(self, request: Request) -> HttpResponse:
        """This client's orders, newest first, each with its codes."""
        page = read_page(request, default_per_page=ORDERS_PER_PAGE)
        orders, total = selectors.list_orders(client=caller(request), page=page)
        return ok(page_data(orders, page=page, total=total))

    @extend_schema(
        operation_id="get_order",
        summary="Read one order",
        parameters=[
            OpenApiParameter(
                "reference",
                str,
                OpenApiParameter.PATH,
                description="The `reference` that the purchase returned.",
            )
        ],
        responses=documented(OrderSerializer, errors=[ErrorCode.ORDER_NOT_FOUND], examples=READ),
    )
    def retrieve(self, request: Request, reference: str) -> HttpResponse:
        """One order. `order_not_found` (404) for an unknown order and for one of another client."""
        order = selectors.get_order(client=caller(request), reference=reference)
        return ok(order)


def _query(request: Request) -> list[tuple[str, list[str]]]:
    """The query parameters; almost no purchase has any."""
    return list(request.query_params.lists()) if request.META.get("QUERY_STRING") else []


def _created(body: bytes, *, replay: bool = False) -> HttpResponse:
    """201 with exactly these bytes: a replay is the original response, byte for byte."""
    headers = {"Idempotent-Replay": "true"} if replay else {}
    return HttpResponse(body, status=201, content_type=JSON_MEDIA_TYPE, headers=headers)
