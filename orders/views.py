"""POST /orders, GET /orders and GET /orders/{reference}."""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.authentication import caller
from config.api.envelope import success
from config.api.json import JSON_MEDIA_TYPE, dumps
from config.api.openapi import PAGE_PARAMETERS, answers, page_of
from config.api.pagination import page_data, read_page
from config.api.views import ApiViewSet, ok
from idempotency.services import (
    Replay,
    check_key,
    claim_key,
    fingerprint,
    released_on_refusal,
    store_response,
)
from orders import selectors
from orders.purchase import purchase_vouchers
from orders.serializers import VoucherOrderSerializer, VoucherPurchaseSerializer

DEFAULT_PER_PAGE = 25


class OrderViewSet(ApiViewSet):
    @extend_schema(
        operation_id="create_order",
        parameters=[
            OpenApiParameter(
                "Idempotency-Key",
                {"type": "string", "minLength": 1, "maxLength": 128},
                OpenApiParameter.HEADER,
                required=True,
                description="A new UUID for each independent purchase; the same on retries.",
            )
        ],
        request=VoucherPurchaseSerializer,
        responses=answers(VoucherOrderSerializer, status=201, errors=(400, 404, 409, 422, 500)),
    )
    def create(self, request: Request) -> HttpResponse:
        """Buys. The same key with the same content never buys twice."""
        key = check_key(request.META.get("HTTP_IDEMPOTENCY_KEY"))
        body: Any = request.data
        asked = VoucherPurchaseSerializer(data=body)
        asked.is_valid(raise_exception=True)

        claim = claim_key(
            client=caller(request),
            key=key,
            fingerprint=fingerprint(
                endpoint="POST /orders", query=list(request.query_params.lists()), body=body
            ),
        )
        if isinstance(claim, Replay):
            return _created(claim.body, replay=True)
        with released_on_refusal(claim):
            order = purchase_vouchers(client=caller(request), claim=claim, **asked.validated_data)

        answer = dumps(success(VoucherOrderSerializer(order).data))
        store_response(claim=claim, body=answer)
        return _created(answer)

    @extend_schema(
        operation_id="list_orders",
        parameters=PAGE_PARAMETERS,
        responses=answers(page_of(VoucherOrderSerializer)),
    )
    def list(self, request: Request) -> Response:
        """This client's orders, newest first, each with its codes."""
        page = read_page(request, default_per_page=DEFAULT_PER_PAGE)
        orders, total = selectors.list_orders(client=caller(request), page=page)
        items = VoucherOrderSerializer(orders, many=True).data
        return ok(page_data(items, page=page, total=total))

    @extend_schema(
        operation_id="get_order", responses=answers(VoucherOrderSerializer, errors=(404,))
    )
    def retrieve(self, request: Request, reference: str) -> Response:
        """One order. `order_not_found` (404) also for an order of another key."""
        order = selectors.get_order(client=caller(request), reference=reference)
        return ok(VoucherOrderSerializer(order).data)


def _created(body: bytes, *, replay: bool = False) -> HttpResponse:
    """201 with exactly these bytes, so that a replay is the original answer to the letter."""
    headers = {"Idempotent-Replay": "true"} if replay else {}
    return HttpResponse(body, status=201, content_type=JSON_MEDIA_TYPE, headers=headers)
