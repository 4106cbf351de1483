"""Signing in and out, accepting an invitation, and resetting a forgotten password.

A link from an email carries its token behind a `#`, which browsers send to nobody: no proxy logs
it. A script (merchants/static/merchants/page.js) sends the token in a form, and the form of the new
password carries it on, so it stands in no session and no backup. Opening a link does not use it up,
because mail programs open links as well.
"""

from http import HTTPStatus
from typing import Any

from django.contrib import messages
from django.contrib.auth import login, logout
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from accounts.addresses import counted_address
from accounts.form_fields import NewPasswordForm, posted
from accounts.rates import seconds_to_wait
from core.inputs import InputProblem
from core.texts import lazy
from merchants.frame.forms import AskResetForm, SignInForm
from merchants.models import Role
from merchants.people.access import find_member
from merchants.people.credentials import change_password
from merchants.people.invitations import accept_invitation, find_invitation
from merchants.people.password_resets import MAX_RESETS_PER_HOUR, ask_for_reset, find_reset

BACKEND = "accounts.sign_in.limits.PasswordBackend"
RESETS_PER_MINUTE = 10  # from one address, for all names together


@method_decorator(sensitive_post_parameters("password"), name="dispatch")
class SignIn(LoginView):
    """Signs a member in by email and password. django-axes limits wrong passwords."""

    template_name = "merchants/sign_in.html"
    authentication_form = SignInForm
    next_page = "merchants:overview"
    extra_context = {"title": lazy("Sign in")}

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
    """Accepts an invitation: the person chooses a password and is signed in."""
    token = _posted_token(request)
    if not token:
        return _ask_for_link(request, _("Open your invitation"))
    invitation = find_invitation(token)
    if invitation is None:
        return _dead_link(
            request,
            _(
                "This invitation is not valid: it was used or withdrawn, or it has expired. If"
                " you have"
                " joined before, sign in. Otherwise ask the person who invited you for a new one."
            ),
            way_out=(_("Sign in"), reverse("merchants:sign_in")),
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
            return _let_in(
                request, user, _("Welcome to %(account)s.") % {"account": invitation.account}
            )
    return TemplateResponse(
        request,
        "merchants/set_password.html",
        {
            "title": _("Join %(account)s") % {"account": invitation.account},
            "intro": _(
                "Your role will be %(invitation)s. You will sign in"
                " as %(email)s. Choose a password."
            )
            % {"invitation": Role(invitation.role).in_sentence, "email": invitation.email},
            "form": form,
            "token": token,
            "button": _("Join"),
        },
    )


@require_http_methods(["GET", "HEAD", "POST"])
def ask_reset(request: HttpRequest) -> HttpResponse:
    """Sends a reset email. The response does not reveal whether the address belongs to a member."""
    form = AskResetForm(posted(request))
    status = HTTPStatus.OK
    if form.is_valid():
        wait = seconds_to_wait(
            group="password_emails",
            key=counted_address(request),
            limit=RESETS_PER_MINUTE,
        )
        if wait:
            status = HTTPStatus.TOO_MANY_REQUESTS
            form.add_error(
                None,
                ngettext(
                    "Too many password emails were requested from your network. Nothing was sent."
                    " Wait %(wait)s second and try again.",
                    "Too many password emails were requested from your network. Nothing was sent."
                    " Wait %(wait)s seconds and try again.",
                    wait,
                )
                % {"wait": wait},
            )
    if form.is_valid():
        ask_for_reset(email=form.cleaned_data["email"])
        messages.success(
            request,
            _(
                "If this address belongs to a member, we are sending an email to it. Open its link"
                " within an hour."
            ),
        )
        return HttpResponseRedirect(reverse("merchants:sign_in"))
    return TemplateResponse(
        request,
        "merchants/ask_reset.html",
        {"title": _("Reset your password"), "form": form, "limit": MAX_RESETS_PER_HOUR},
        status=status,
    )


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters()
def reset(request: HttpRequest) -> HttpResponse:
    """Sets a new password after a reset link, and ends the member's other sessions."""
    token = _posted_token(request)
    if not token:
        return _ask_for_link(request, _("Open your link"))
    user = find_reset(token)
    if user is None:
        return _dead_link(
            request,
            _("This link is not valid: it was used or has expired."),
            way_out=(_("Ask for a new email"), reverse("merchants:ask_reset")),
        )
    form = _password_form(user, request)
    if form.is_valid():
        change_password(user=user, password=form.cleaned_data["new_password1"])
        return _let_in(request, user, _("Your password was changed."))
    return TemplateResponse(
        request,
        "merchants/set_password.html",
        {
            "title": _("New password"),
            "intro": _("Choose a new password for %(email)s.") % {"email": user.email},
            "form": form,
            "token": token,
            "button": _("Change password"),
        },
    )


def _posted_token(request: HttpRequest) -> str:
    """The token that a form sends, also from a whole link that a person pastes."""
    return request.POST.get("token", "").strip().rpartition("#")[2]


def _ask_for_link(request: HttpRequest, title: str) -> HttpResponse:
    """The page that a link from an email opens. Links of older emails have `?token=`."""
    context = {"title": title, "token": request.GET.get("token", "")}
    return TemplateResponse(request, "merchants/open_link.html", context)


def _password_form(user: User, request: HttpRequest) -> NewPasswordForm:
    return NewPasswordForm(user, request.POST if "new_password1" in request.POST else None)


def _let_in(request: HttpRequest, user: User, words: str) -> HttpResponse:
    """Signs the user in. A second factor is still asked for, by the next page they open."""
    login(request, user, backend=BACKEND)
    messages.success(request, words)
    return HttpResponseRedirect(reverse("merchants:overview"))


def _dead_link(request: HttpRequest, words: str, *, way_out: tuple[str, str]) -> HttpResponse:
    """A page for a link that no longer works. `way_out` is the label and address of a link."""
    context = {"title": _("Link not valid"), "words": words, "way_out": way_out}
    return TemplateResponse(request, "merchants/dead_link.html", context, status=410)
