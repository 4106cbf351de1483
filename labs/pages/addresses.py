"""The lists, filters, searches, pages and exports of both sites, from what Django registers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django import forms
from django.contrib import admin
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from accounts.models import ApiKey, RequestRecord
from audit.models import AuditAction
from catalogue.models import Batch, CodeHold, PriceList, Shelf, VoucherCode
from catalogue.stock.batches import STATES
from figures.margins import MOST_DAYS, By
from figures.sales import today
from merchants import urls_docs
from merchants.api_access.request_pages import RequestFilter
from merchants.models import Invitation
from merchants.money.wallet_pages import StatementFilter
from merchants.orders.order_pages import OrderFilter
from operators.admin.action_forms import ACTION_FORMS
from operators.history.audit_trail_page import TrailFilter
from operators.imports.models import ImportKind
from operators.sales.margins import CHOICES, MarginForm
from orders.models import Order
from tests.merchants.pages.test_identity_matrix import DO, ROWS
from tests.operators.back_office import list_url, shown_models
from wallets.models import EntryKind, LedgerEntry, Wallet, WalletClose

# The back office's pages that are no list and no row of one.
OF_STAFF = (
    *("admin:index", "system", "system_now", "audit_trail", "who_saw_codes", "passkeys"),
    *("time_zone", "margins", "margins_file", "month_end"),
)
# The history has no session besides that of the member, who has no second factor to remove.
LEAD_ELSEWHERE = {"two_factor", "two_factor_off", "backup_codes"}
# Pages of rows that only forms use, or that lead elsewhere in the state that their row has.
OF_FORMS = {
    "accounts_account_switch_on": "the account is enabled",
    "accounts_apiclient_switch_on": "the client is enabled",
    "accounts_account_decide_company": "the account proposes no company data",
    "auth_user_end_access": "accepts only forms",
    "auth_user_end_sessions": "accepts only forms",
    "auth_user_remove_second_factor": "accepts only forms",
    "auth_user_send_link": "accepts only forms",
    "auth_user_unlock_sign_in": "accepts only forms",
    "merchants_membership_block": "accepts only forms",
    "merchants_membership_end_sessions": "accepts only forms",
    "merchants_membership_remove_second_factor": "accepts only forms",
    "merchants_membership_unblock": "accepts only forms",
    "merchants_membership_unlock_sign_in": "accepts only forms",
    "cases_case_assign": "accepts only forms",
    "cases_case_file": "sends a file",
    "cases_case_propose": "the person may replace the code",
    "catalogue_shelf_import_codes": "leads to the upload",
    "catalogue_product_import_catalogue": "leads to the upload",
    "catalogue_vouchercode_import_codes": "leads to the upload",
    "catalogue_pricelist_import_prices": "leads to the upload",
    "catalogue_pricelist_import_prices_of_list": "leads to the upload",
    "catalogue_pricelist_compare_list": "leads to the comparison",
    "catalogue_pricelist_set_prices": "needs a selection; price_pages() has one",
    "figures_exchangerate_import_rates": "leads to the upload",
    "imports_fileimport_new_prices": "leads to the upload",
    "imports_fileimport_new_rates": "leads to the upload",
    "merchants_invitation_approve": "the member of staff who invited may not approve",
    "imports_fileimport_new_catalogue": "leads to the upload",
    "imports_fileimport_new_codes": "leads to the upload",
    "imports_fileimport_changes": "a file",
    "imports_fileimport_problems": "the import has no problem",
    "imports_fileimport_step": "accepts only forms",
    "catalogue_shelf_change_price": "leads to the page of many prices",
    "catalogue_shelf_new_prices": "needs a selection of a list",
    "catalogue_shelf_withdraw_price": "the shelf has no next price",
    "topups_topupproduct_change_price": "leads to the page of many prices",
    "topups_topupproduct_new_prices": "needs a selection of a list",
    "topups_topupproduct_withdraw_price": "the product has no next price",
    "imports_fileimport_part": "accepts only parts of a file",
    "wallets_announcedtransfer_confirm": "leads to the booking of the deposit",
    "wallets_ledgerentry_reverse": "the newest entry is a purchase",
    "topups_fulfilment_next": "accepts only forms",
    "topups_fulfilment_deliver_next": "accepts only forms",
    "topups_fulfilment_move": "accepts only forms",
    "topups_fulfilment_add_proof": "the top-up is open",
    "topups_fulfilment_proof_file": "sends a file",
}
NO_SUCH = "nothing-like-this"
PART = "er"  # of many names and values
PERIODS = (
    *(("2026-01-01", "2026-01-31"), ("2020-01-01", "2020-12-31")),
    *(("2020-01-01", ""), ("", "2026-01-31")),
)
BIG = "1"  # the account and the client with a third of all orders


@dataclass(frozen=True)
class Address:
    """A page, or a form that is sent to one."""

    path: str
    sent: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        sent = urlencode(self.sent)
        return f"POST {self.path} {sent}" if sent else self.path


def staff_pages(browser: Client) -> Iterator[Address]:
    """The lists of the back office with each filter, search and last page, the pages of a row of
    each, and the other pages."""
    yield from map(Address, map(reverse, OF_STAFF))
    for days in ("7", "30", "60"):
        yield Address(reverse("admin:index", query={"days": days}))
    for page in ("audit_trail", "audit_trail_file"):
        yield from (Address(reverse(page, query=query)) for query in trail_queries())
    for about in ("batch:1", "product:1", "account:1"):
        yield Address(reverse("who_saw_codes", query={"about": about}))
    yield from (Address(reverse("margins", query=query)) for query in margin_queries())
    for text in texts():
        yield Address(reverse("search"), {"q": text})
    for text in ("", *texts()):
        yield Address(reverse("find_batches", query={"term": text}))
    yield from (Address(reverse("begin", args=[name])) for name in ACTION_FORMS)
    yield from price_pages()
    for model in shown_models():
        yield from pages_of(browser, model)


def price_pages() -> Iterator[Address]:
    """Two price lists side by side, the same for a merchant, and a form of 100 prices."""
    last, first = PriceList.objects.latest("pk").pk, PriceList.objects.earliest("pk").pk
    for query in (
        {"left": first, "right": last, "kind": "shelf"},
        {"left": first, "right": last, "kind": "shelf", "different": "on"},
        {"account": BIG, "right": last, "kind": "topupproduct", "different": "on"},
        {"account": BIG, "kind": "shelf", "q": NO_SUCH},
    ):
        yield Address(reverse("admin:catalogue_pricelist_compare", query=query))
    rows = [
        f"shelf-{pk}" for pk in Shelf.objects.order_by("-pk").values_list("pk", flat=True)[:100]
    ]
    form = reverse("admin:catalogue_pricelist_set_prices", args=[last])
    yield Address(f"{form}?{urlencode({'row': rows}, doseq=True)}")


def pages_of(browser: Client, model: Any) -> Iterator[Address]:
    """The list of a model with its filters, searches and last page, and the pages of a row."""
    first = list_url(model)
    answer = browser.get(first)
    if answer.status_code == 302:  # a list that leads to its only page
        yield Address(answer["Location"])
        return
    yield Address(first)
    shown = answer.context["cl"]
    queries = [query for spec in shown.filter_specs for query in choices_of(spec, shown)]
    if shown.search_fields:
        queries += [{"q": text} for text in texts()]
        if browser.get(first, {"q": PART}).context["cl"].multi_page:
            queries.append({"q": PART, "p": "2"})
    if shown.multi_page:
        queries.append({"p": str(shown.paginator.num_pages)})
    yield from (Address(f"{first}?{urlencode(query)}") for query in queries if query)
    row = row_of(model, shown)
    if row is None:
        return
    page = admin.site._registry[model]
    meta = model._meta
    opened = {"change"}
    opened |= {"add"} if page.has_add_permission(answer.wsgi_request) else set()
    opened |= {"delete"} if page.has_delete_permission(answer.wsgi_request, row) else set()
    prefix = f"{meta.app_label}_{meta.model_name}_"
    for pattern in page.get_urls():
        name = str(pattern.name or "").removeprefix(prefix)
        is_own = name not in ("changelist", "history", "add", "change", "delete", "")
        if name in opened or (is_own and pattern.name not in OF_FORMS):
            yield Address(reverse(f"admin:{pattern.name}", kwargs=arguments(pattern, row)))


def row_of(model: Any, shown: Any) -> Any:
    """The newest row, of those whose pages all open."""
    if model is VoucherCode:
        return VoucherCode.objects.filter(STATES["in-stock"]).latest("pk")
    if model is Batch:  # of codes that were sold
        return Batch.objects.earliest("first_code")
    if model is CodeHold:  # of many codes
        return CodeHold.objects.filter(voided_at=None).earliest("pk")
    if model is Invitation:
        return Invitation.objects.filter(accepted_at=None, withdrawn_at=None).latest("pk")
    if model is Order:  # of the big account, and paid
        return Order.objects.filter(client_id=int(BIG)).latest("pk")
    if model is Wallet:  # with a month that is closed
        return WalletClose.objects.earliest("day").wallet
    return next(iter(shown.result_list), None)


def arguments(pattern: URLPattern, row: Any) -> dict[str, Any]:
    """The arguments of a page about the row."""
    fixed = {"kind": ImportKind.CODES.value, "format": "csv", "file_format": "csv"}
    if pattern.name == "accounts_apiclient_revoke_key":
        fixed["key_id"] = row.keys.latest("pk").pk
    if pattern.name == "wallets_wallet_statement":
        fixed["month"] = f"{WalletClose.objects.earliest('day').day:%Y-%m}"
    return {name: fixed.get(name, row.pk) for name in pattern.pattern.converters}


def texts() -> list[str]:
    """Searches of people: for whole values, for parts, and for nothing that exists."""
    order = Order.objects.filter(client_id=int(BIG)).latest("pk")
    request = RequestRecord.objects.latest("pk")
    return [
        NO_SUCH,
        order.reference,
        "01HISTORY00000000000000ABC",
        order.reference[-6:],  # a part
        "player1003",
        "past-1003",
        str(request.request_id),
        str(order.pk),
        "Merchant 1",
        "Product",
        str(LedgerEntry.objects.filter(kind=EntryKind.DEPOSIT).earliest("pk").booking_reference),
    ]


def trail_queries() -> list[dict[str, str]]:
    """The filters of the audit trail; a test compares their names with the form."""
    return [
        {},
        {"who": "shell:anna"},
        {"who": NO_SUCH},
        {"about": "account:1"},
        {"of": "account", "about": "Merchant 1"},
        {"about": "01HISTORY00000000000000ABC"},
        {"about": NO_SUCH},
        {"kind": AuditAction.PRICE_CHANGED.value},
        {"kind": AuditAction.CHAT_MOVED.value},
        *({"since": since, "until": until} for since, until in PERIODS),
    ]


def margin_queries() -> Iterator[dict[str, str]]:
    """The reports of sales and margins: of this month, of a year and of everything, and of one
    account, product, top-up product and supplier. A test compares their names with the form."""
    last = today()
    for by in CHOICES:
        yield {"by": by}
        if by is By.DAY:  # of a short period
            yield {"by": by, "since": f"{last - timedelta(days=MOST_DAYS - 1)}"}
            continue
        yield {"by": by, "since": f"{last - timedelta(days=364)}", "until": f"{last}"}
        yield {"by": by, "since": "2020-01-01"}
    of_one = {"account": BIG, "product": "1", "topup": "1", "supplier": "Supplier 1"}
    for name, value in of_one.items():
        yield {name: value, "since": "2020-01-01"}
    yield {"account": BIG, "product": "1", "since": "2020-01-01"}


def choices_of(spec: Any, shown: Any) -> list[dict[str, str]]:
    """The parameters of each choice of a filter. A filter by times or days gets periods.

    A filter by a related row gets that of the first and of the last row, the big one, and the
    newest, to which no row may lead.
    """
    if isinstance(spec, AutocompleteSelectFilter):
        rows = shown.model._default_manager.filter(**{f"{spec.field_path}__isnull": False})
        found = rows.values_list(spec.field_path, flat=True)
        ends = [found.order_by(order).first() or BIG for order in ("pk", "-pk")]
        newest = spec.field.related_model._default_manager.latest("pk").pk
        return [{spec.lookup_kwarg: value} for value in sorted({*map(str, ends), BIG, str(newest)})]
    choices = list(spec.choices(shown))
    fields = {
        name: field
        for choice in choices
        if "form" in choice
        for name, field in choice["form"].fields.items()
    }
    queries = [
        {name: str(value)}
        for name, field in fields.items()
        for value, _ in getattr(field, "choices", ())
        if value not in ("", None)
    ]
    kinds = (forms.DateField, forms.SplitDateTimeField)
    dates = [(name, one) for name, one in fields.items() if isinstance(one, kinds)]
    for days in PERIODS if dates else ():
        query: dict[str, str] = {}
        for (name, one), day in zip(dates, days, strict=True):
            if day and isinstance(one, forms.DateField):
                query[name] = day
            elif day:
                query |= {f"{name}_0": day, f"{name}_1": "00:00:00"}
        queries.append(query)
    return queries or [
        dict(parse_qsl(choice["query_string"][1:])) for choice in choices if "form" not in choice
    ]


def merchant_pages(order: Order) -> Iterator[Address]:
    """The pages of the merchant site that a member of the order's account opens, with each filter
    and search, and the public documentation. Left out are those about people, sessions and
    invitations."""
    key = ApiKey.objects.filter(client=order.client_id).latest("pk")
    ids = {"reference": order.reference, "client_id": order.client_id, "key_id": key.pk}
    for name, row in ROWS.items():
        if name in LEAD_ELSEWHERE:
            continue
        if row.least and row.how != DO and set(row.names) <= set(ids):
            yield Address(row.path(name, ids))
    for name, queries in merchant_filters().items():
        path = ROWS[name].path(name, ids)
        yield from (Address(f"{path}?{urlencode(query)}") for query in queries)
    for name in ("orders", "requests", "search"):
        for text in texts():
            yield Address(ROWS[name].path(name, ids), {"q": text})
    for pattern in urls_docs.urlpatterns:
        words = {"name": "buy.py"} if pattern.name == "snippet" else {}
        yield Address(reverse(f"docs:{pattern.name}", kwargs=words))


def merchant_filters() -> dict[str, list[dict[str, str]]]:
    """The filters and old pages of the merchant site's lists; a test compares their names with
    the forms."""
    periods = [{"since": since, "until": until} for since, until in PERIODS]
    kinds = [{"kind": kind} for kind in EntryKind.values]
    statuses = [{"status": status} for status in ("pending", "completed", "failed")]
    old = {"page": "50"}
    return {
        "orders": [
            *(*periods, *statuses, {"client": BIG}, {"client": BIG, **periods[0]}, old),
            *({"product": "a"}, {"product": "nothing", **periods[0]}),
        ],
        "requests": [{"client": BIG}, {"code": "refused"}, {"code": "rate_limited"}, old],
        "wallet": [*periods, *kinds, old],
        "statement_export": [*periods[:2], *kinds],
        "signed_statement": periods[:1],
    }


def untried_filters() -> set[str]:
    """The fields of forms that filter, as `list: field`, which no address here uses."""
    forms_of: dict[str, Any] = {
        "orders": OrderFilter,
        "requests": RequestFilter,
        "wallet": StatementFilter,
        "statement_export": StatementFilter,
        "audit_trail": TrailFilter,
        "margins": MarginForm,
    }
    tried = {
        name: {one for query in all for one in query} for name, all in merchant_filters().items()
    }
    fields = {name: set(form.base_fields) - {"q"} for name, form in forms_of.items()}
    tried["audit_trail"] = {one for query in trail_queries() for one in query}
    fields["audit_trail"] = set(TrailFilter.base_fields)
    tried["margins"] = {one for query in margin_queries() for one in query}
    return {f"{name}: {one}" for name, all in fields.items() for one in all - tried[name]}


def unlisted_names() -> set[str]:
    """The named pages under /admin/ outside the admin's own that no list here has."""
    named = {
        str(pattern.name)
        for pattern in get_resolver("config.urls_pages").url_patterns
        if isinstance(pattern, URLPattern)
        and pattern.name
        and str(pattern.pattern).startswith("admin/")
    }
    return named - {*OF_STAFF, "begin", "find_batches", "search", "audit_trail_file"}
