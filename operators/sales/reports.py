"""The reports by email of the signed-in person: a list, and a form that adds one."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from unfold.widgets import UnfoldAdminSelectWidget

from core.backoffice.registry import reports
from core.texts import lazy
from merchants.email.reports import reports_for
from merchants.models import EmailedReport
from operators.frame.base import RecordAdmin, staff_of


class ReportForm(forms.ModelForm):  # type: ignore[type-arg]
    """A report that the signed-in person may have."""

    kind = forms.ChoiceField(label=lazy("Report"), widget=UnfoldAdminSelectWidget)

    class Meta:
        model = EmailedReport
        fields = ["kind", "every"]

    reader: User  # set by the page

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["kind"].choices = [  # type: ignore[attr-defined]
            (report.kind, _(report.title)) for report in reports_for(self.reader)
        ]

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        chosen = EmailedReport.objects.filter(user=self.reader, **cleaned)
        if not self.errors and chosen.exists():
            raise forms.ValidationError(_("You receive this report already."))
        return cleaned


@admin.register(EmailedReport)
class EmailedReportAdmin(RecordAdmin):
    """Everybody sees and changes only the reports that come to them."""

    form = ReportForm
    list_display = ("title", "every", "created_at")
    fields = ("kind", "every")
    when_empty = lazy("You receive no report yet.")

    def get_queryset(self, request: HttpRequest) -> QuerySet[EmailedReport]:
        rows: QuerySet[EmailedReport] = super().get_queryset(request)
        return rows.filter(user=staff_of(request))

    @admin.display(description=lazy("report"))
    def title(self, report: EmailedReport) -> str:
        kind = reports().get(report.kind)
        return _(kind.title) if kind else report.kind

    def get_form(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        form: Any = super().get_form(request, obj, **kwargs)
        return type(form.__name__, (form,), {"reader": staff_of(request)})

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.has_perm("merchants.add_emailedreport"))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.has_perm("merchants.delete_emailedreport"))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        obj.user = staff_of(request)
        super().save_model(request, obj, form, change)
