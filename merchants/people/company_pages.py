"""The company of the account, as statements name it. Owners propose changes, and staff decide."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.companies import company_of, data_of, lines_of
from accounts.form_fields import CompanyForm, posted
from core.inputs import InputProblem
from merchants.frame.pages import confirm, show
from merchants.models import Role
from merchants.people.access import Member, member_page
from merchants.people.company import propose_company, waiting_proposal, withdraw_proposal


@require_safe
@member_page()
def company(request: HttpRequest, member: Member) -> HttpResponse:
    """Shows the company data, and the proposal that waits."""
    proposal = waiting_proposal(member.account)
    lines = lines_of(company_of(member.account))
    return show(
        request,
        member,
        "merchants/company.html",
        title=_("Company data"),
        lines=lines,
        proposal=proposal,
        proposed=[(*line, line not in lines) for line in lines_of(proposal)],
    )


@require_http_methods(["GET", "HEAD", "POST"])
@member_page(Role.OWNER)
def propose(request: HttpRequest, member: Member) -> HttpResponse:
    """Proposes other company data."""
    account = member.account
    present = waiting_proposal(account) or company_of(account)
    form = CompanyForm(posted(request), initial=data_of(present))
    if form.is_valid():
        try:
            propose_company(account=account, data=form.cleaned_data, actor=member.user)
        except InputProblem as problem:
            form.add_error(None, str(problem))
        else:
            messages.success(request, _("Your proposal is sent. Our staff read it."))
            return _back()
    return confirm(
        request,
        member,
        title=_("Propose company data"),
        question=_("Which company should your statements name?"),
        facts=[
            _("Our staff check it. Later statements name it; issued ones stay as they are."),
        ],
        form=form,
        button=_("Propose"),
        back=reverse("merchants:company"),
    )


@require_POST
@member_page(Role.OWNER)
def withdraw(request: HttpRequest, member: Member) -> HttpResponse:
    """Withdraws the proposal that waits."""
    proposal = waiting_proposal(member.account)
    if proposal is not None and withdraw_proposal(proposal=proposal, actor=member.user):
        messages.success(request, _("The proposal is withdrawn."))
    else:
        messages.warning(request, _("This proposal no longer waits."))
    return _back()


def _back() -> HttpResponse:
    return HttpResponseRedirect(reverse("merchants:company"))
