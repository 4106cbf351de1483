"""Orders: what was bought, and the codes that were delivered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import unquote
from django.db.models import OuterRef, Q, QuerySet, Subquery, Sum
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from unfold.contrib.filters.admin import (
    AutocompleteSelectFilter,
    DropdownFilter,
)
from unfold.decorators import action

from accounts.models import ApiClient
from cases.forms import MOST_BYTES
from cases.models import Case
from cases.selectors import left_to_credit, replacements_of
from catalogue.models import VoucherCode
from core.formats import local_amount
from core.http.body_limits import accepts_bodies_up_to
from core.inputs import is_id
from core.texts import lazy
from merchants.orders.order_file import CELLS
from operators.catalogue.codes import RevealingAdmin, reveal_page
from operators.desk.columns import state_label, text_for_merchant
from operators.frame.base import (
    DETAILS,
    EMPTY,
    MASK,
    BackOfficeList,
    amount,
    link_to,
    link_to_list,
    list_url,
    time_cell,
    url_of,
)
from operators.frame.long_lists import LOOKED_AT, LongList, PeriodFilter, has_few_orders
from operators.history.timeline import Timeline, TimelinePage, order_timeline
from operators.money.booking import MOVE_MONEY, credit
from operators.orders.cases import ANSWER, open_case_of
from operators.orders.remedies import left_to_give, remedies_of
from orders.models import Order
from orders.search import PART, find_goods
from orders.selectors import REFERENCE_PATTERN
from topups.fulfilment.transitions import OPEN
from topups.models import Fulfilment, FulfilmentStatus, RejectReason
from wallets.models import EntryKind, LedgerEntry
from wallets.selectors import left_to_pay_back, paid_back

MAX_CLIENTS_FOUND = 100
OF_CLIENT, OF_ACCOUNT = "client__id__exact", "client__account__id__exact"
STATE, PENDING = "state", "pending"
AMOUNT = re.compile(r"\d{1,12}([.,]\d{1,4})?")
STATES = [
    (PENDING, lazy("Open")),
    ("failed", lazy("Failed")),
    ("kept", lazy("Failed, not paid back")),
    ("paid-back", lazy("Refunded or credited")),
]
# Sub-queries that PostgreSQL runs for each order that the list looks at, and does not join.
STATUS = Subquery(Fulfilment.objects.filter(pk=OuterRef("fulfilment_id")).values("status")[:1])
KEPT = Subquery(
    Fulfilment.objects.filter(
        pk=OuterRef("fulfilment_id"), status=FulfilmentStatus.FAILED, refunded_at=None
    ).values("pk")[:1]
)
TOPUP = Subquery(Fulfilment.objects.filter(pk=OuterRef("fulfilment_id")).values("product")[:1])
PAID_BACK = Subquery(
    LedgerEntry.objects.filter(
        order_reference=OuterRef("reference"), kind__in=[EntryKind.REFUND, EntryKind.CREDIT]
    ).values("pk")[:1]
)


class KindFilter(DropdownFilter):
    title = lazy("kind")
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("voucher", _("Voucher")), ("top_up", _("Top-up"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Order]) -> QuerySet[Order]:
        match self.value():
            case "voucher":
                return queryset.filter(fulfilment=None)
            case "top_up":
                return queryset.filter(fulfilment__isnull=False)
        return queryset


class StateFilter(DropdownFilter):
    """Filters by state, and by whether money was paid back."""

    title = lazy("state")
    parameter_name = STATE

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return STATES

    def queryset(self, request: HttpRequest, queryset: QuerySet[Order]) -> QuerySet[Order]:
        match self.value():
            case "pending":
                newest = Fulfilment.objects.filter(status__in=OPEN).order_by("-created_at")
                ids = list(newest.values_list("pk", flat=True)[:LOOKED_AT])
                return queryset.filter(fulfilment__in=ids)
            case "failed":
                return queryset.alias(of_topup=STATUS).filter(of_topup=FulfilmentStatus.FAILED)
            case "kept":
                return queryset.alias(kept=KEPT).filter(kept__isnull=False)
            case "paid-back":
                return queryset.alias(paid_back=PAID_BACK).filter(paid_back__isnull=False)
        return queryset


class AccountFilter(AutocompleteSelectFilter):
    """Filters by the clients of an account, whose orders an index finds."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Order]) -> QuerySet[Order]:
        account = _chosen_id(self)
        return _of_clients(queryset, _clients_of(account)) if account else queryset


