"""The pages on which staff ask for a password link and set their password, without a sign-in.

The token stands behind the # of the link, as on the merchant site
(merchants/people/sign_in_pages.py).
"""

from __future__ import annotations

from http import HTTPStatus

from django import forms
from django.contrib import messages
from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods
from unfold.widgets import BASE_INPUT_CLASSES, UnfoldAdminTextInputWidget

from accounts.addresses import counted_address
from accounts.form_fields import NewPasswordForm, posted
from accounts.rates import seconds_to_wait
from audit.actor import on_behalf_of
from core.texts import lazy
from operators.frame.base import site_page
from operators.sign_in.password_links import ask_for_link, find_person

BACKEND = "accounts.sign_in.limits.PasswordBackend"
LINKS_PER_MINUTE = 10  # from one address, for all names together
MAX_EMAIL_LENGTH = 254


class AskForm(forms.Form):
    email = forms.EmailField(
        label=lazy("Email"),
        max_length=MAX_EMAIL_LENGTH,
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "email", "type": "email"}),
    )


@require_http_methods(["GET", "HEAD", "POST"])
def ask_link(request: HttpRequest) -> HttpResponse:
    """Sends a link. The response does not reveal whether the address belongs to staff."""
    form, status = AskForm(posted(request)), HTTPStatus.OK
    if form.is_valid():
        wait = seconds_to_wait(
            group="password_emails", key=counted_address(request), limit=LINKS_PER_MINUTE
        )
        if not wait:
            ask_for_link(email=form.cleaned_data["email"])
            messages.success(
                request,
                _(
                    "If this address belongs to a member of staff, an email with a link is on its"
                    " way. The link works for an hour."
                ),
            )
            return HttpResponseRedirect(reverse("admin:login"))
        status = HTTPStatus.TOO_MANY_REQUESTS
        form.add_error(
            None,
            ngettext(
                "Too many password emails were requested from your network. Nothing was sent. Wait"
                " %(wait)s second and try again.",
                "Too many password emails were requested from your network. Nothing was sent. Wait"
                " %(wait)s seconds and try again.",
                wait,
            )
            % {"wait": wait},
        )
    response = site_page(
        request,
        "admin/ask_link.html",
        title=_("Forgot your password?"),
        form=form,
        button=_("Send link"),
    )
    response.status_code = status
    return response


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters()
def set_password(request: HttpRequest) -> HttpResponse:
    """Sets the password and signs the person in. The next page asks for the second factor."""
    token = request.POST.get("token", "").strip().rpartition("#")[2]
    if not token:
        return site_page(request, "admin/open_link.html", title=_("Open your link"))
    user = find_person(token)
    if user is None:
        messages.error(request, _("This link is not valid: it was used or has expired."))
        return HttpResponseRedirect(reverse("staff_forgotten"))
    form = NewPasswordForm(user, request.POST if "new_password1" in request.POST else None)
    for field in form.fields.values():
        field.widget.attrs["class"] = " ".join(BASE_INPUT_CLASSES)
    if form.is_valid():
        with on_behalf_of(user):  # the audit entry names the owner of the link
            form.save()
        login(request, user, backend=BACKEND)
        messages.success(request, _("Your password is set."))
        return HttpResponseRedirect(reverse("admin:index"))
    return site_page(
        request,
        "admin/ask_link.html",
        title=_("New password of %(person)s") % {"person": user.get_username()},
        form=form,
        token=token,
        button=_("Set password"),
    )
