"""Cases: what merchants complain about, the answers, and the outcomes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Min, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import pgettext
from unfold.contrib.filters.admin import AutocompleteSelectFilter, DropdownFilter
from unfold.decorators import action
from unfold.enums import ActionVariant
from unfold.widgets import (
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from accounts.form_fields import MoneyField, posted
from cases.forms import MOST_BYTES, AnswerForm, SubjectField, TextForm, VersionForm
from cases.models import UNDECIDED, Case, CaseFile, CaseState
from cases.selectors import (
    REPLACEMENT_PROPOSED,
    WAITS_FOR_STAFF,
    code_name,
    code_of_subject,
    left_to_credit,
    people_for_cases,
    subjects_of,
)
from cases.services import (
    answer_case,
    assign_case,
    credit_case,
    decline_replacement,
    open_case,
    propose_replacement,
    reject_case,
    replace_code_of_case,
    withdraw_credit,
)
from core.api.errors import OrderRefused
from core.backoffice.staff import names_of_staff_who_may
from core.files.uploads import download
from core.http.body_limits import accepts_bodies_up_to
from core.inputs import InputProblem, is_id
from core.texts import lazy
from operators.frame.base import (
    EMPTY,
    ConditionFilter,
    RecordAdmin,
    amount,
    capped_count,
    label,
    link_to,
    list_url,
    page,
    staff_of,
    url_of,
)
from operators.frame.long_lists import LOOKED_AT
from operators.frame.reader import is_reader
from operators.history.timeline import NoteForm, TimelinePage
from operators.money.booking import APPROVE, MOVE_MONEY
from operators.money.ledger import accounts_named
from operators.orders.case_page import (
    REPLACE,
    AssignForm,
    case_context,
    deciders_of,
    paid_text,
    state_of,
    stock_of,
)
from orders.models import Order
from orders.selectors import REFERENCE_PATTERN
from wallets.approvals import waiting_booking
from wallets.limits import limits_of
from wallets.models import BookingApproval, EntryKind, LedgerEntry
from wallets.services import AlreadyBooked, BadBooking

ANSWER = "cases.answer_case"
WAITING = "waits-for-us"
PROPOSED = "replacement-proposed"
MINE, NOBODY = "mine", "nobody"

TEXT = UnfoldAdminTextareaWidget(attrs={"rows": 6})


class StaffAnswerForm(AnswerForm):
    """A message of staff."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        send = "$el.form.requestSubmit()"
        self.fields["text"].widget = UnfoldAdminTextareaWidget(
            attrs={"rows": 4, "x-on:keydown.ctrl.enter": send, "x-on:keydown.meta.enter": send}
        )
        self.fields["text"].help_text = _(
            "The merchant reads it. Never write a code or a key here."
        )


class RejectForm(VersionForm):
    """Why a case is rejected."""

    text = forms.CharField(
        label=lazy("Message"),
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4}),
        help_text=lazy("The merchant reads why. Never write a code or a key here."),
    )