class VoucherFilter(AutocompleteSelectFilter):
    """Filters by the shelf of the codes."""

    name = lazy("voucher product")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.title = self.name


class TopUpFilter(VoucherFilter):
    """Filters by top-up product, without a join."""

    name = lazy("top-up product")

    def queryset(self, request: HttpRequest, queryset: QuerySet[Order]) -> QuerySet[Order]:
        product = _chosen_id(self)
        return queryset.alias(topup=TOPUP).filter(topup=product) if product else queryset


def _chosen_id(one: AutocompleteSelectFilter) -> str:
    """The id that a person chose, or an empty text. Raises IncorrectLookupParameters."""
    chosen = str(one.value() or "")
    if chosen and not is_id(chosen):
        raise IncorrectLookupParameters
    return chosen


def tabs(request: HttpRequest) -> list[dict[str, Any]]:
    """The tabs above the list of orders."""
    if request.path != list_url(Order):
        return []
    chosen = request.GET.get(STATE, "")
    states = [("", _("All")), *STATES]
    return [
        {
            "models": [Order._meta.label_lower],
            "items": [
                {
                    "title": name,
                    "link": list_url(Order, **({STATE: state} if state else {})),
                    "active": state == chosen,
                }
                for state, name in states
            ],
        }
    ]


class OrderList(LongList):
    """Reads what was paid back for the orders of a page with one query, and adds up the totals of
    the orders that a filter or a search finds."""

    total = ""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        orders: list[Any] = list(self.result_list)  # type: ignore[has-type]
        sums = paid_back([order.reference for order in orders])
        for order in orders:
            order.sums = sums.get(order.reference, {})
        self.result_list = orders
        if (self.query or self.get_filters_params()) and not self.paginator.is_capped:
            found = self.queryset.order_by("currency").values_list("currency")
            totals = found.annotate(Sum("total_price"))
            self.total = ", ".join(local_amount(total, currency) for currency, total in totals)


