"""The overview's figures: sales by period, product and account, stock, and refunds due."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.models import Account
from catalogue.models import Product
from core.database.functions import StatementTimeout, statement_timeout
from core.formats import local_number
from core.texts import lazy
from figures.sales import (
    PERIODS,
    Figures,
    Kind,
    SalesRow,
    net_by_day,
    sales_by_period,
    sales_by_thing,
    today,
)
from operators.catalogue.stock_levels import (
    LOW_STOCK,
    StockLevel,
    count_low_shelves,
    first_to_run_out,
)
from operators.frame.base import amount, url_of
from operators.frame.reader import reader_may_view
from operators.sales.charts import common_currency, draw_net
from operators.sales.report_files import SEES_MARGINS
from topups.fulfilment.refunds import refunds_due
from topups.models import TopUpProduct

SEES_SALES = "figures.view_dailysales"
SEES_STOCK = "catalogue.view_shelf"
SEES_REFUNDS = "topups.view_fulfilment"
READ_SECONDS = 5
CHART_DAYS = 30
USUAL_PERIOD = 7  # one day would show nothing just after midnight in UTC
LINES = 8  # of a table; the others are added up
PERIOD_NAMES = {1: lazy("Today"), 7: lazy("7 days"), 30: lazy("30 days")}
INSIDE_NAMES = PERIOD_NAMES | {1: lazy("today")}  # inside a sentence
BEFORE_NAMES = {
    1: lazy("all of yesterday"),
    7: lazy("the 7 days before"),
    30: lazy("the 30 days before"),
}
MODELS: dict[Kind, type[Model]] = {
    Kind.PRODUCT: Product,
    Kind.TOP_UP: TopUpProduct,
    Kind.ACCOUNT: Account,
}


def show_figures(request: HttpRequest, user: User, *, missing: list[str]) -> dict[str, Any]:
    """The sales, stock and refunds that this person may see, for the template of the first page.

    Without a scheduler and a worker, which are then `missing`, nobody counts new orders.
    """
    figures: dict[str, Any] = {}
    if user.has_perm(SEES_SALES):
        figures["sales"] = {**_show_sales(_days(request)), "stopped": missing}
        figures["sales"]["margins"] = user.has_perm(SEES_MARGINS)
    if user.has_perm(SEES_STOCK):
        figures["stock"] = {
            **count_low_shelves(),
            "most": LOW_STOCK - 1,
            "url": reverse("admin:catalogue_shelf_changelist"),
            "levels": [_show_level(one) for one in first_to_run_out(datetime.now(UTC))],
        }
    if user.has_perm(SEES_REFUNDS):
        figures["refunds"] = {
            "due": refunds_due().order_by().count(),
            "url": reverse("admin:topups_fulfilment_changelist", query={"work": "refund_due"}),
        }
    return figures


def show_periods(account: Account | None = None) -> list[dict[str, Any]]:
    """A card for each period and currency: what was sold, and the change since the one before."""
    return [
        {
            "days": days,
            "name": PERIOD_NAMES[days],
            "before": BEFORE_NAMES[days],
            "currency": currency,
            **_show(figures, currency, days),
        }
        for currency, periods in sorted(sales_by_period(day=today(), account=account).items())
        for days, figures in periods.items()
    ]


def _show_sales(days: int) -> dict[str, Any]:
    try:
        with statement_timeout(READ_SECONDS):
            periods = show_periods()
            lines = sales_by_thing(day=today(), days=days)
            charts = draw_net(net_by_day(day=today(), days=CHART_DAYS))
    except StatementTimeout:
        return {"late": True}
    common = common_currency(lines)
    beside = not common
    tables = [
        (_("By product"), _("Product"), _table(lines, {Kind.PRODUCT, Kind.TOP_UP}, days, beside)),
        (_("By account"), _("Account"), _table(lines, {Kind.ACCOUNT}, days, beside)),
    ]
    has_change = any(row["change"] for *_names, rows in tables for row in rows)
    return {
        "days": days,
        "name": INSIDE_NAMES[days],
        "before": BEFORE_NAMES[days],
        "periods": periods,
        "charts": charts,
        "chart_days": CHART_DAYS,
        "currency": common,
        "tables": [(*table, has_change) for table in tables],
    }


def _table(
    lines: list[SalesRow], kinds: set[Kind], days: int, beside: bool
) -> list[dict[str, Any]]:
    """The largest lines of these kinds in each currency, and one line for its others."""
    rows = []
    of_kinds = [line for line in lines if line.kind in kinds]
    in_order = sorted(of_kinds, key=lambda line: line.currency)  # stable: the largest stay first
    for currency, group in groupby(in_order, key=lambda line: line.currency):
        all_, shown = list(group), currency if beside else ""
        rows += [
            {"name": line.name, "url": _url(line)} | _show(line.figures, shown, days)
            for line in all_[:LINES]
        ]
        others = all_[LINES:]
        if others:
            total = sum((line.figures for line in others), Figures())
            name = _("%(number)s others") % {"number": len(others)}
            rows.append({"name": name, "url": ""} | _show(total, shown, days))
    return rows


def _url(line: SalesRow) -> str:
    """The page of what the line is about; empty if the reader may not see it."""
    model = MODELS[line.kind]
    return url_of(model(pk=line.pk)) if reader_may_view(model) else ""


def _show(figures: Figures, currency: str, days: int) -> dict[str, Any]:
    return {
        "orders": figures.orders,
        "amount": amount(figures.amount, currency),
        "amount_before": amount(figures.amount_before, currency),
        **change_of(figures, days),
    }


def change_of(figures: Figures, days: int) -> dict[str, str]:
    """The change since the period before, in whole percent, and its colour.

    Today is not over, so it is not compared with a whole day. Of longer periods, today is a small
    part. A period before in which more was paid back than sold is not compared either.
    """
    if not figures.amount_before:
        return {"change": _("from 0") if figures.amount > 0 else "", "colour": "info"}
    if days == 1 or figures.amount_before < 0:
        return {"change": "", "colour": "info"}
    percent = 100 * (figures.amount - figures.amount_before) / figures.amount_before
    return {
        "change": f"{local_number(percent, sign='+')} %",
        "colour": "success" if percent >= 0 else "warning",
    }


def _show_level(level: StockLevel) -> dict[str, Any]:
    days = level.days_left
    if not level.shelf.available_stock:
        colour = "info" if level.is_new and not level.sold else "danger"
    elif days is None:
        colour = "info"
    else:
        colour = "danger" if days < 1 else "warning" if days < 3 else "success"
    return {
        "name": str(level.shelf),
        "url": url_of(level.shelf),
        "stock": level.shelf.available_stock,
        "sold": level.sold,
        "left": level.left_in_words,
        "colour": colour,
    }


def _days(request: HttpRequest) -> int:
    text = request.GET.get("days", "")
    return next((days for days in PERIODS if str(days) == text), USUAL_PERIOD)
