"""The nightly runs of `reconcile`: when, and what they found."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html_join
from unfold.contrib.filters.admin import ChoicesDropdownFilter
from unfold.decorators import display

from operators.frame.base import EMPTY, RecordAdmin
from operators.upkeep.models import ReconcileRun, RunState
from operators.upkeep.nightly_reconcile import is_overdue

OVERDUE = (
    "No run has finished for more than a day. Check that the scheduler and a worker are running:"
    " /readyz/worker names what is missing."
)


@admin.register(ReconcileRun)
class ReconcileRunAdmin(RecordAdmin):
    list_display = ("started_at", "finished_at", "result", "problems", "late_work")
    list_filter = (("state", ChoicesDropdownFilter),)
    list_before_template = "admin/what_a_finding_is.html"
    change_form_before_template = "admin/what_a_finding_is.html"
    fields = (
        *("started_at", "finished_at", "result", "failure", "report", "late", "rows_read"),
        "history_until",
    )

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if is_overdue():
            messages.warning(request, OVERDUE)
        answer: HttpResponse = super().changelist_view(request, extra_context)
        return answer

    @display(
        description="result",
        label={
            RunState.RUNNING.label: "info",
            RunState.CLEAN.label: "success",
            RunState.FINDINGS.label: "danger",
            RunState.FAILED.label: "warning",
        },
    )
    def result(self, run: ReconcileRun) -> str:
        return RunState(run.state).label

    @admin.display(description="findings")
    def problems(self, run: ReconcileRun) -> int:
        return len(run.findings)

    @admin.display(description="warnings")
    def late_work(self, run: ReconcileRun) -> int:
        return len(run.warnings)

    @admin.display(description="findings")
    def report(self, run: ReconcileRun) -> str:
        return _lines(run.findings)

    @admin.display(description="rows read")
    def rows_read(self, run: ReconcileRun) -> str:
        counts = [f"{count:,} {name.replace('_', ' ')}" for name, count in run.checked.items()]
        return ", ".join(counts) or EMPTY

    @admin.display(description="warnings")
    def late(self, run: ReconcileRun) -> str:
        return _lines(run.warnings)


def _lines(findings: list[dict[str, str]]) -> str:
    pairs = ((one["check"], one["finding"]) for one in findings)
    return format_html_join("", "<p><b>{}</b>: {}</p>", pairs) or EMPTY
