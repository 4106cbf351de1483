"""Coming in and going out."""

from django.contrib.auth import logout
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST


class SignIn(LoginView):
    """By e-mail and password; wrong ones are throttled (settings, AXES_…)."""

    template_name = "merchants/sign_in.html"
    next_page = "merchants:overview"


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """Ends this session."""
    logout(request)
    return HttpResponseRedirect(reverse("merchants:sign_in"))
