"""GET /topup-products and /topup-products/{product}: the top-up catalogue."""

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from accounts.api_access.authentication import caller
from core.api.errors import ErrorCode
from core.api.openapi import (
    PRODUCT_ID,
    documented,
    example,
    page_example,
    page_parameters,
    page_schema,
)
from core.api.pagination import DEFAULT_PER_PAGE, page_data, read_page
from core.api.views import ApiViewSet, ok
from topups import selectors
from topups.examples import TOP_UP_PRODUCT
from topups.schemas import TopUpProductSerializer


class TopUpProductViewSet(ApiViewSet):
    @extend_schema(
        operation_id="list_topup_products",
        summary="List top-up products",
        parameters=[
            *page_parameters(DEFAULT_PER_PAGE),
            OpenApiParameter("search", str, description="Part of the name. Case does not matter."),
        ],
        responses=documented(
            page_schema(TopUpProductSerializer),
            examples=[page_example([TOP_UP_PRODUCT], DEFAULT_PER_PAGE)],
        ),
    )
    def list(self, request: Request) -> HttpResponse:
        """The top-up products. Products that are not sold are left out."""
        page = read_page(request, default_per_page=DEFAULT_PER_PAGE)
        products, total = selectors.list_topup_products(
            account=caller(request).account,
            page=page,
            search=request.query_params.get("search", "").strip(),
        )
        return ok(page_data(products, page=page, total=total))

    @extend_schema(
        operation_id="get_topup_product",
        summary="Read one top-up product",
        parameters=[PRODUCT_ID],
        responses=documented(
            TopUpProductSerializer,
            errors=[ErrorCode.PRODUCT_NOT_FOUND],
            messages=[404],
            examples=[example(TOP_UP_PRODUCT)],
        ),
    )
    def retrieve(self, request: Request, product: int) -> HttpResponse:
        """One top-up product. `product_not_found` (404) if it does not exist or is not sold."""
        data = selectors.get_topup_product(account=caller(request).account, product_id=product)
        return ok(data)
