"""The two pages of company sign-in, and the sign-in page that offers it."""

from __future__ import annotations

import time

import structlog
from django.contrib import admin, messages
from django.contrib.auth import SESSION_KEY, login, logout
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from accounts.addresses import counted_address
from accounts.rates import seconds_to_wait
from accounts.sign_in.next_page import next_page, own_page
from accounts.sign_in.second_factor import note_factor_shown_elsewhere
from core.texts import lazy
from operators.sign_in.company.people import Refusal, admit, read_person
from operators.sign_in.company.provider import (
    ProviderBusy,
    ProviderProblem,
    company,
    read_answer,
    redirect_to_provider,
)

logger = structlog.get_logger(__name__)

BACKEND = "operators.sign_in.company.backend.CompanyBackend"
NEXT = "company_sign_in.next"  # the session's key of the page to open afterwards
STARTED = "company_sign_in.started"  # and of the time when the browser left, in Unix seconds
ATTEMPTS_PER_MINUTE = 20  # from one address
SECONDS_AT_THE_PROVIDER = 15 * 60
FAILED = lazy("Signing in with your company account did not work. Try again.")
BUSY = lazy("Another person is signing in at this moment. Try again.")


def sign_in(request: HttpRequest) -> HttpResponse:
    """The admin's sign-in page, with a button for company sign-in."""
    url = reverse("company_sign_in", query={"next": request.GET.get("next", "")})
    return admin.site.login(
        request, extra_context={"company": company().company, "company_url": url}
    )


@require_GET
def start(request: HttpRequest) -> HttpResponse:
    """Sends the browser to the provider."""
    if wait := _wait(request):
        return _back(request, _too_many(wait))
    try:
        answer = redirect_to_provider(request)
    except ProviderBusy:
        return _back(request, BUSY)
    except ProviderProblem as problem:
        logger.warning("company_sign_in_failed", step="start", cause=str(problem))
        return _back(request, FAILED)
    request.session[NEXT] = next_page(request, "admin:index")
    request.session[STARTED] = time.time()
    if SESSION_KEY not in request.session:  # the end of a signed-in session stays
        request.session.set_expiry(SECONDS_AT_THE_PROVIDER)
    return answer


@require_GET
def callback(request: HttpRequest) -> HttpResponse:
    """Signs in the person whom the provider sent back. All limits of staff sessions apply."""
    if wait := _wait(request):
        return _back(request, _too_many(wait))
    try:
        _check_time(request)
        claims = read_answer(request)
    except ProviderBusy:
        return _back(request, BUSY)
    except ProviderProblem as problem:
        logger.warning("company_sign_in_failed", step="callback", cause=str(problem))
        return _back(request, FAILED)
    page = own_page(request.session.get(NEXT, ""), "admin:index")
    logout(request)  # nobody else's session, nor its second factor, goes on
    try:
        person = read_person(claims, company())
        user = admit(person, company())
    except Refusal as refusal:
        return _back(request, str(refusal))
    user.sign_in_note = "With a company account"  # type: ignore[attr-defined]  # audit/people.py
    login(request, user, backend=BACKEND)
    if person.showed_factor:
        note_factor_shown_elsewhere(request, user)
    return HttpResponseRedirect(page)


def _check_time(request: HttpRequest) -> None:
    """Raises ProviderProblem if this browser left for the provider too long ago, or never."""
    if time.time() - request.session.get(STARTED, 0) > SECONDS_AT_THE_PROVIDER:
        raise ProviderProblem("too late")


def _wait(request: HttpRequest) -> int:
    return seconds_to_wait(
        group="company_sign_in",
        key=counted_address(request),
        limit=ATTEMPTS_PER_MINUTE,
    )


def _too_many(wait: int) -> str:
    return _("Too many attempts. Wait %(wait)s seconds and try again.") % {"wait": wait}


def _back(request: HttpRequest, words: str) -> HttpResponse:
    messages.error(request, str(words))
    return HttpResponseRedirect(reverse("admin:login"))
