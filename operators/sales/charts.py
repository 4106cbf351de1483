"""The charts of sales and margins, drawn by the theme's chart library."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from django.utils.formats import date_format
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from core.formats import local_day
from core.texts import lazy
from figures.margins import By, Line, Period, add_up, days_of_month, without_gaps
from figures.sales import SalesRow
from operators.frame.base import amount

_FONT = {"family": "system-ui, sans-serif"}
_GREY = "#6b7280"  # is read on white and on black
NET, MARGIN = "#93c5fd", "#2563eb"
DAY = lazy("j M")  # below a bar, such as 16 Nov; in German 16. Nov.
MARGIN_NAME = lazy("Margin, where the cost is known")


def draw_charts(lines: list[Line], period: Period, *, step: str) -> list[dict[str, Any]]:
    """For each currency, a chart with a bar for the net sales of each day or month, and in front of
    it the margin of what has a known cost. `bars` has the same numbers for a table."""
    charts = []
    for currency, total in add_up(lines).items():
        bars = without_gaps((line for line in lines if line.currency == currency), period)
        names = [name_of_step(line.key, period.step) for line in bars]
        data = {
            "labels": [_short_name(line.key, period.step) for line in bars],
            "datasets": [
                _dataset(MARGIN_NAME, [line.known_margin for line in bars], MARGIN),
                _dataset(_("Net sales"), [line.net for line in bars], NET),
            ],
        }
        charts.append(
            {
                "currency": currency,
                "step": step,
                "margin_name": MARGIN_NAME,
                "net": report_amount(total.net, currency),
                "data": json.dumps(data),
                "options": json.dumps(_options(currency)),
                "bars": [
                    (name, report_amount(line.net), report_amount(line.known_margin))
                    for name, line in zip(names, bars, strict=True)
                ],
            }
        )
    return charts


def draw_net(days: Mapping[str, Mapping[date, Decimal]]) -> list[dict[str, str]]:
    """For each currency, a chart with a bar for the net sales of each day."""
    return [
        {
            "currency": currency,
            "data": json.dumps(
                {
                    "labels": [date_format(day, str(DAY)) for day in net],
                    "datasets": [_dataset(_("Net sales"), list(net.values()), MARGIN)],
                }
            ),
            "options": json.dumps(_options(currency)),
        }
        for currency, net in days.items()
    ]


def report_amount(value: Decimal | None, currency: str = "") -> str:
    """An amount with two decimals. One that would be rounded to zero keeps all of its decimals."""
    if value is None:
        return ""
    return amount(round(value, 2) or value, currency)


def common_currency(lines: Iterable[Line | SalesRow]) -> str:
    """The currency of all lines, which a heading names; empty if they have several."""
    currencies = {line.currency for line in lines}
    return currencies.pop() if len(currencies) == 1 else ""


def name_of_step(key: str, step: By) -> str:
    """The day or the month that is the key of a line, in the language of the reader."""
    if step is By.DAY:
        return local_day(date.fromisoformat(key))
    return date_format(days_of_month(key)[0], "F Y")


def _short_name(key: str, step: By) -> str:
    """The name below a bar."""
    return (
        date_format(date.fromisoformat(key), str(DAY))
        if step is By.DAY
        else name_of_step(key, step)
    )


def _dataset(label: str, values: list[Decimal], colour: str) -> dict[str, Any]:
    numbers = [float(value) for value in values]
    return {"label": str(label), "data": numbers, "backgroundColor": colour, "borderRadius": 2}


def _options(currency: str) -> dict[str, Any]:
    """Axes with numbers in the language of the reader, a legend, and the values of a bar."""
    ticks = {"color": _GREY, "font": _FONT, "maxRotation": 0, "autoSkipPadding": 16}
    title = {"display": True, "text": currency, "color": _GREY, "font": _FONT}
    return {
        "maintainAspectRatio": False,
        "animation": False,
        "locale": get_language() or "en",
        "interaction": {"mode": "index", "intersect": False},
        "datasets": {"bar": {"grouped": False}},
        "plugins": {
            "legend": {
                "align": "end",
                "labels": {"boxHeight": 8, "boxWidth": 8, "color": _GREY, "font": _FONT},
            }
        },
        "scales": {
            "x": {"ticks": ticks, "grid": {"display": False}},
            "y": {"ticks": ticks, "grid": {"color": "#9ca3af40"}, "title": title},
        },
    }
