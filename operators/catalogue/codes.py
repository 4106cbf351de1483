"""Voucher codes: masked in all lists, revealed on one page, with an audit entry for each code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import unquote
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import action, display
from unfold.enums import ActionVariant

from catalogue.models import CodeHold, VoucherCode
from catalogue.stock.batches import STATES, batch_of
from core.api.serializer_fields import MAX_ID
from core.database.sealing import CannotOpen
from core.formats import local_number
from core.inputs import InputProblem
from core.texts import lazy
from operators.catalogue.batches import STATE_NAMES, CodesInWords, HoldingAdmin
from operators.catalogue.code_reveal import Revealed, reveal_codes
from operators.frame.base import (
    EMPTY,
    MASK,
    Colours,
    ConditionFilter,
    ConfirmAgainForm,
    link_to,
    page,
    staff_of,
    url_of,
)
from operators.frame.long_lists import LongRecordAdmin
from operators.history.timeline import Timeline, TimelinePage, timeline_of
from operators.imports.models import ImportKind
from operators.imports.pages import may_import, upload_url
from orders.models import Order

REVEAL = "catalogue.reveal_vouchercode"
NAMES = {"code": lazy("Code"), "serial_number": lazy("Serial number"), "pin_code": "PIN"}


ORDERINGS = {
    "in-stock": ("shelf", "position"),
    "sold": ("-order_id", "-position"),
    "held": ("-hold", "-pk"),
    "void": ("-hold", "-pk"),
}


class StateFilter(ConditionFilter):
    title = lazy("state")
    parameter_name = "state"
    conditions = STATES
    names = {state: capfirst(name) for state, name in STATE_NAMES.items()}


class RevealingAdmin(LongRecordAdmin):
    """Pages that reveal codes. To reveal needs a permission besides the view permission."""

    def has_reveal_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return self.has_view_permission(request) and staff_of(request).has_perm(REVEAL)


@admin.register(VoucherCode)
class VoucherCodeAdmin(TimelinePage, HoldingAdmin, RevealingAdmin):
    list_display = ("id", "masked_code", "shelf", "state", "order", "imported_at")
    list_filter = (StateFilter, ("shelf", AutocompleteSelectFilter))
    list_select_related = ("shelf__product", "shelf__variation__product", "hold")
    search_fields = ("id",)
    search_help_text = lazy("ID in this list, or order reference")
    list_before_template = "admin/how_to_find_a_code.html"
    fields = (
        *("id", "masked_code", "shelf", "batch", "state", "order", "merchant", "expires_on"),
        "imported_at",
    )
    actions = ("hold_selected", "release_selected", "void_selected")  # type: ignore[assignment]
    actions_detail = ("reveal", "hold", "release", "void")
    actions_list = ("import_codes",)
    served = ("state",)
    filters_of_links = ("id__gte", "id__lte")  # the codes of a batch

    def get_ordering(self, request: HttpRequest) -> Sequence[str]:
        """Codes with one state are in the order of the index of that state: sold codes by their
        sale, the last first, and codes in stock as they will be sold."""
        return ORDERINGS.get(request.GET.get("state", ""), self.ordering)

    def reads_too_much(self, request: HttpRequest, filters: set[str], term: str) -> bool:
        """Codes in stock and held codes have an index of their own, also for a shelf. Those of a
        batch are in the order of the list."""
        few = request.GET.get("state") in ("in-stock", "held", "void")
        few = few or (filters == set(self.filters_of_links) and not term)
        return not few and super().reads_too_much(request, filters, term)

    def position_of(self, request: HttpRequest) -> str:
        """Sold codes rise by their order."""
        return "order_id" if request.GET.get("state") == "sold" else "pk"

    def get_queryset(self, request: HttpRequest) -> QuerySet[VoucherCode]:
        references = Order.objects.filter(pk=OuterRef("order_id")).values("reference")
        codes: QuerySet[VoucherCode] = super().get_queryset(request)
        return codes.defer("sealed", "digest").annotate(order_reference=Subquery(references))

    def search(
        self, queryset: QuerySet[VoucherCode], term: str, request: HttpRequest
    ) -> tuple[QuerySet[VoucherCode], bool]:
        if not term:
            return queryset, False
        if term.isascii() and term.isdecimal() and len(term) < 20 and int(term) <= MAX_ID:
            return queryset.filter(pk=int(term)), False
        order = Order.objects.filter(reference=term.upper()).first()
        return (queryset.filter(order_id=order.pk) if order else queryset.none()), False

    @admin.display(description=lazy("code"))
    def masked_code(self, code: VoucherCode) -> str:
        return MASK

    @display(
        description=lazy("state"),
        label=Colours(
            {
                STATE_NAMES["sold"]: "info",
                STATE_NAMES["in-stock"]: "success",
                STATE_NAMES["held"]: "warning",
                STATE_NAMES["void"]: "danger",
            }
        ),
    )
    def state(self, code: VoucherCode) -> str:
        return str(STATE_NAMES[state_of(code)])

    @admin.display(description=lazy("order"))
    def order(self, code: VoucherCode) -> str:
        if code.order_id is None:
            return EMPTY
        return link_to(Order(pk=code.order_id), getattr(code, "order_reference", ""))

    @admin.display(description=lazy("batch"))
    def batch(self, code: VoucherCode) -> str:
        batch = batch_of(code)
        return link_to(batch) if batch else EMPTY

    @admin.display(description=lazy("merchant"))
    def merchant(self, code: VoucherCode) -> str:
        if code.order_id is None:
            return EMPTY
        order = Order.objects.select_related("client__account").get(pk=code.order_id)
        return link_to(order.client.account) if order.client.account else EMPTY

    def timeline(self, request: HttpRequest, obj: VoucherCode) -> Timeline:
        return replace(
            timeline_of(request, obj), empty=_("Nobody has revealed this code in the back office.")
        )

    def has_import_permission(self, request: HttpRequest) -> bool:
        return may_import(staff_of(request), ImportKind.CODES)

    @action(
        description=lazy("Import codes…"),
        icon="upload_file",
        permissions=["import"],
        url_path="import",
    )
    def import_codes(self, request: HttpRequest) -> HttpResponse:
        return HttpResponseRedirect(upload_url(ImportKind.CODES))

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Offers to hold a code in stock, and to release or void a held one."""
        code = self.get_object(request, unquote(str(object_id)))
        if not isinstance(code, VoucherCode):
            return []
        is_held = code.hold is not None and code.hold.voided_at is None
        offered = {
            "reveal": True,
            "hold": code.order_id is None and code.hold is None,
            "release": is_held,
            "void": is_held,
        }
        actions = super().get_actions_detail(request, object_id)
        return [one for one in actions if offered[one.method.original_function_name]]

    @action(description=lazy("Hold…"), icon="lock", permissions=["hold"], url_path="hold")
    def hold(self, request: HttpRequest, object_id: str) -> HttpResponse:
        code: VoucherCode = self.find(request, object_id)
        return self.ask_to_hold(request, code, Q(pk=code.pk), chosen=_number([code]))

    def held_codes(self, row: VoucherCode) -> tuple[Q | CodeHold, CodesInWords]:
        return Q(pk=row.pk), _number([row])

    @admin.action(description=lazy("Hold…"), permissions=["hold"])
    def hold_selected(
        self, request: HttpRequest, queryset: QuerySet[VoucherCode]
    ) -> HttpResponse | None:
        """Holds the codes that are ticked in the list, or all that the list shows."""
        return _ask_about(queryset, request, self.ask_to_hold)

    @admin.action(description=lazy("Release…"), permissions=["hold"])
    def release_selected(
        self, request: HttpRequest, queryset: QuerySet[VoucherCode]
    ) -> HttpResponse | None:
        """Releases the codes that are ticked in the list, or all that the list shows."""
        return _ask_about(_selected(request, queryset), request, self.ask_to_release)

    @admin.action(description=lazy("Void…"), permissions=["hold"])
    def void_selected(
        self, request: HttpRequest, queryset: QuerySet[VoucherCode]
    ) -> HttpResponse | None:
        """Voids the codes that are ticked in the list, or all that the list shows."""
        return _ask_about(_selected(request, queryset), request, self.ask_to_void)

    @action(
        description=lazy("Reveal code…"),
        icon="visibility",
        permissions=["reveal"],
        url_path="reveal",
        variant=ActionVariant.WARNING,
    )
    def reveal(self, request: HttpRequest, object_id: str) -> HttpResponse:
        code = self.get_object(request, unquote(object_id))
        if not isinstance(code, VoucherCode):
            raise Http404
        order = Order.objects.filter(pk=code.order_id).first() if code.order_id else None
        return reveal_page(self, request, [code], order=order, about=code)


