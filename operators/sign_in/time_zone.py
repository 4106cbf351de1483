"""The page on which staff choose the language and the time zone in which they read pages."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from unfold.widgets import UnfoldAdminSelectWidget

from accounts.form_fields import posted
from accounts.preferences.time_zones import PreferencesForm, choose_preferences, preferences_of
from operators.frame.base import site_page, staff_of


def choose(request: HttpRequest) -> HttpResponse:
    """Shows the form, or stores the choice."""
    user = staff_of(request)
    present = preferences_of(user)
    form = PreferencesForm(
        posted(request),
        widget=UnfoldAdminSelectWidget,
        initial={"time_zone": present.time_zone, "language": present.language},
    )
    if form.is_valid():
        saved = choose_preferences(
            user=user,
            request=request,
            time_zone=form.cleaned_data["time_zone"],
            language=form.cleaned_data["language"],
        )
        messages.success(request, saved)
        return HttpResponseRedirect(reverse("admin:index"))
    return site_page(
        request,
        "admin/confirm.html",
        title=_("Language and time zone"),
        question=_("In which language and time zone do you want to read pages?"),
        facts=[
            _(
                "Pages, files and filters by day use the time zone. Files are in English. Other"
                " browsers in which you are signed in use your choice after your next sign-in."
            ),
            _("Days of sales, margins and spending limits stay days in UTC, and so does the API."),
        ],
        form=form,
        button=_("Save"),
        back=reverse("admin:index"),
    )
