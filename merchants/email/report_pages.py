"""The reports that a member receives by email."""

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.views.decorators.http import require_http_methods, require_POST

from accounts.form_fields import posted
from core.backoffice.registry import reports as declared_reports
from merchants.email.reports import choose_report, end_report, reports_for
from merchants.frame.pages import show
from merchants.models import EmailedReport, Frequency
from merchants.people.access import Member, member_page


class ReportForm(forms.Form):
    """A report, and how often it comes."""

    kind = forms.ChoiceField(label=lazy("Report"))
    every = forms.ChoiceField(label=lazy("How often"), choices=Frequency.choices)


@require_http_methods(["GET", "HEAD", "POST"])
@member_page()
def reports(request: HttpRequest, member: Member) -> HttpResponse:
    """Lists the member's reports, and adds one."""
    # A link can choose the values that the form begins with.
    form = ReportForm(posted(request), initial=request.GET.dict())
    form.fields["kind"].choices = [  # type: ignore[attr-defined]
        (report.kind, _(report.title)) for report in reports_for(member.user)
    ]
    if form.is_valid():
        kind, every = form.cleaned_data["kind"], Frequency(form.cleaned_data["every"])
        choose_report(user=member.user, kind=kind, every=every)
        messages.success(
            request, _("The report comes to %(email)s.") % {"email": member.user.email}
        )
        return HttpResponseRedirect(reverse("merchants:reports"))
    titles = {kind: _(report.title) for kind, report in declared_reports().items()}
    rows = EmailedReport.objects.filter(user=member.user).order_by("kind", "pk")
    return show(
        request,
        member,
        "merchants/reports.html",
        title=_("Reports by email"),
        form=form,
        reports=[(row, titles.get(row.kind, row.kind)) for row in rows],
        status=422 if form.is_bound else 200,
    )


@require_POST
@member_page()
def end(request: HttpRequest, member: Member, report_id: int) -> HttpResponse:
    """Ends a report of the member."""
    report = get_object_or_404(EmailedReport, user=member.user, pk=report_id)
    end_report(report=report, actor=member.user)
    messages.success(request, _("You no longer receive this report."))
    return HttpResponseRedirect(reverse("merchants:reports"))
