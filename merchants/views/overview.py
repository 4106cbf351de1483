"""The first page."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from merchants.access import Member, member_page
from merchants.pages import show


@require_safe
@member_page()
def overview(request: HttpRequest, member: Member) -> HttpResponse:
    """What matters at a glance."""
    return show(request, member, "merchants/overview.html", title="Overview")