@admin.register(Order)
class OrderAdmin(TimelinePage, RevealingAdmin):
    """An order of either kind: what was bought, all that happened since, and what to do next."""

    list_display = ("created_at", "account", "goods", "quantity", "total", "state", "reference")
    list_display_links = ("created_at", "reference")
    list_filter = (
        StateFilter,
        KindFilter,
        ("client__account", AccountFilter),
        ("shelf", VoucherFilter),
        ("fulfilment__product", TopUpFilter),
        ("client", AutocompleteSelectFilter),
        ("created_at", PeriodFilter),
    )
    list_select_related = (
        "client__account",
        "shelf__product",
        "shelf__variation__product",
    )
    search_fields = ("reference",)
    search_help_text = lazy("Reference (or last 6), product, amount, account or key")
    fieldsets = (
        (
            None,
            {
                "fields": (
                    *("goods", "price", "paid_back", "delivery"),
                    *("account", "client", "replaces", "cases"),
                )
            },
        ),
        (DETAILS, {"fields": ("idempotency_key", "failure_code"), "classes": ["collapse"]}),
    )
    actions_detail = ("reveal", "credit", "open_case")
    export_columns = {
        "account": lambda order: order.client.account,
        **CELLS,
    }
    served = (OF_CLIENT,)
    change_form_outer_before_template = "admin/desk_moves.html"
    change_form_after_template = "admin/delivery_proofs.html"

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        desk = admin.site.get_model_admin(Fulfilment)
        of_order = Fulfilment.objects.filter(order=int(object_id) if is_id(object_id) else 0)
        key = of_order.values_list("pk", flat=True).first()
        context = dict(extra_context or {})
        if key:
            context |= desk.desk_context(request, str(key))  # type: ignore[attr-defined]
        for other in ("claims_next", "next_review"):  # the page is about this order
            context.pop(other, None)
        if (order := self.get_object(request, unquote(object_id))) is not None:
            context["remedies"] = list(remedies_of(self, request, order))
        return super().change_view(request, object_id, form_url, context)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BackOfficeList]:
        return OrderList

    def name_of(self, row: Order) -> str:
        """The product and the account."""
        return f"{row.goods} · {row.client.account}"

    def head_of(self, row: Order) -> dict[str, Any]:
        return {
            "badges": [self.state(row)],
            "money": _money(row),
            "facts": [self.quantity_text(row), time_cell(row.created_at), row.reference],
        }

    def get_queryset(self, request: HttpRequest) -> QuerySet[Order]:
        """Reads the top-ups apart: joined, PostgreSQL might read all of them."""
        orders: QuerySet[Order] = super().get_queryset(request)
        return orders.prefetch_related("fulfilment__product")

    def get_ordering(self, request: HttpRequest) -> Sequence[str]:
        """Orders by number if the list is of one client: an index has its orders by number."""
        is_numbered = OF_CLIENT in request.GET or len(_clients_of(request.GET.get(OF_ACCOUNT))) == 1
        return ("-number",) if is_numbered else self.ordering

    def reads_too_much(self, request: HttpRequest, filters: set[str], term: str) -> bool:
        if filters == {STATE} and request.GET[STATE] == PENDING:  # found by their ids
            filters = set()
        clients = _clients_of(request.GET.get(OF_ACCOUNT))
        if clients and _have_few_orders(clients):
            return False
        if len(clients) == 1 and filters == {OF_ACCOUNT}:
            filters = {OF_CLIENT}
        if not term or REFERENCE_PATTERN.fullmatch(term.upper()):
            return super().reads_too_much(request, filters, term)
        clients = _clients_named(term)
        return not clients or not _have_few_orders(clients)

    def timeline(self, request: HttpRequest, obj: Order) -> Timeline:
        return order_timeline(request, obj, on=obj)

    def search(
        self, queryset: QuerySet[Order], term: str, request: HttpRequest
    ) -> tuple[QuerySet[Order], bool]:
        """Searches by reference, then by the names of clients and accounts. Any other term is
        looked for among LOOKED_AT orders: as an idempotency key, a part of a reference, a name of
        products or a total."""
        if not term:
            return queryset, False
        if REFERENCE_PATTERN.fullmatch(term.upper()):
            return queryset.filter(reference=term.upper()), False
        if clients := _clients_named(term):
            return _of_clients(queryset, clients), False
        goods = find_goods(term)
        wanted = Q(idempotency_key=term) | Q(shelf__in=goods.shelves) | Q(topup__in=goods.topups)
        if PART.fullmatch(term.upper()):
            wanted |= Q(reference__contains=term.upper())
        if AMOUNT.fullmatch(term):
            wanted |= Q(total_price=Decimal(term.replace(",", ".")))
        return queryset.alias(topup=TOPUP).filter(wanted), False

    @admin.display(description=lazy("account"))
    def account(self, order: Order) -> str:
        return link_to(order.client.account)

    @admin.display(description=lazy("product"))
    def goods(self, order: Order) -> str:
        return link_to(order.shelf) if order.fulfilment is None else str(order.fulfilment.product)

    @admin.display(description=lazy("quantity"))
    def quantity_text(self, order: Order) -> str:
        """The contract's quantity and units, such as `6 codes, 2 units of 3`."""
        if order.fulfilment is not None:
            return _("%(quantity)s top-up") % {"quantity": order.quantity}
        codes = ngettext("%(number)s code", "%(number)s codes", order.quantity) % {
            "number": order.quantity
        }
        if order.units_per_sale == 1:
            return codes
        units = ngettext("%(number)s unit of %(size)s", "%(number)s units of %(size)s", order.units)
        return f"{codes}, {units % {'number': order.units, 'size': order.units_per_sale}}"

    @admin.display(description=lazy("total"))
    def total(self, order: Order) -> str:
        return amount(order.total_price, order.currency)

    @admin.display(description=lazy("refunded or credited"))
    def paid_back(self, order: Order) -> str:
        back = order.total_price - left_to_pay_back(order.reference)
        if not back:
            return EMPTY
        return link_to_list(LedgerEntry, amount(back, order.currency), q=order.reference)

    @admin.display(description=lazy("unit price"))
    def price(self, order: Order) -> str:
        return amount(order.unit_price, order.currency)

    @admin.display(description=lazy("state"))
    def state(self, order: Order) -> str:
        """The state of the top-up, as on the desk, and what was paid back. A voucher order is
        completed at once."""
        status = order.fulfilment.status if order.fulfilment else FulfilmentStatus.COMPLETED
        sums = _sums(order)
        if order.case_id:
            more = _("replacement")
        elif sums and order.total_price == sum(sums.values()):  # its column shows the amount
            more = _("credited") if EntryKind.CREDIT in sums else _("refunded")
        else:
            more = _paid_back(order)
        if not more and order.fulfilment is not None:
            more = _refund(order.fulfilment)
        return state_label(FulfilmentStatus(status), more)

    @admin.display(description=lazy("the API says"))
    def failure_code(self, order: Order) -> str:
        return (order.fulfilment and order.fulfilment.failure_reason) or EMPTY

    @admin.display(description=lazy("delivery"))
    def delivery(self, order: Order) -> str:
        if order.fulfilment is not None:
            lines = ((line,) for line in _topup_facts(order.fulfilment))
            return format_html_join("", "<div>{}</div>", lines)
        replaced = replacements_of(order)
        rows = [
            (
                link_to(code, _("Code %(id)s") % {"id": code.pk}),
                MASK,
                format_html(_("replaced by order {}"), link_to(replaced[place]))
                if place in replaced
                else "",
            )
            for place, code in enumerate(_codes_of(order), start=1)
        ]
        return format_html_join("", "<div>{} {} {}</div>", rows) if rows else EMPTY

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Leaves out `reveal` for a top-up, which has no codes, and `credit`, which is among the
        remedies."""
        order = self.get_object(request, unquote(str(object_id)))
        if not isinstance(order, Order):
            return []
        offered = {
            "reveal": order.shelf_id is not None,
            "credit": False,
            "open_case": left_to_give(order) > 0,
        }
        actions = super().get_actions_detail(request, object_id)
        return [one for one in actions if offered[one.method.original_function_name]]

    @admin.display(description=lazy("replaces"))
    def replaces(self, order: Order) -> str:
        return link_to(Case.objects.filter(pk=order.case_id or 0).first())

    @admin.display(description=lazy("cases"))
    def cases(self, order: Order) -> str:
        rows = [
            (link_to(case), case.state_in_words)
            for case in Case.objects.filter(order=order).order_by("pk")
        ]
        return format_html_join("", "<div>{}: {}</div>", rows) if rows else EMPTY

    def has_open_case_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return self.has_view_permission(request) and bool(request.user.has_perm(ANSWER))

    @action(
        description=lazy("Open a case…"),
        icon="support_agent",
        permissions=["open_case"],
        url_path="open-case",
    )
    @accepts_bodies_up_to(MOST_BYTES)
    def open_case(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return open_case_of(self, request, self._order(request, object_id))

    def has_credit_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return self.has_view_permission(request) and bool(request.user.has_perm(MOVE_MONEY))

    @action(
        description=lazy("Credit order…"),
        icon="undo",
        permissions=["credit"],
        url_path="credit",
    )
    def credit(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return credit(self, request, self._order(request, object_id))

    def _order(self, request: HttpRequest, object_id: Any) -> Order:
        order = self.get_object(request, unquote(str(object_id)))
        if not isinstance(order, Order):
            raise Http404
        return order

    @action(
        description=lazy("Reveal codes…"),
        icon="visibility",
        permissions=["reveal"],
        url_path="reveal",
    )
    def reveal(self, request: HttpRequest, object_id: str) -> HttpResponse:
        order = self._order(request, object_id)
        codes = list(_codes_of(order))
        if not codes:
            messages.warning(request, _("This order has no codes."))
            return HttpResponseRedirect(url_of(order))
        return reveal_page(self, request, codes, order=order, about=order)


def _clients_of(account: str | None) -> list[int]:
    """The clients of the account with this id; none without one."""
    if not account or not is_id(account):
        return []
    clients = ApiClient.objects.filter(account=int(account))
    return list(clients.values_list("pk", flat=True))


def _have_few_orders(clients: list[int]) -> bool:
    return has_few_orders(ApiClient.objects.filter(pk__in=clients))


def _of_clients(orders: QuerySet[Order], clients: list[int]) -> QuerySet[Order]:
    """The orders of these clients, by their ids if they are few."""
    if not _have_few_orders(clients):
        return orders.filter(client__in=clients)
    ids = Order.objects.filter(client__in=clients).order_by().values_list("pk", flat=True)
    return orders.filter(pk__in=list(ids[:LOOKED_AT]))


def _clients_named(term: str) -> list[int]:
    """The clients whose name, or whose account's name, contains the text."""
    named = ApiClient.objects.filter(Q(name__icontains=term) | Q(account__name__icontains=term))
    return list(named.order_by("pk").values_list("pk", flat=True)[:MAX_CLIENTS_FOUND])


