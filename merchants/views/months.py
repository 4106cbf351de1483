"""The statements of closed months: a list, and each as PDF, CSV and XLSX."""

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from core.table_files import CONTENT_TYPES
from merchants.money.months import closed_months, find_month, month_rows
from merchants.money.statement import COLUMNS
from merchants.money.statement_pdf import write_pdf
from merchants.people.access import Member, member_page
from merchants.views.exports import File, send_table, send_to_member
from merchants.views.pages import show

FORMATS = ("pdf", *CONTENT_TYPES)


@require_safe
@member_page()
def months(request: HttpRequest, member: Member) -> HttpResponse:
    """Lists the closed months of the account."""
    return show(
        request,
        member,
        "merchants/months.html",
        title=_("Monthly statements"),
        months=closed_months(member.account),
    )


@require_safe
@member_page(heavy=True)
def statement(request: HttpRequest, member: Member, month: str, format: str) -> HttpResponseBase:
    """The statement of one closed month."""
    found = find_month(member.account, month)
    if found is None or format not in FORMATS:
        raise Http404
    if format != "pdf":
        return send_table(
            request,
            member,
            name=f"statement-{month}",
            format=format,
            columns=COLUMNS,
            rows=month_rows(found, member.account),
            back="merchants:months",
            mark=False,
        )
    parts = (part for part in (write_pdf(member.account, found),))
    file = File(parts, "application/pdf", f"statement-{month}.pdf")
    return send_to_member(request, member, file, back="merchants:months")
