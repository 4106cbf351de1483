"""Cases about the account's orders: the list, a case with its messages, and a new case.

Every member may write, also in an account that is switched off: a complaint changes nothing there.
"""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
)
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from accounts.form_fields import posted
from cases.forms import MOST_BYTES, AnswerForm, SubjectField, TextForm
from cases.models import CaseFile, CaseState
from cases.selectors import (
    cases_of,
    code_name,
    code_of_subject,
    conversation_of,
    replacement_of,
    subjects_of,
)
from cases.services import answer_case, open_case
from core.files.uploads import download
from core.http.body_limits import accepts_bodies_up_to
from core.inputs import InputProblem
from core.texts import lazy
from merchants.frame.exports import send_table
from merchants.frame.pages import show
from merchants.frame.paging import page_of
from merchants.people.access import Member, member_page
from orders.account_orders import find_account_order
from wallets.models import LedgerEntry


class NewCaseForm(TextForm):
    code = SubjectField(
        help_text=lazy("Codes are numbered as GET /orders/{reference} lists them."),
    )
    field_order = ("code", "text", "attachments")

    def __init__(self, *arguments: Any, subjects: list[tuple[str, str]], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.fields["code"].offer(subjects)  # type: ignore[attr-defined]


@require_safe
@member_page()
def case_list(request: HttpRequest, member: Member) -> HttpResponse:
    """Lists the cases of the account, or those that are open, newest first."""
    cases = cases_of(member.account).order_by()
    open_cases = cases.filter(closed_at=None)
    is_open = request.GET.get("state") == "open"
    return show(
        request,
        member,
        "merchants/cases.html",
        title=_("Cases"),
        page=page_of(open_cases if is_open else cases, query=request.GET, key="pk"),
        is_open=is_open,
        open_cases=open_cases.count(),
    )


@require_safe
@member_page(heavy=True)
def export(request: HttpRequest, member: Member, format: str) -> HttpResponseBase:
    """The cases as a file, without their messages."""
    return send_table(
        request,
        member,
        name="cases",
        format=format,
        columns=("case", "opened_at", "order", "product", "state", "closed_at", "idempotency_key"),
        rows=(
            [
                case.pk,
                case.opened_at,
                case.order.reference,
                case.order.goods,
                CaseState(case.state),
                case.closed_at,
                case.order.idempotency_key,
            ]
            for case in cases_of(member.account).iterator()
        ),
        back="merchants:cases",
    )


@accepts_bodies_up_to(MOST_BYTES)
@require_http_methods(["GET", "HEAD", "POST"])
@member_page()
def case_page(request: HttpRequest, member: Member, case_id: int) -> HttpResponse:
    """Shows a case with its messages, and takes another message."""
    case = get_object_or_404(cases_of(member.account), pk=case_id)
    form = AnswerForm(posted(request), request.FILES or None, case=case)
    if form.is_valid():
        data = form.cleaned_data
        try:
            answer_case(
                case=case,
                version=data["version"],
                actor=member.user,
                text=data["text"],
                files=data["attachments"],
            )
        except InputProblem as problem:
            form.refuse(problem, case)
        else:
            messages.success(request, _("Your message is sent."))
            return HttpResponseRedirect(reverse("merchants:case", args=[case.pk]))
    return show(
        request,
        member,
        "merchants/case.html",
        title=case.title,
        case=case,
        about=code_name(case),
        conversation=conversation_of(case),
        replacement=replacement_of(case),
        credit=LedgerEntry.objects.filter(booking_reference=case.credit_reference).first(),
        form=form if case.is_open else None,
        unsent=form["text"].value() if form.is_bound and not case.is_open else "",
    )


@accepts_bodies_up_to(MOST_BYTES)
@require_http_methods(["GET", "HEAD", "POST"])
@member_page()
def new_case(request: HttpRequest, member: Member, reference: str) -> HttpResponse:
    """Opens a case about an order."""
    order = find_account_order(member.account, reference)
    if order is None:
        raise Http404
    form = NewCaseForm(posted(request), request.FILES or None, subjects=subjects_of(order))
    if form.is_valid():
        data = form.cleaned_data
        try:
            case = open_case(
                order=order,
                code=code_of_subject(order, data["code"]),
                actor=member.user,
                text=data["text"],
                files=data["attachments"],
            )
        except InputProblem as problem:
            form.add_error(None, str(problem))
        else:
            messages.success(request, _("The case is open. We send you an email when we answer."))
            return HttpResponseRedirect(reverse("merchants:case", args=[case.pk]))
    return show(
        request, member, "merchants/new_case.html", title=_("Open a case"), order=order, form=form
    )


@require_safe
@member_page(heavy=True)
def case_file(request: HttpRequest, member: Member, case_id: int, file_id: int) -> HttpResponse:
    """Sends a file of a message as a download."""
    files = CaseFile.objects.filter(message__case__account=member.account, message__case=case_id)
    return download(get_object_or_404(files, pk=file_id))
