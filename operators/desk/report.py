"""The report of a shift: how long top-ups waited, what missed its promised time, and what is open.

It reads the newest orders that ended in the span, by the index of their end, and their events.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from core.database.functions import StatementTimeout, statement_timeout
from core.texts import lazy
from operators.frame.base import url_of
from operators.frame.desk_summary import age_in_words
from topups.models import Fulfilment

SPANS = {8: lazy("Last 8 hours"), 24: lazy("Last 24 hours"), 168: lazy("Last 7 days")}
READ_SECONDS = 5
MOST = 20_000  # ended orders that are read
SHOWN = 50  # orders that missed their promised time
ENDED = """
    WITH ended AS MATERIALIZED (
        SELECT id, order_reference, product_id, status, created_at, closed_at
          FROM topups_fulfilment
         WHERE closed_at >= %(since)s
         ORDER BY closed_at DESC LIMIT %(most)s)
"""
TIMES = (
    ENDED  # noqa: S608  SQL of ours
    + """
    , timed AS (
        SELECT product.name AS product, last.actor AS operator,
               date_part('hour', ended.created_at AT TIME ZONE %(zone)s) AS hour,
               status = 'completed' AS delivered,
               first.created_at - ended.created_at AS claim,
               CASE WHEN status = 'completed' THEN closed_at - ended.created_at END AS delivery,
               closed_at - ended.created_at > make_interval(mins => promised_minutes) AS late
          FROM ended
          JOIN topups_topupproduct AS product ON product.id = product_id
          JOIN LATERAL (SELECT actor FROM topups_fulfilmentevent
                         WHERE fulfilment_id = ended.id AND to_status = ended.status
                           AND from_status <> to_status  -- a refund comes after the end
                         ORDER BY id DESC LIMIT 1) AS last ON true
          LEFT JOIN LATERAL (SELECT created_at FROM topups_fulfilmentevent
                         WHERE fulfilment_id = ended.id AND move = 'claim'
                         ORDER BY id LIMIT 1) AS first ON true)
    SELECT CASE grouping(operator, product, hour)
               WHEN 3 THEN 'operator' WHEN 5 THEN 'product' WHEN 6 THEN 'hour' ELSE 'all' END,
           coalesce(operator, product, lpad(hour::text, 2, '0') || ':00', ''),
           count(*) FILTER (WHERE delivered), count(*) FILTER (WHERE NOT delivered),
           count(*) FILTER (WHERE late),
           percentile_disc(0.5) WITHIN GROUP (ORDER BY claim),
           percentile_disc(0.95) WITHIN GROUP (ORDER BY claim),
           percentile_disc(0.5) WITHIN GROUP (ORDER BY delivery),
           percentile_disc(0.95) WITHIN GROUP (ORDER BY delivery)
      FROM timed
     GROUP BY GROUPING SETS ((), (operator), (product), (hour))
     ORDER BY 1, 2
"""
)
# Open orders that are late now, and the newest ended ones that were.
MISSED = (
    ENDED  # noqa: S608  SQL of ours
    + """
    SELECT late.id, order_reference, product.name, promised_minutes, status,
           coalesce(closed_at, now()) - late.created_at
      FROM (SELECT * FROM ended
            UNION ALL
            SELECT id, order_reference, product_id, status, created_at, NULL
              FROM topups_fulfilment
             WHERE status IN ('pending', 'processing', 'pending_review')) AS late
      JOIN topups_topupproduct AS product ON product.id = product_id
     WHERE coalesce(closed_at, now()) - late.created_at > make_interval(mins => promised_minutes)
     ORDER BY closed_at DESC NULLS FIRST, late.created_at LIMIT %(shown)s
"""
)
TABLES = {
    "all": lazy("All orders"),
    "operator": lazy("Operator"),
    "product": lazy("Product"),
    "hour": lazy("Hour bought"),
}


def show_report(request: HttpRequest) -> dict[str, Any]:
    """The context of the page, for the span that the address names."""
    text = request.GET.get("hours", "")
    hours = next((span for span in SPANS if str(span) == text), 8)
    since = timezone.now() - timedelta(hours=hours)
    ranges = [
        {"name": name, "url": f"?hours={span}", "chosen": span == hours}
        for span, name in SPANS.items()
    ]
    context: dict[str, Any] = {"ranges": ranges, "most": MOST}
    try:
        with statement_timeout(READ_SECONDS):
            rows = times_since(since)
            missed = missed_since(since)
    except StatementTimeout:
        return {**context, "late": True}
    if any(rows["all"][0][1:4]):
        context["tables"] = [(TABLES[kind], rows[kind]) for kind in TABLES]
    claims = Fulfilment.objects.filter(status="processing").select_related("claimed_by", "product")
    return {
        **context,
        "missed": missed,
        "held": [
            {"order": one, "url": url_of(one), "age": _words(timezone.now() - one.claimed_at)}
            for one in claims.order_by("claimed_at")[:SHOWN]
            if one.claimed_at
        ],
    }


def times_since(since: datetime) -> dict[str, list[tuple[Any, ...]]]:
    """Name, numbers of delivered, failed and late orders, and the median and the 95th percentile of
    the waits for a claim and for the delivery: by `all`, `operator`, `product` and `hour`.

    Orders that ended without a claim have no wait for one.
    """
    rows: dict[str, list[tuple[Any, ...]]] = {}
    for kind, name, delivered, failed, late, *times in _read(TIMES, since):
        rows.setdefault(kind, []).append(
            (name or _("All"), delivered, failed, late, *map(_words, times))
        )
    return rows


def missed_since(since: datetime) -> list[dict[str, Any]]:
    """The orders that missed the time their product promises today, open ones first."""
    return [
        {
            "reference": reference,
            "url": url_of(Fulfilment(pk=pk)),
            "product": product,
            "promised": _words(timedelta(minutes=promised)),
            "state": Fulfilment(status=status).get_status_display(),
            "took": _words(took),
        }
        for pk, reference, product, promised, status, took in _read(MISSED, since)
    ]


def _read(sql: str, since: datetime) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        zone = timezone.get_current_timezone_name()
        cursor.execute(sql, {"since": since, "zone": zone, "most": MOST, "shown": SHOWN})
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


def _words(time: timedelta | None) -> str:
    if time is None:
        return "-"
    seconds = int(time.total_seconds())
    return f"{seconds} s" if seconds < 60 else age_in_words(time)