def _topup_facts(fulfilment: Fulfilment) -> Iterator[str]:
    """The facts of a top-up: its player, its fields, and the state of the work."""
    yield _("Top-up for player %(player)s: %(state)s") % {
        "player": fulfilment.player_id,
        "state": fulfilment.get_status_display(),
    }
    for label, value in fulfilment.labelled_fields:
        yield f"{label}: {value}"
    if fulfilment.claimed_by:
        yield _("Claimed by %(person)s") % {"person": fulfilment.claimed_by}
    if fulfilment.reject_reason:
        reason = RejectReason(fulfilment.reject_reason).label
        yield _("Reason: %(reason)s") % {"reason": reason}
    if text := text_for_merchant(fulfilment):
        yield _("The merchant reads: %(text)s") % {"text": text}


def _codes_of(order: Order) -> QuerySet[VoucherCode]:
    return VoucherCode.objects.filter(order_id=order.pk).order_by("position")


def _sums(order: Any) -> Mapping[str, Decimal]:
    """The sums of refunds and credits, by the kind of the entry. A list has read them."""
    if not hasattr(order, "sums"):
        order.sums = paid_back([order.reference]).get(order.reference, {})
    sums: Mapping[str, Decimal] = order.sums
    return sums


def _paid_back(order: Order) -> str:
    """The sums that were refunded and credited, such as `5.00 USD credited`; empty for nothing."""
    words = {EntryKind.REFUND: _("%(sum)s refunded"), EntryKind.CREDIT: _("%(sum)s credited")}
    sums = _sums(order)
    return ", ".join(
        text % {"sum": amount(sums[kind], order.currency)}
        for kind, text in words.items()
        if kind in sums
    )