class OpenForm(TextForm):
    """The code that a new case is about, and what is wrong with it."""

    code = SubjectField(widget=UnfoldAdminSelectWidget)
    field_order = ("code", "text", "attachments")

    def __init__(self, *arguments: Any, codes: list[tuple[str, str]], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.fields["code"].offer(codes)  # type: ignore[attr-defined]
        self.fields["text"].widget = TEXT


class ReplaceForm(VersionForm):
    """A note about a replacement."""

    note = forms.CharField(
        label=lazy("Note"),
        required=False,
        max_length=400,
        widget=UnfoldAdminTextInputWidget,
        help_text=lazy("Only staff read it. Never write a code or a key here."),
    )


class CreditForm(VersionForm):
    """The amount to pay back, and a note for the merchant."""

    amount = MoneyField(label=lazy("Amount"), widget=UnfoldAdminDecimalFieldWidget)
    note = forms.CharField(
        label=lazy("For the merchant"),
        max_length=400,
        widget=UnfoldAdminTextInputWidget,
        help_text=lazy("The merchant reads it in the statement."),
    )

    def __init__(self, *arguments: Any, case: Case, **options: Any) -> None:
        super().__init__(*arguments, case=case, **options)
        order = case.paid_order
        left = left_to_credit(order, case)
        is_one_of_many = case.code_id is not None and order.units_per_sale == 1
        suggested = min(left, order.unit_price) if is_one_of_many else left
        self.fields["amount"].initial = suggested
        self.fields["amount"].help_text = order.currency


class StateFilter(ConditionFilter):
    title = lazy("state")
    parameter_name = "state"
    conditions = {
        WAITING: WAITS_FOR_STAFF,
        PROPOSED: REPLACEMENT_PROPOSED,
        "undecided": Q(state__in=UNDECIDED),
        **{state.value: Q(state=state) for state in CaseState if state != CaseState.OPEN},
    }
    names = {
        WAITING: lazy("Waits for us"),
        PROPOSED: lazy("Replacement proposed"),
        "undecided": lazy("Undecided"),
        CaseState.CREDITING.value: CaseState.CREDITING.label,
        CaseState.REJECTED.value: CaseState.REJECTED.label,
        CaseState.REPLACED.value: lazy("Replaced"),
        CaseState.CREDITED.value: lazy("Credited"),
    }


def show_waiting_cases(request: HttpRequest) -> dict[str, Any]:
    """How many cases wait for staff and for how long, for the first page."""
    if not staff_of(request).has_perm("cases.view_case"):
        return {}
    waiting = Case.objects.filter(WAITS_FOR_STAFF)
    oldest = waiting.aggregate(oldest=Min("waits_since"))["oldest"]
    if oldest is None:
        return {}
    return {
        "cases": {
            "waiting": waiting.count(),
            "oldest": timesince(oldest),
            "url": list_url(Case, state=WAITING),
        }
    }


def tabs(request: HttpRequest) -> list[dict[str, Any]]:
    """The tabs above the list of cases: the queue, and the open cases by who takes care of them."""
    path = list_url(Case)
    if request.path != path:
        return []
    open_cases = Case.objects.filter(closed_at=None)
    queues: list[tuple[str, dict[str, str], QuerySet[Case] | None]] = [
        (
            _("Waits for us"),
            {"state": WAITING},
            Case.objects.filter(WAITS_FOR_STAFF),
        ),
        (
            _("Replacement proposed"),
            {"state": PROPOSED},
            Case.objects.filter(REPLACEMENT_PROPOSED),
        ),
        (_("Mine"), {"assignee": MINE}, open_cases.filter(assigned_to=staff_of(request))),
        (_("Nobody's"), {"assignee": NOBODY}, open_cases.filter(assigned_to=None)),
        (_("Open"), {"state": "undecided"}, open_cases),
        (_("All"), {}, None),
    ]
    chosen = {key: request.GET[key] for key in ("state", "assignee") if key in request.GET}
    return [
        {
            "models": [Case._meta.label_lower],
            "items": [
                {
                    "title": name if rows is None else f"{name} ({capped_count(rows)})",
                    "link": list_url(Case, **query),
                    "active": query == chosen,
                }
                for name, query, rows in queues
            ],
        }
    ]


class AssigneeFilter(DropdownFilter):
    """Filters by who takes care of the open cases."""

    title = lazy("assigned to")
    parameter_name = "assignee"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        people = [(str(one.pk), one.get_username()) for one in people_for_cases()]
        return [(MINE, _("Mine")), (NOBODY, _("Nobody")), *people]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Case]) -> QuerySet[Case]:
        match self.value():
            case None:
                return queryset
            case "mine":
                assignee: int | None = staff_of(request).pk
            case "nobody":
                assignee = None
            case text if is_id(text):
                assignee = int(text)
            case _:
                raise IncorrectLookupParameters
        return queryset.filter(assigned_to=assignee, closed_at=None)