def state_of(code: VoucherCode) -> str:
    """The key of its state in STATES."""
    if code.hold is not None:
        return "void" if code.hold.voided_at else "held"
    return "in-stock" if code.order_id is None else "sold"


def _selected(request: HttpRequest, shown: QuerySet[VoucherCode]) -> QuerySet[VoucherCode]:
    """All codes that the list shows, or the ticked ones. A list of held codes no longer shows a
    ticked code that a colleague has just released, but the person must be told."""
    if request.POST.get("select_across") == "1":
        return shown
    return VoucherCode.objects.filter(pk__in=request.POST.getlist(ACTION_CHECKBOX_NAME))


def _ask_about(
    selected: QuerySet[VoucherCode], request: HttpRequest, ask: Callable[..., HttpResponse]
) -> HttpResponse | None:
    number = selected.count()
    if not number:  # nobody can see them any more
        return None
    return ask(
        request,
        selected[0],
        Q(pk__in=selected.order_by().values("pk")),
        chosen=ngettext("%(number)s selected code", "%(number)s selected codes", number)
        % {"number": local_number(number)},
        back=request.get_full_path(),
    )


def reveal_page(
    model_admin: ModelAdmin,
    request: HttpRequest,
    codes: Sequence[VoucherCode],
    *,
    order: Order | None,
    about: VoucherCode | Order,
) -> HttpResponse:
    """Asks for confirmation, then shows the codes in clear text. They appear on no other page."""
    form = ConfirmAgainForm(request)
    if not form.is_valid():
        return _ask_to_reveal(model_admin, request, codes, form, order=order, about=about)
    try:
        revealed = reveal_codes(
            codes=codes, order=order, actor=staff_of(request), note=form.cleaned_data["note"]
        )
    except InputProblem as problem:
        messages.error(request, str(problem))
        return HttpResponseRedirect(url_of(about))
    except CannotOpen:
        messages.error(
            request,
            _(
                "Nothing was revealed: the service does not have the encryption key of this code."
                " Ask a server administrator to restore the key."
            ),
        )
        return HttpResponseRedirect(url_of(about))
    return page(
        model_admin,
        request,
        "admin/secret.html",
        obj=about,
        title=_("Revealed"),
        warning=_("Everyone who reads this can use it. Leave the page when you are done."),
        groups=[
            {"title": _("Code %(id)s") % {"id": each.pk}, "parts": _parts(each)}
            for each in revealed
        ],
        back=url_of(about),
    )


