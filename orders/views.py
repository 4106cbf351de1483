"""POST /orders, GET /orders and GET /orders/{reference}."""

from typing import Any, Self

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from accounts.api_access.authentication import caller
from core.api.errors import ApiError, ErrorCode
from core.api.exceptions import BEFORE_THE_API, as_api_error
from core.api.json import JSON_MEDIA_TYPE
from core.api.openapi import (
    LINKS,
    REPLAY_HEADER,
    documented,
    page_example,
    page_parameters,
    page_schema,
)
from core.api.outcome import outcome_of
from core.api.pagination import page_data, read_page
from core.api.views import ApiViewSet, ok
from core.http.turns import NoPlace, Turns
from core.telemetry.metrics import Count
from idempotency.models import MAX_KEY_BYTES
from idempotency.services import KEY_HEADER, check_key
from orders import selectors
from orders.examples import CREATED, DELIVERED_TOP_UP, PURCHASES, READ, VOUCHER_ORDER
from orders.look_ahead import look_ahead, looked_up_orders, stored_success
from orders.purchase import Bought, buy
from orders.requests import PurchaseSerializer, read_purchase
from orders.schemas import OrderSerializer

ORDERS_PER_PAGE = 25
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


# A page may have 10,000 codes. The lists of one account leave two of the threads of a process free.
LISTS = Turns(of_owner=6, of_group=6, places=7)
TOO_MANY_LISTS = (
    "Several lists of orders of this account are under way: wait until one has arrived, then ask"
    " for the next one."
)
OUTCOMES = Count(
    "voucher_purchases",
    "POST /orders after authentication, by kind (`voucher`, `top_up`, or `unknown` if the body did"
    " not say), outcome (`created`, `replayed` or the error code) and reason (of `order_refused`).",
    *("kind", "outcome", "reason"),
)


class CountedPurchase:
    """Counts the purchase that its block handles. The block sets `kind`, and `replayed`.

    An exception that leaves the block is counted by the code of its response, and goes on. A
    request that never reached the API is no purchase.
    """

    kind = "unknown"
    replayed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None:
            OUTCOMES.add(self.kind, "replayed" if self.replayed else "created", "")
        elif isinstance(error, Exception) and not isinstance(error, BEFORE_THE_API):
            failed = as_api_error(error)
            OUTCOMES.add(self.kind, failed.code.value, failed.extra.get("reason", ""))


class OrderViewSet(ApiViewSet):
    look_ahead = staticmethod(look_ahead)

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
        extensions={
            LINKS: {
                "ReadOrder": {
                    "operationId": "get_order",
                    "parameters": {"reference": "$response.body#/data/reference"},
                    "description": "Reads the order that the purchase created.",
                }
            }
        },
    )
    def create(self, request: Request) -> HttpResponse:
        """Buys voucher codes or a top-up, paid from the wallet.

        The same idempotency key with the same content does not buy twice: a stored success is
        replayed. After a network failure or a 5xx the outcome is unknown. Send the same request
        with the same idempotency key, within one day. The service remembers a key for seven days
        after a success, and for one day if the request never finished. Later, it buys again.
        """
        with CountedPurchase() as count:
            key = check_key(request.META.get("HTTP_IDEMPOTENCY_KEY"))
            body: Any = request.data
            topup = is_topup(body)
            count.kind = "top_up" if topup else "voucher"
            purchase = read_purchase(body, topup=topup)
            bought = buy(
                client=caller(request),
                key=key,
                parameters=_parameters(request),
                body=body,
                topup=topup,
                purchase=purchase,
                outcome=outcome_of(request),
                stored=stored_success(request),
            )
            count.replayed = bought.is_replay
        return _created_response(bought)

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
        client = caller(request)
        try:
            with LISTS.turn(client.pk, group=client.account_id):
                orders, total = selectors.list_orders(client=client, page=page)
                return ok(page_data(orders, page=page, total=total))
        except NoPlace:
            raise ApiError(ErrorCode.RATE_LIMITED, TOO_MANY_LISTS, retry_after_seconds=1) from None

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
        order = selectors.get_order(client=caller(request), rows=looked_up_orders(request))
        return ok(order)


def is_topup(body: dict[str, Any]) -> bool:
    """Whether a purchase body asks for a top-up; without a `delivery_type` it asks for vouchers."""
    return body.get("delivery_type") == "top_up"


def _parameters(request: Request) -> list[tuple[str, list[str]]]:
    """The query parameters; almost no purchase has any."""
    return list(request.query_params.lists()) if request.META.get("QUERY_STRING") else []


def _created_response(bought: Bought) -> HttpResponse:
    """201 with exactly these bytes: a replay is the original response, byte for byte."""
    headers = {"Idempotent-Replay": "true"} if bought.is_replay else {}
    return HttpResponse(bought.body, status=201, content_type=JSON_MEDIA_TYPE, headers=headers)
