"""The page at `/`: where to go from here."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe


@require_safe
def landing(request: HttpRequest) -> HttpResponse:
    """Links to the merchant site, the API's documentation and the back office."""
    return render(request, "landing.html", {"title": "Buy voucher codes and game top-ups"})
