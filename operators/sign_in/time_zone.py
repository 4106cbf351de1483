"""The page on which staff choose the time zone in which they read times."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from unfold.widgets import UnfoldAdminSelectWidget

from accounts.form_fields import posted
from accounts.time_zones import TimeZoneForm, choose_time_zone, time_zone_of
from operators.frame.base import site_page, staff_of


def choose(request: HttpRequest) -> HttpResponse:
    """Shows the form, or stores the choice."""
    user = staff_of(request)
    form = TimeZoneForm(
        posted(request),
        widget=UnfoldAdminSelectWidget(),
        initial={"time_zone": time_zone_of(user)},
    )
    if form.is_valid():
        name = form.cleaned_data["time_zone"]
        choose_time_zone(user=user, name=name, request=request)
        messages.success(request, f"Times are now shown in {name}.")
        return HttpResponseRedirect(reverse("admin:index"))
    return site_page(
        request,
        "admin/confirm.html",
        title="Time zone",
        question="In which time zone do you want to read times?",
        facts=[
            "Pages, files and filters by day use it. Other browsers in which you are signed in use"
            " it after your next sign-in.",
            "Days of sales, margins and spending limits stay days in UTC, and so does the API.",
        ],
        form=form,
        button="Save",
        back=reverse("admin:index"),
    )
