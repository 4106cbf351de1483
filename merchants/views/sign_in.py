"""Coming in and going out: log-in, invitations, forgotten passwords.

A link from a letter carries its token in the query, which no log keeps; it moves into the session
at once, so that no address bar, history or Referer keeps it either. Looking at a link spends
nothing: mail programs look at links, too.
"""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, logout
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from config.inputs import InputProblem
from merchants.people.access import find_member
from merchants.people.invitations import accept_invitation, find_invitation
from merchants.people.passwords import ask_for_reset, find_reset
from merchants.people.security import change_password
from merchants.views.forms import AskResetForm, SignInForm

BACKEND = "django.contrib.auth.backends.ModelBackend"
SESSION_LIFE = timedelta(hours=settings.MERCHANT_SESSION_HOURS)
JOIN, RESET = "merchants.join", "merchants.reset"  # where the session keeps a link's token


@method_decorator(sensitive_post_parameters("password"), name="dispatch")
class SignIn(LoginView):
    """By email and password; wrong ones are throttled (settings, AXES_…)."""

    template_name = "merchants/sign_in.html"
    authentication_form = SignInForm
    next_page = "merchants:overview"
    extra_context = {"title": "Sign in"}

    def form_valid(self, form: Any) -> HttpResponse:
        answer = super().form_valid(form)
        _limit(self.request)
        return answer

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if find_member(request) is not None:
            return HttpResponseRedirect(self.get_success_url())
        return super().dispatch(request, *args, **kwargs)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """Ends this session."""
    logout(request)
    return HttpResponseRedirect(reverse("merchants:sign_in"))


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters()
def join(request: HttpRequest) -> HttpResponse:
    """Accepts an invitation by choosing a password."""
    moved = _move_token(request, JOIN)
    if moved is not None:
        return moved
    invitation = find_invitation(request.session.get(JOIN, ""))
    if invitation is None:
        return _dead_link(
            request,
            "This invitation is not valid: it was used, taken back, or is too"
            " old. Ask for another one.",
        )
    form = _password_form(User(username=invitation.email, email=invitation.email), request)
    if form.is_valid():
        try:
            user = accept_invitation(
                invitation_id=invitation.pk, password=form.cleaned_data["new_password1"]
            )
        except InputProblem as problem:
            form.add_error(None, str(problem))
        else:
            return _let_in(request, user, f"Welcome to {invitation.account}.")
    return TemplateResponse(
        request,
        "merchants/set_password.html",
        {
            "title": f"Join {invitation.account}",
            "intro": f"You are invited as {invitation.get_role_display().lower()}, to sign in as"
            f" {invitation.email}. Choose a password.",
            "form": form,
            "button": "Join",
        },
    )


@require_http_methods(["GET", "HEAD", "POST"])
def ask_reset(request: HttpRequest) -> HttpResponse:
    """Asks for a letter; the answer is the same whether the address is anybody's."""
    form = AskResetForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        ask_for_reset(email=form.cleaned_data["email"])
        messages.success(
            request, "If somebody signs in with this address, a letter is on its way to it."
        )
        return HttpResponseRedirect(reverse("merchants:sign_in"))
    return TemplateResponse(
        request, "merchants/ask_reset.html", {"title": "Forgotten password", "form": form}
    )


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters()
def reset(request: HttpRequest) -> HttpResponse:
    """Sets the password by a link from a letter, which ends every session there was."""
    moved = _move_token(request, RESET)
    if moved is not None:
        return moved
    user = find_reset(request.session.get(RESET, ""))
    if user is None:
        return _dead_link(
            request, "This link is not valid: it was used, or is too old. Ask for another letter."
        )
    form = _password_form(user, request)
    if form.is_valid():
        change_password(user=user, password=form.cleaned_data["new_password1"])
        return _let_in(request, user, "Your password is changed.")
    return TemplateResponse(
        request,
        "merchants/set_password.html",
        {
            "title": "New password",
            "intro": f"Choose a new password for {user.email}.",
            "form": form,
            "button": "Change password",
        },
    )


def _move_token(request: HttpRequest, place: str) -> HttpResponse | None:
    if "token" not in request.GET:
        return None
    request.session[place] = request.GET["token"][:200]
    return HttpResponseRedirect(request.path)


def _password_form(user: User, request: HttpRequest) -> "SetPasswordForm[User]":
    return SetPasswordForm(user, request.POST if request.method == "POST" else None)


def _let_in(request: HttpRequest, user: User, words: str) -> HttpResponse:
    """Whoever has a second factor is still asked for it, by the first page they see."""
    for place in (JOIN, RESET):
        request.session.pop(place, None)
    login(request, user, backend=BACKEND)
    _limit(request)
    messages.success(request, words)
    return HttpResponseRedirect(reverse("merchants:overview"))


def _limit(request: HttpRequest) -> None:
    """The session ends at this moment. A number of seconds would count from each change of it."""
    request.session.set_expiry(timezone.now() + SESSION_LIFE)


def _dead_link(request: HttpRequest, words: str) -> HttpResponse:
    return TemplateResponse(
        request, "merchants/dead_link.html", {"title": "Link not valid", "words": words}, status=410
    )
