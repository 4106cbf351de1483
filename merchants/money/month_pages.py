"""The statements of closed months: a list, and each as PDF, CSV and XLSX."""

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts.models import Account
from merchants.frame.exports import File, back_to, file_view
from merchants.frame.pages import show
from merchants.money.month_file import MONTH_TYPES, write_month
from merchants.money.months import closed_months, find_month
from merchants.people.access import Member, member_page


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


@file_view(back_to("merchants:months"))
def statement(request: HttpRequest, account: Account, month: str, format: str) -> File:
    """The statement of one closed month."""
    found = find_month(account, month)
    if found is None or format not in MONTH_TYPES:
        raise Http404
    parts = write_month(account, found, format)
    return File(parts, MONTH_TYPES[format], f"statement-{month}.{format}")
