"""The page of an account: all that belongs to a merchant, and what staff can do for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.models import Account, ApiClient
from catalogue.models import PriceList
from catalogue.selectors import list_products
from core.api.pagination import Page
from core.backoffice.search import newest_first
from core.database.functions import StatementTimeout, statement_timeout
from core.texts import lazy
from merchants.api_access.clients import clients_of, requests_today
from merchants.models import BalanceAlert, Email, Invitation, Membership
from merchants.people.invitations import live_invitations
from operators.frame.base import amount, link_to, list_url, site_page, staff_of, url_of
from operators.frame.reader import may_view
from operators.merchants.companies import show_company
from operators.sales.report_files import SEES_MARGINS
from operators.sales.sales_overview import READ_SECONDS, SEES_SALES, show_periods
from operators.upkeep.monitoring.readiness import missing_processes
from orders.account_orders import count_open_topups, list_account_orders
from orders.models import Order
from topups.fulfilment.refunds import refunds_due
from topups.models import Fulfilment
from wallets.models import LedgerEntry, Wallet
from wallets.selectors import paid_back

SHOWN = 5  # rows of a section
PEOPLE = 50
PRICES = 50  # of a page
MOST_REFUNDS = 1_000  # due refunds of all accounts that are read
EMAIL_STATES = {
    "sent": lazy("sent"),
    "waiting": lazy("waiting"),
    "given up": lazy("given up"),
}


def show_hub(request: HttpRequest, account: Account) -> dict[str, Any]:
    """The sections of the account's page for this person. Each needs its own permission."""
    user = staff_of(request)
    sections: dict[str, tuple[str, Callable[[Account], Any]]] = {
        "money": ("wallets.view_wallet", _money),
        "sales": (SEES_SALES, _sales),
        "orders": ("orders.view_order", _orders),
        "clients": ("accounts.view_apiclient", _clients),
        "people": ("merchants.view_membership", _people),
        "prices": ("accounts.view_account", _prices),
        "company": ("accounts.view_account", show_company),
        "emails": ("merchants.view_email", _emails),
    }
    visible = {
        name: show(account)
        for name, (permission, show) in sections.items()
        if user.has_perm(permission)
    }
    may = {
        "change": user.has_perm("accounts.change_account"),
        "add_client": user.has_perm("accounts.add_apiclient"),
        "invite": user.has_perm("merchants.add_invitation"),
        "see_ledger": user.has_perm("wallets.view_ledgerentry"),
        "see_margins": user.has_perm(SEES_MARGINS),
        "see_fulfilments": user.has_perm("topups.view_fulfilment"),
    }
    return {"account": account, "may": may, **visible}


