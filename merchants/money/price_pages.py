"""The Prices page: what the account pays, and since when."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts.models import Account
from catalogue.selectors import products_on_sale, with_name
from core.formats import local_amount
from merchants.frame.exports import File, back_to, file_view, table_file
from merchants.frame.pages import show
from merchants.money.price_list import COLUMNS, price_rows, topup_prices, voucher_prices
from merchants.people.access import Member, member_page
from topups.selectors import topup_products_on_sale

PER_PAGE = 50
MAX_PAGE = 100_000


@require_safe
@member_page()
def prices(request: HttpRequest, member: Member) -> HttpResponse:
    """Shows the account's prices of vouchers, or of top-ups, a page at a time."""
    search = request.GET.get("search", "").strip()
    top_ups = request.GET.get("kind") == "top_up"
    products: QuerySet[Any] = topup_products_on_sale() if top_ups else products_on_sale()
    products = with_name(products, search) if search else products
    total = products.count()
    last_page = max(1, -(-total // PER_PAGE))
    number = _page_number(request.GET.get("page"))
    on_page = list(products.order_by("pk")[(number - 1) * PER_PAGE : number * PER_PAGE])
    found = topup_prices if top_ups else voucher_prices
    query: dict[str, str | int] = {"search": search, **({"kind": "top_up"} if top_ups else {})}
    return show(
        request,
        member,
        "merchants/prices.html",
        title=_("Prices"),
        rows=[
            {"row": row, "price": None if row.price is None else local_amount(row.price)}
            for row in found(member.account, on_page)
        ],
        top_ups=top_ups,
        search=search,
        page=number,
        last_page=last_page,
        total=total,
        previous_query=urlencode({**query, "page": number - 1}),
        next_query=urlencode({**query, "page": number + 1}),
    )


@file_view(back_to("merchants:prices"))
def export(request: HttpRequest, account: Account, format: str) -> File:
    """All prices of the account."""
    return table_file("prices", format, columns=COLUMNS, rows=price_rows(account), mark=False)


def _page_number(text: str | None) -> int:
    valid = text is not None and text.isascii() and text.isdecimal() and len(text) < 7
    return min(max(1, int(text)), MAX_PAGE) if valid and text else 1
