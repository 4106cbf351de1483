"""The System page: the state of every component, for people without Grafana."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.translation import gettext as _

from core.backoffice.declarations import Component
from core.texts import lazy
from operators.frame.base import list_url, site_page, staff_of
from operators.upkeep.monitoring.gauges import Reading, reader
from operators.upkeep.monitoring.system_lines import COMPONENTS, Health, Status, lines_for, may_see

SEES_FIGURES = "upkeep.view_heartbeat"
SAMPLES_SHOWN = 10  # of one gauge
REFRESH_SECONDS = 15
COLOURS = {
    Health.RED: "danger",
    Health.AMBER: "warning",
    Health.UNKNOWN: "info",
    Health.NOT_SET_UP: "info",
    Health.GREEN: "success",
}
WORDS = {
    Health.RED: lazy("act now"),
    Health.AMBER: lazy("check"),
    Health.UNKNOWN: lazy("not known"),
    Health.NOT_SET_UP: lazy("not set up yet"),
    Health.GREEN: lazy("good"),
}


@dataclass(frozen=True)
class Figure:
    """A gauge in the table of figures. Each sample is the text of its labels, and its value."""

    name: str
    meaning: str
    samples: list[tuple[str, float]]
    left_out: int


def show_system(request: HttpRequest) -> HttpResponse:
    """The page. 403 for people who may see none of its lines."""
    return site_page(request, "admin/system.html", title=_("System"), **_context(staff_of(request)))


def show_system_now(request: HttpRequest) -> HttpResponse:
    """The part of the page that refreshes itself (live.js)."""
    return TemplateResponse(request, "admin/system_now.html", _context(staff_of(request)))


def may_open(user: User) -> bool:
    """Whether this person may see a line of the page."""
    return any(may_see(user, component) for component in COMPONENTS)


def _context(user: User) -> dict[str, Any]:
    if not may_open(user):
        raise PermissionDenied
    readings, _ = reader.read()
    lines = lines_for(user, readings)
    shown = [
        {
            "line": line,
            "colour": COLOURS[line.health],
            "word": WORDS[line.health],
            "well": line.health is Health.GREEN,
            "folded": line.health is Health.GREEN and line.component.technical,
            "is_set_up": line.health is not Health.NOT_SET_UP,
            "url": _list_url(line.component),
            "help": _runbook_of(line.component),
        }
        for line in lines
    ]
    return {
        "refresh": REFRESH_SECONDS,
        "verdict": _verdict(lines),
        "lines": [one for one in shown if not one["folded"]],
        "folded": [one for one in shown if one["folded"]],
        "figures": [_figure(one) for one in readings] if user.has_perm(SEES_FIGURES) else [],
    }


def _verdict(lines: list[Status]) -> dict[str, str]:
    """One sentence about all lines, and its colour."""
    bad = [line for line in lines if line.health is not Health.GREEN]
    if not bad:
        return {"text": _("All is well."), "colour": COLOURS[Health.GREEN]}
    worst = bad[0].health
    count = sum(line.health is worst for line in bad)
    text = {
        Health.RED: _("Red: %(count)s of %(all)s. Act now."),
        Health.AMBER: _("Amber: %(count)s of %(all)s. Check what is wrong."),
        Health.UNKNOWN: _("Not known: %(count)s of %(all)s. Wait a few seconds."),
        Health.NOT_SET_UP: _(
            "All that runs is well. Not set up yet: %(count)s of %(all)s. You need them before you"
            " sell with real money."
        ),
    }[worst]
    return {"text": text % {"count": count, "all": len(lines)}, "colour": COLOURS[worst]}


def _figure(reading: Reading) -> Figure:
    samples = [(", ".join(labels), value) for labels, value in reading.samples[:SAMPLES_SHOWN]]
    return Figure(
        reading.name, reading.meaning, samples, max(0, len(reading.samples) - SAMPLES_SHOWN)
    )


def _runbook_of(component: Component) -> str:
    """The file of the code with the steps. The service serves no page of it."""
    file = format_html("<code>docs/operate/runbooks/{}</code>", component.alert.runbook)
    return format_html(_("Step by step: {}"), file)


def _list_url(component: Component) -> str:
    """The page where the work is done; empty if the rows have no page."""
    if not component.leads_to_list or not admin.site.is_registered(component.model):
        return ""
    return list_url(component.model)