def show_prices(request: HttpRequest, account: Account) -> HttpResponse:
    """The products on sale with what the account pays for them, a page at a time."""
    if not staff_of(request).has_perm("accounts.view_account"):
        raise PermissionDenied
    search = request.GET.get("q", "").strip()
    part = Page(page=_page_number(request), per_page=PRICES)
    products, total = list_products(account=account, page=part, search=search)
    last_page = max(1, -(-total // PRICES))
    return site_page(
        request,
        "admin/account_prices.html",
        opts=Account._meta,
        original=account,
        title=_("Voucher prices of %(account)s") % {"account": account},
        account=account,
        back=url_of(account),
        price_list=_price_list(account),
        top_ups_of_list=_top_ups_of_list(request, account),
        rows=_price_rows(account, products),
        total=total,
        search=search,
        page=part.page,
        last_page=last_page,
        query=urlencode({"q": search}),
    )


def _money(account: Account) -> dict[str, Any]:
    wallet = Wallet.objects.filter(account=account).first()
    alert = BalanceAlert.objects.filter(account=account).first()
    entries = LedgerEntry.objects.filter(wallet=account.pk).order_by("-pk")[:SHOWN]
    return {
        "wallet": wallet,
        "balance": amount(wallet.balance, account.currency) if wallet else "",
        "alert": alert and amount(alert.level, account.currency),
        "below": bool(alert and alert.below),
        "entries": [
            {
                "when": entry.created_at,
                "kind": entry.get_kind_display(),
                "amount": f"{'+' if entry.amount > 0 else ''}{amount(entry.amount)}",
                "after": amount(entry.balance_after),
                "url": url_of(entry),
            }
            for entry in entries
        ],
        "all_url": list_url(LedgerEntry, wallet__account__exact=account.pk),
        "wallet_url": url_of(wallet) if wallet else "",
    }


def _sales(account: Account) -> dict[str, Any]:
    try:
        with statement_timeout(READ_SECONDS):
            return {"periods": show_periods(account), "stopped": missing_processes()}
    except StatementTimeout:
        return {"late": True}


def _orders(account: Account) -> dict[str, Any]:
    orders = list_account_orders(account)
    newest: list[Any] = orders.orders(orders.rows.order_by(f"-{orders.key}")[:SHOWN])
    sums, page = paid_back([one.reference for one in newest]), admin.site.get_model_admin(Order)
    for order in newest:
        order.sums = sums.get(order.reference, {})
    return {
        "rows": [
            {
                "reference": order.reference,
                "url": url_of(order),
                "when": order.created_at,
                "what": str(order.shelf or (order.fulfilment and order.fulfilment.product)),
                "client": order.client.name,
                "total": amount(order.total_price, order.currency),
                "status": page.state(order),  # type: ignore[attr-defined]  # OrderAdmin
            }
            for order in newest
        ],
        "all_url": list_url(Order, client__account__id__exact=account.pk),
        "open": count_open_topups(account),
        "open_url": list_url(Fulfilment, account__id__exact=account.pk),
        **_refunds_due(account),
        "refunds_url": list_url(Fulfilment, account__id__exact=account.pk, work="refund_due"),
    }


def _refunds_due(account: Account) -> dict[str, Any]:
    """How many of the oldest due refunds are the account's, and whether there may be more. The due
    ones of all accounts are few, unless refunds stand still."""
    owners = list(refunds_due().values_list("account", flat=True)[: MOST_REFUNDS + 1])
    more = "+" if len(owners) > MOST_REFUNDS else ""
    number = owners[:MOST_REFUNDS].count(account.pk)
    return {"refunds": number, "refunds_text": f"{number}{more}"}


def _clients(account: Account) -> dict[str, Any]:
    return {
        "rows": [
            {
                "client": client,
                "url": url_of(client),
                "keys": client.live_keys,  # type: ignore[attr-defined]  # with_live_keys
                "today": requests_today(client),
                "networks": client.allowed_networks or [_("anywhere")],
            }
            for client in clients_of(account)
        ],
        "add_url": _add_url(ApiClient, account=account.pk),
    }


def _people(account: Account) -> dict[str, Any]:
    members = Membership.objects.filter(account=account).select_related("user").order_by("-pk")
    return {
        "members": [
            {"member": member, "user": member.user, "url": url_of(member)}
            for member in members[:PEOPLE]
        ],
        "invitations": [
            {
                "invitation": invitation,
                "url": url_of(invitation),
                "state": _(invitation.state),
            }
            for invitation in live_invitations(account).order_by("-pk")[:PEOPLE]
        ],
        "invite_url": _add_url(Invitation, account=account.pk),
    }


def _prices(account: Account) -> dict[str, Any]:
    products, total = list_products(account=account, page=Page(page=1, per_page=SHOWN))
    return {
        "rows": _price_rows(account, products)[:SHOWN],
        "total": total,
        "list": _price_list(account),
        "all_url": url_of(account, "prices"),
    }


def _price_list(account: Account) -> str:
    """A link to the price list of the account, or a dash."""
    return link_to(PriceList.objects.filter(pk=account.price_list_id or 0).first())


def _top_ups_of_list(request: HttpRequest, account: Account) -> str:
    """The address of the top-up prices of the account's price list; empty without one."""
    price_list = PriceList.objects.filter(pk=account.price_list_id or 0).first()
    if price_list is None or not may_view(request, PriceList):
        return ""
    return f"{url_of(price_list)}#dataset-topupproduct"


def _price_rows(account: Account, products: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each shelf, from products as the API shows them to the account."""
    return [
        {
            "name": product["name"] if shelf is product else f"{product['name']} / {shelf['name']}",
            "product": product["id"],
            "reference": shelf["merchant_reference"] or "",
            "price": amount(shelf["price"], account.currency),
            "step": shelf["quantity_step"],
            "stock": shelf["available_stock"],
        }
        for product in products
        for shelf in (product, *product["variations"])
    ]


def _emails(account: Account) -> dict[str, Any]:
    """The newest emails to the account's people, invited ones included."""
    addresses = {
        *Membership.objects.filter(account=account).values_list("user__email", flat=True),
        *Invitation.objects.filter(account=account).values_list("email", flat=True),
    }
    newest = Email.objects.filter(to__in=addresses).order_by(newest_first())[:SHOWN]
    return {
        "rows": [
            {
                "email": email,
                "url": url_of(email),
                "state": str(EMAIL_STATES[email.state]),
            }
            for email in newest
        ],
    }


def _page_number(request: HttpRequest) -> int:
    text = request.GET.get("page", "")
    valid = text.isascii() and text.isdecimal() and len(text) < 7
    return max(1, int(text)) if valid else 1


def _add_url(model: type[Model], **query: Any) -> str:
    meta = model._meta
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_add", query=query)