def _ask_to_reveal(
    model_admin: ModelAdmin,
    request: HttpRequest,
    codes: Sequence[VoucherCode],
    form: ConfirmAgainForm,
    *,
    order: Order | None,
    about: VoucherCode | Order,
) -> HttpResponse:
    if order:
        where = _("order %(reference)s") % {"reference": order.reference}
    else:
        where = _("shelf “%(shelf)s”, unsold") % {"shelf": codes[0].shelf}
    return page(
        model_admin,
        request,
        "admin/confirm.html",
        obj=about,
        title=_("Reveal"),
        form=form,
        question=_("Show %(codes)s of %(where)s in clear text?")
        % {"codes": _number(codes), "where": where},
        facts=[
            _("The audit trail will record that you revealed it."),
            *([] if order else [_("This code is not sold yet. Everyone who sees it can use it.")]),
        ],
        button=_("Reveal"),
        danger=True,
        back=url_of(about),
    )


def _number(codes: Sequence[VoucherCode]) -> str:
    number = len(codes)
    if number == 1:
        return _("code %(id)s") % {"id": codes[0].pk}
    return ngettext("%(number)s code", "%(number)s codes", number) % {"number": number}


def _parts(revealed: Revealed) -> dict[str, str]:
    return {str(NAMES[name]): part for name, part in revealed.code.as_json().items()}