def _money(order: Order) -> str:
    """A sentence that says what happened with the price."""
    if order.case_id:
        return _("This order replaced a code and cost nothing.")
    replaced = len(replacements_of(order))
    codes = ngettext("%(number)s code was replaced.", "%(number)s codes were replaced.", replaced)
    return f"{_paid(order)} {codes % {'number': replaced}}" if replaced else _paid(order)


def _paid(order: Order) -> str:
    values = {
        "paid": amount(order.total_price, order.currency),
        "back": _paid_back(order),
        "left": amount(left_to_credit(order), order.currency),
    }
    if order.fulfilment is not None and order.fulfilment.refund_due_at and not values["back"]:
        return _("%(paid)s was paid. A refund is due.") % values
    if not values["back"]:
        return _("%(paid)s was paid. Nothing was refunded or credited.") % values
    if not left_to_credit(order):
        return _("%(paid)s was paid: %(back)s. Nothing is left.") % values
    return _("%(paid)s was paid: %(back)s. %(left)s is left.") % values


def _refund(fulfilment: Fulfilment) -> str:
    """The refund status of a failed top-up; empty for others."""
    if fulfilment.status != FulfilmentStatus.FAILED:
        return ""
    if fulfilment.refunded:
        return _("refunded")
    return _("refund due") if fulfilment.refund_due_at else _("without a refund")