@admin.register(Case)
class CaseAdmin(TimelinePage, RecordAdmin):
    """Cases, the newest first. Those that wait for staff are a queue."""

    list_display = (
        *("number", "account", "order_link", "subject", "state_badge", "assignee", "waits"),
    )
    list_display_links = ("number",)
    list_filter = (StateFilter, AssigneeFilter, ("account", AutocompleteSelectFilter))
    list_select_related = (
        *("account", "assigned_to", "order__shelf__product", "order__shelf__variation__product"),
        "order__fulfilment__product",
    )
    search_fields = ("order__reference",)
    search_help_text = lazy("Whole order reference, number of a case, or account")
    when_empty = lazy("No case was opened.")
    actions_detail = ("answer", "propose", "replace", "decline", "credit", "reject")

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """The queue begins with the longest wait."""
        return ("waits_since", "id") if request.GET.get("state") == WAITING else ("-id",)

    def search(
        self, queryset: QuerySet[Case], term: str, request: HttpRequest
    ) -> tuple[QuerySet[Case], bool]:
        if not term:
            return queryset, False
        if is_id(term):
            return queryset.filter(pk=term), False
        if REFERENCE_PATTERN.fullmatch(term.upper()):
            return queryset.filter(order__reference=term.upper()), False
        named = Case.objects.filter(account__in=accounts_named(term)).order_by("-account", "-id")
        ids = named.values_list("pk", flat=True)[: 2 * LOOKED_AT]
        return queryset.filter(pk__in=list(ids)), False

    def get_urls(self) -> list[Any]:
        show = path(
            "<int:pk>/file/<int:file>/",
            self.admin_site.admin_view(self.send_file),
            name="cases_case_file",
        )
        assign = path(
            "<int:pk>/assign/", self.admin_site.admin_view(self.assign), name="cases_case_assign"
        )
        return [show, assign, *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The conversation of a case. Django's own page says that a case does not exist, that this
        person may not see it, or that nobody changes it."""
        case = self.get_object(request, unquote(object_id))
        reads = request.method in ("GET", "HEAD") and self.has_view_permission(request, case)
        if case is None or not reads:
            return super().change_view(request, object_id, form_url, extra_context)
        return self._conversation(request, case, StaffAnswerForm(case=case))

    def refuse_note(self, request: HttpRequest, obj: Case, form: NoteForm) -> HttpResponse:
        """Shows the note again: it may have several lines."""
        return self._conversation(request, obj, StaffAnswerForm(case=obj), note=form)

    def _conversation(
        self, request: HttpRequest, case: Case, form: StaffAnswerForm, note: NoteForm | None = None
    ) -> HttpResponse:
        offered = self.get_actions_detail(request, case.pk)
        names = [one.method.original_function_name for one in offered]
        may_assign = case.is_open and self.has_assign_permission(request)
        context = case_context(request, case, note)
        elsewhere = {"answer", *(["replace", "decline"] if context["proposal"] else [])}
        return page(
            self,
            request,
            "admin/case.html",
            obj=case,
            title=f"{case.title} · {case.account}",
            form=form if "answer" in names else None,
            unsent=form["text"].value() if form.is_bound and not case.is_open else "",
            decisions=[
                {
                    "name": one.description,
                    "icon": one.icon,
                    "url": url_of(case, name),
                    "danger": name == "reject",
                }
                for one, name in zip(offered, names, strict=True)
                if name not in elsewhere
            ],
            assign=AssignForm(case=case) if may_assign else None,
            **context,
        )

    def assign(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Assigns a case to a member of staff, or to nobody."""
        if not self.has_assign_permission(request):
            raise PermissionDenied
        case = self._case(request, str(pk))
        form = AssignForm(posted(request), case=case)
        if not form.is_bound:
            return HttpResponseRedirect(url_of(case))
        if form.is_valid():
            to = form.cleaned_data["assignee"]
            try:
                assign_case(
                    case=case, to=to, seen=form.cleaned_data["seen"], actor=staff_of(request)
                )
            except InputProblem as problem:
                messages.error(request, str(problem))
            else:
                done = _("The case is assigned to %(name)s.") % {"name": to} if to else ""
                messages.success(request, done or _("The case is assigned to nobody."))
        else:
            messages.error(request, _("This person does not work on cases."))
        return HttpResponseRedirect(url_of(case))

    def send_file(self, request: HttpRequest, pk: int, file: int) -> HttpResponse:
        """Sends a file of a message as a download."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        found = CaseFile.objects.filter(pk=file, message__case=pk).first()
        if found is None:
            raise Http404
        return download(found)

    @admin.display(description=lazy("case"))
    def number(self, case: Case) -> str:
        return case.title

    @admin.display(description=lazy("order"))
    def order_link(self, case: Case) -> str:
        return link_to(case.order)

    @admin.display(description=lazy("about"))
    def subject(self, case: Case) -> str:
        """The subject as the list shows it. It counts no codes."""
        part = _("one code") if case.code_id else _("the whole order")
        return f"{case.order.goods}: {part}"

    @admin.display(description=lazy("assigned to"))
    def assignee(self, case: Case) -> str:
        return str(case.assigned_to or EMPTY)

    @admin.display(description=lazy("waiting time"))
    def waits(self, case: Case) -> str:
        return timesince(case.waits_since) if case.waits_since else EMPTY

    @admin.display(description=lazy("state"))
    def state_badge(self, case: Case) -> str:
        return label(*state_of(case))

    def _may_end_proposal(self, request: HttpRequest, case: Case) -> bool:
        """Makers withdraw. Those who may replace codes decline replacements; credits are rejected
        on their own page."""
        maker = _maker_of_proposal(case)
        declines = case.state == CaseState.OPEN and self.has_replace_permission(request)
        return maker is not None and (is_reader(maker) or declines)

    def has_assign_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Whether this person answers or decides cases."""
        return self.has_answer_permission(request) or self.has_replace_permission(request)

    def has_answer_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return staff_of(request).has_perm(ANSWER)

    def has_replace_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return staff_of(request).has_perm(REPLACE)

    def has_credit_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """People without the right to book propose a credit, which another person approves."""
        return staff_of(request).has_perm(MOVE_MONEY) or self.has_answer_permission(request)

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Offers what the state and the subject of the case allow."""
        case = self.get_object(request, unquote(str(object_id)))
        if not isinstance(case, Case) or not case.is_open:
            return []
        is_open, may_book = case.state == CaseState.OPEN, staff_of(request).has_perm(MOVE_MONEY)
        has_code = is_open and case.code_id is not None
        offered = {
            "answer": True,
            "reject": is_open,
            "replace": has_code,
            "decline": self._may_end_proposal(request, case),
            "propose": has_code
            and case.replacement_proposed_by_id is None
            and not self.has_replace_permission(request),
            "credit": is_open and left_to_credit(case.paid_order, case) > 0,
        }
        actions = super().get_actions_detail(request, object_id)
        for one in actions:
            if one.method.original_function_name == "credit" and not may_book:
                one.description = _("Propose a credit…")
            if one.method.original_function_name == "decline" and is_reader(
                _maker_of_proposal(case)
            ):
                one.description = _("Withdraw the proposal…")
        return [one for one in actions if offered[one.method.original_function_name]]

    @action(description=lazy("Answer…"), icon="reply", permissions=["answer"], url_path="answer")
    @accepts_bodies_up_to(MOST_BYTES)
    def answer(self, request: HttpRequest, object_id: str) -> HttpResponse:
        case = self._case(request, object_id)
        form = StaffAnswerForm(posted(request), request.FILES or None, case=case)
        if form.is_bound and form.is_valid():
            try:
                answer_case(
                    case=case,
                    actor=staff_of(request),
                    version=form.cleaned_data["version"],
                    text=form.cleaned_data["text"],
                    files=form.cleaned_data["attachments"],
                )
            except InputProblem as problem:
                form.refuse(problem, case)
            else:
                messages.success(request, _("The merchant receives an email about your message."))
                return HttpResponseRedirect(url_of(case))
        return self._conversation(request, case, form)

    @action(
        description=lazy("Close without credit…"),
        icon="close",
        permissions=["answer"],
        url_path="reject",
    )
    def reject(self, request: HttpRequest, object_id: str) -> HttpResponse:
        case = self._case(request, object_id)
        form = RejectForm(posted(request), case=case)
        return self._decide(
            request,
            case,
            form,
            lambda: reject_case(case=case, actor=staff_of(request), **form.cleaned_data),
            done=_("The case is closed. The merchant receives an email."),
            title=_("Close without credit"),
            question=_("Close Case %(number)s of %(account)s without credit?")
            % {"number": case.pk, "account": case.account},
            facts=[_("Nothing is replaced or paid back. The case cannot be opened again.")],
            button=_("Close without credit"),
            danger=True,
        )

    @action(
        description=lazy("Propose a replacement…"),
        icon="sync_alt",
        permissions=["answer"],
        url_path="propose",
    )
    def propose(self, request: HttpRequest, object_id: str) -> HttpResponse:
        case = self._case(request, object_id)
        form = ReplaceForm(posted(request), case=case)
        return self._decide(
            request,
            case,
            form,
            lambda: propose_replacement(case=case, actor=staff_of(request), **form.cleaned_data),
            done=_("The replacement is proposed."),
            title=_("Propose a replacement"),
            question=_("Propose to replace %(code)s of %(goods)s for %(account)s?")
            % {"code": code_name(case), "goods": case.order.goods, "account": case.account},
            facts=[
                _("Order %(order)s. In stock: %(stock)s.")
                % {"order": case.order, "stock": stock_of(case)},
                _("These people see it on their first page and decide: %(people)s.")
                % {"people": deciders_of(staff_of(request))},
            ],
            button=_("Propose"),
        )

    @action(
        description=lazy("Replace the code…"),
        icon="sync_alt",
        permissions=["replace"],
        url_path="replace",
        variant=ActionVariant.WARNING,
    )
    def replace(self, request: HttpRequest, object_id: str) -> HttpResponse:
        case = self._case(request, object_id)
        form = ReplaceForm(posted(request), case=case)
        return self._decide(
            request,
            case,
            form,
            lambda: replace_code_of_case(case=case, actor=staff_of(request), **form.cleaned_data),
            done=_("The code is replaced. The merchant receives an email."),
            title=_("Replace the code"),
            question=_("Replace %(code)s of %(goods)s for %(account)s?")
            % {"code": code_name(case), "goods": case.order.goods, "account": case.account},
            facts=[
                _(
                    "Order %(order)s. %(client)s receives the next code, as an order that costs"
                    " nothing."
                )
                % {"order": case.order, "client": case.order.client},
                _("In stock: %(stock)s. This closes the case and cannot be undone.")
                % {"stock": stock_of(case)},
            ],
            button=_("Replace"),
        )

    @action(description=lazy("Decline…"), icon="close", permissions=["assign"], url_path="decline")
    def decline(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ends a proposal: its maker withdraws it, those who may replace codes decline it."""
        case = self._case(request, object_id)
        credit = waiting_booking(case.credit_reference)
        own = is_reader(credit.asked_by_id if credit else case.replacement_proposed_by_id)
        if not own and (credit or not self.has_replace_permission(request)):
            raise PermissionDenied
        form = ReplaceForm(posted(request), case=case)
        if credit:
            return self._decide(
                request,
                case,
                form,
                lambda: withdraw_credit(
                    case=case, booking=credit, actor=staff_of(request), **form.cleaned_data
                ),
                done=_("The proposal is withdrawn. The case is open."),
                title=_("Withdraw a proposal"),
                question=_("Withdraw the credit of %(amount)s for %(account)s?")
                % {
                    "amount": amount(credit.amount, case.paid_order.currency),
                    "account": case.account,
                },
                facts=[_("The case stays open. The merchant receives no message.")],
                button=_("Withdraw"),
            )
        return self._decide(
            request,
            case,
            form,
            lambda: decline_replacement(case=case, actor=staff_of(request), **form.cleaned_data),
            done=_("The proposal is withdrawn. The case is open.")
            if own
            else _("The proposal is declined. The case is open."),
            title=_("Withdraw a proposal") if own else _("Decline a proposal"),
            question=(
                _("Withdraw the proposal to replace %(code)s of %(goods)s for %(account)s?")
                if own
                else _("Decline to replace %(code)s of %(goods)s for %(account)s?")
            )
            % {"code": code_name(case), "goods": case.order.goods, "account": case.account},
            facts=[_("The case stays open. The merchant receives no message.")],
            button=_("Withdraw") if own else _("Decline"),
        )

    @action(description=lazy("Credit…"), icon="undo", permissions=["credit"], url_path="credit")
    def credit(self, request: HttpRequest, object_id: str) -> HttpResponse:
        case, staff = self._case(request, object_id), staff_of(request)
        order, may_book = case.paid_order, staff.has_perm(MOVE_MONEY)
        form = CreditForm(posted(request), case=case)
        limit = limits_of(staff, kind=EntryKind.CREDIT, currency=order.currency).booking
        return self._decide(
            request,
            case,
            form,
            lambda: credit_case(case=case, actor=staff, may_book=may_book, **form.cleaned_data),
            done=lambda made: _credited(made, currency=order.currency),
            title=_("Credit") if may_book else _("Propose a credit"),
            question=_("Pay back a part or all of order %(reference)s.")
            % {"reference": order.reference},
            facts=[
                _("It cost %(paid)s.") % {"paid": paid_text(case)},
                _("A credit above %(limit)s waits until another member of staff approves it.")
                % {"limit": amount(limit, order.currency)}
                if may_book
                else _("Another member of staff must approve the credit."),
                _("The case is closed when the credit is booked."),
            ],
            button=pgettext("button", "Credit") if may_book else _("Propose"),
        )

    def _decide(
        self,
        request: HttpRequest,
        case: Case,
        form: forms.Form,
        act: Callable[[], Any],
        *,
        done: str | Callable[[Any], str],
        **texts: Any,
    ) -> HttpResponse:
        """Shows the form, or does what it asks for."""
        if form.is_bound and form.is_valid():
            try:
                made = act()
            except AlreadyBooked:
                messages.error(request, _("This was booked already. Nothing was booked now."))
            except (BadBooking, InputProblem) as problem:
                text = str(problem).rstrip(".")
                form.add_error(None, f"{text[0].upper()}{text[1:]}.")
            except OrderRefused as refused:
                form.add_error(None, _(refused.message))
            else:
                messages.success(request, done(made) if callable(done) else done)
                return HttpResponseRedirect(url_of(case))
        for error in form.non_field_errors():
            messages.error(request, str(error))
        return page(
            self,
            request,
            "admin/confirm.html",
            obj=case,
            form=form,
            back=url_of(case),
            **texts,
        )

    def _case(self, request: HttpRequest, object_id: str) -> Case:
        case = self.get_object(request, unquote(object_id))
        if not isinstance(case, Case):
            raise Http404
        return case


def _maker_of_proposal(case: Case) -> int | None:
    """The id of the person who proposes a replacement or a credit that waits."""
    if case.state == CaseState.OPEN:
        return case.replacement_proposed_by_id
    credit = waiting_booking(case.credit_reference)
    return credit.asked_by_id if credit else None


def _credited(made: LedgerEntry | BookingApproval, *, currency: str) -> str:
    """The message about a credit that is booked, or waits for a second person."""
    credit = {"amount": amount(made.amount, currency)}
    if isinstance(made, LedgerEntry):
        return _("%(amount)s was credited, and the case is closed.") % credit
    people = names_of_staff_who_may(APPROVE, str(made.asked_by)) or _("nobody yet")
    return _(
        "The credit of %(amount)s waits for approval. Nothing is booked until then. These people"
        " see it on their first page and decide: %(people)s."
    ) % (credit | {"people": people})


def open_case_of(order_page: Any, request: HttpRequest, order: Order) -> HttpResponse:
    """Shows the form of a new case about an order, or opens the case."""
    form = OpenForm(posted(request), request.FILES or None, codes=subjects_of(order))
    if form.is_bound and form.is_valid():
        data = form.cleaned_data
        try:
            case = open_case(
                order=order,
                code=code_of_subject(order, data["code"]),
                actor=staff_of(request),
                text=data["text"],
                files=data["attachments"],
            )
        except InputProblem as problem:
            messages.error(request, str(problem))
        else:
            messages.success(request, _("The case is open."))
            return HttpResponseRedirect(url_of(case))
    return page(
        order_page,
        request,
        "admin/confirm.html",
        obj=order,
        form=form,
        title=_("Open a case"),
        question=_("What is wrong with order %(reference)s of %(account)s?")
        % {"reference": order.reference, "account": order.client.account},
        facts=[_("The merchant sees the case and receives an email.")],
        button=pgettext("button", "Open"),
        back=url_of(order),
    )
