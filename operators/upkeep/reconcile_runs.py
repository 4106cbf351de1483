"""The runs of `reconcile`: when, who asked, how far they are, and what they found."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.html import format_html_join
from django.utils.translation import gettext as _
from unfold.contrib.filters.admin import ChoicesDropdownFilter
from unfold.decorators import action, display

from core.formats import local_number
from core.inputs import InputProblem
from core.texts import lazy
from operators.frame.base import EMPTY, RecordAdmin, list_url, site_page, staff_of, url_of
from operators.upkeep.models import ReconcileRun, RunState
from operators.upkeep.nightly_reconcile import MAY_RUN, ask_for_run, describe_progress, is_overdue

OVERDUE = lazy(
    "No run has finished for more than a day. Check that the scheduler and a worker are running:"
    " /readyz/worker names what is missing."
)


@admin.register(ReconcileRun)
class ReconcileRunAdmin(RecordAdmin):
    list_display = ("started_at", "reason", "finished_at", "result", "problems", "late_work")
    list_filter = (("state", ChoicesDropdownFilter),)
    list_before_template = "admin/about_findings.html"
    change_form_before_template = "admin/reconcile_page.html"
    fields = (
        *("started_at", "reason", "finished_at", "outcome", "cause", "report", "late"),
        *("rows_read", "history_until"),
    )
    actions_list = ("run_now",)

    def get_urls(self) -> list[Any]:
        progress = path(
            "<int:pk>/progress/",
            self.admin_site.admin_view(self.show_progress),
            name="upkeep_reconcilerun_progress",
        )
        return [progress, *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        run = self.get_object(request, object_id)
        running = isinstance(run, ReconcileRun) and run.state == RunState.RUNNING
        if running:
            run.progress = describe_progress(run)
        context = {**(extra_context or {}), "run": run if running else None, "refresh": 2}
        answer: HttpResponse = super().change_view(request, object_id, form_url, context)
        return answer

    def show_progress(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The part of a running run's page that refreshes itself (live.js)."""
        run = self.get_object(request, str(pk))
        if run is None:
            raise Http404
        if not self.has_view_permission(request, run):
            raise PermissionDenied
        run.progress = describe_progress(run)
        return TemplateResponse(request, "admin/reconcile_now.html", {"run": run})

    def has_run_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return self.has_view_permission(request) and staff_of(request).has_perm(MAY_RUN)

    @action(
        description=lazy("Run now…"), icon="play_arrow", permissions=["run"], url_path="run-now"
    )
    def run_now(self, request: HttpRequest) -> HttpResponse:
        """Asks a worker for a run, after a confirmation."""
        if request.method == "POST":
            try:
                run = ask_for_run(actor=staff_of(request))
            except InputProblem as problem:
                messages.warning(request, str(problem))
                return HttpResponseRedirect(list_url(ReconcileRun))
            return HttpResponseRedirect(url_of(run))
        return site_page(
            request,
            "admin/confirm.html",
            opts=self.opts,
            title=_("Run reconcile"),
            question=_("Compare balances, stock and orders now?"),
            facts=[
                _(
                    "It looks at what is new since the last run and at a part of the history. After"
                    " a run with findings it looks at everything."
                ),
                _(
                    "Purchases go on meanwhile. People who may see the runs receive an email about"
                    " findings."
                ),
            ],
            button=_("Run now"),
            back=list_url(ReconcileRun),
        )

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if is_overdue():
            messages.warning(request, str(OVERDUE))
        answer: HttpResponse = super().changelist_view(request, extra_context)
        return answer

    @display(
        description=lazy("result"),
        label={
            RunState.RUNNING: "info",
            RunState.CLEAN: "success",
            RunState.FINDINGS: "danger",
            RunState.FAILED: "warning",
        },
    )
    def result(self, run: ReconcileRun) -> tuple[str, str]:
        return run.state, RunState(run.state).label

    # The same for a run's own page, where the theme does not draw labels.
    @admin.display(description=lazy("result"))
    def outcome(self, run: ReconcileRun) -> str:
        return RunState(run.state).label

    @admin.display(description=lazy("reason"))
    def reason(self, run: ReconcileRun) -> str:
        if not run.asked_by:
            return _("every night")
        return _("%(person)s asked") % {"person": run.asked_by}

    @admin.display(description=lazy("findings"))
    def problems(self, run: ReconcileRun) -> int:
        return len(run.findings)

    @admin.display(description=lazy("warnings"))
    def late_work(self, run: ReconcileRun) -> int:
        return len(run.warnings)

    @admin.display(description=lazy("findings"))
    def report(self, run: ReconcileRun) -> str:
        return _lines(run.findings)

    @admin.display(description=lazy("failure"))
    def cause(self, run: ReconcileRun) -> str:
        return _(run.failure) if run.failure else EMPTY

    @admin.display(description=lazy("rows read"))
    def rows_read(self, run: ReconcileRun) -> str:
        counts = [
            f"{local_number(count)} {name.replace('_', ' ')}" for name, count in run.checked.items()
        ]
        return ", ".join(counts) or EMPTY

    @admin.display(description=lazy("warnings"))
    def late(self, run: ReconcileRun) -> str:
        return _lines(run.warnings)


def _lines(findings: list[dict[str, str]]) -> str:
    pairs = ((_(one["check"]), one["finding"]) for one in findings)
    return format_html_join("", "<p><b>{}</b>: {}</p>", pairs) or EMPTY
