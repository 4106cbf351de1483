"""GET /products and /products/{product}: the voucher catalogue."""

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from accounts.api_access.authentication import caller
from catalogue import selectors
from catalogue.examples import PRODUCT
from catalogue.schemas import ProductSerializer
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


class ProductViewSet(ApiViewSet):
    @extend_schema(
        operation_id="list_products",
        summary="List voucher products",
        parameters=[
            *page_parameters(DEFAULT_PER_PAGE),
            OpenApiParameter("search", str, description="Part of the name. Case does not matter."),
            OpenApiParameter(
                "in_stock",
                bool,
                description="Send `1` or `true` to list only products whose `in_stock` is true.",
            ),
        ],
        responses=documented(
            page_schema(ProductSerializer), examples=[page_example([PRODUCT], DEFAULT_PER_PAGE)]
        ),
    )
    def list(self, request: Request) -> HttpResponse:
        """The voucher products. Products that are switched off are left out."""
        page = read_page(request, default_per_page=DEFAULT_PER_PAGE)
        products, total = selectors.list_products(
            account=caller(request).account,
            page=page,
            search=request.query_params.get("search", "").strip(),
            in_stock=request.query_params.get("in_stock", "").lower() in ("1", "true"),
        )
        return ok(page_data(products, page=page, total=total))

    @extend_schema(
        operation_id="get_product",
        summary="Read one voucher product",
        parameters=[PRODUCT_ID],
        responses=documented(
            ProductSerializer,
            errors=[ErrorCode.PRODUCT_NOT_FOUND],
            messages=[404],
            examples=[example(PRODUCT)],
        ),
    )
    def retrieve(self, request: Request, product: int) -> HttpResponse:
        """One product. `product_not_found` (404) if it does not exist or is switched off."""
        data = selectors.get_product(account=caller(request).account, product_id=product)
        return ok(data)
