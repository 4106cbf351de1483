"""Responses to errors outside a view: unknown paths, bad hosts, failed CSRF checks, lockouts.

The merchant site, its documentation and the back office respond with pages in their own layout,
every other path with JSON (core/http/error_messages.py). A browser gets the first page at an
unknown path outside the API. Each page of a site names the request id and a way out.
"""

from dataclasses import dataclass
from http import HTTPStatus

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.template.loader import render_to_string
from django.urls import is_valid_path
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from core.http import error_messages
from core.http.error_page import error_context, error_page
from core.texts import lazy
from merchants.docs import docs_pages
from merchants.frame.pages import show


@dataclass(frozen=True)
class Site:
    """A site for people. `signs_in_with` says what they type besides a password."""

    prefix: str
    template: str
    home: tuple[str, str]  # label and address of the way out
    signs_in_with: str
    forbidden: str = ""  # replaces the text of a PermissionDenied


MERCHANT_SITE = Site(
    prefix="/merchant/",
    template="merchants/error.html",
    home=(lazy("Go to the overview"), "/merchant/"),
    signs_in_with=lazy("email"),
)
BACK_OFFICE = Site(
    prefix="/admin/",
    template="admin/error.html",
    home=(lazy("Go to the back office"), "/admin/"),
    signs_in_with=lazy("name"),
    forbidden=lazy("You do not have permission for it. Ask an administrator to grant it."),
)
SITES = (MERCHANT_SITE, BACK_OFFICE)
# Paths below these are pages, whose address people may type without its last slash.
DOCS = "/docs/"
PAGES = (*(site.prefix for site in SITES), DOCS)
NOT_FOUND = gettext_noop("Page not found")
LOST = gettext_noop("The address is wrong, or what the page showed no longer exists.")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler400"""
    site = _site_of(request)
    if site is None:
        return error_messages.bad_request(request, exception)
    text = _("The server could not read this request. Go back and try again.")
    return _page(site, HTTPStatus.BAD_REQUEST, _("Bad request"), text)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler403"""
    site = _site_of(request)
    if site is None:
        return error_messages.permission_denied(request, exception)
    title = _("You cannot open this page")
    if site is MERCHANT_SITE and getattr(request.user, "is_staff", False):
        return error_page(
            site.template,
            HTTPStatus.FORBIDDEN,
            title,
            _(
                "You are signed in as staff (%(user)s). These pages are for members of a"
                " merchant's account."
            )
            % {"user": request.user},
            home=BACK_OFFICE.home,
            request=request,
        )
    return _page(site, HTTPStatus.FORBIDDEN, title, site.forbidden or str(exception))


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """CSRF_FAILURE_VIEW. The usual cause is a page opened before the user signed in or out."""
    text = _(
        "Nothing was changed. You signed in or out after you opened the form, or your browser"
        " blocks cookies. Open the page again and repeat your change."
    )
    site = _site_of(request)
    if site is None and "Authorization" in request.headers:
        return error_messages.permission_denied(request, PermissionDenied())
    return _page(site or BACK_OFFICE, HTTPStatus.FORBIDDEN, _("This form has expired"), text)


def locked_out(request: HttpRequest, *details: object) -> HttpResponse:
    """AXES_LOCKOUT_CALLABLE: the same 429 for known and unknown usernames.

    503 if the password was not checked because the process was checking another one.
    """
    site = _site_of(request) or BACK_OFFICE
    if hasattr(request, "sign_in_wait"):
        return _password_unchecked_page(site, request.path, request.sign_in_wait)
    minutes = int(settings.AXES_COOLOFF_TIME.total_seconds() / 60)
    text = _(
        "Too many wrong passwords were typed for this %(signs_in_with)s or from your network."
        " Wait %(minutes)s minutes, then try again."
    ) % {"signs_in_with": site.signs_in_with, "minutes": minutes}
    status, title = HTTPStatus.TOO_MANY_REQUESTS, _("Too many wrong passwords")
    if site is MERCHANT_SITE:
        more = _("To sign in now, set a new password: the link in the email signs you in.")
        home = (_("Reset your password"), "/merchant/password/forgotten/")
    else:
        more = _(
            "If another person keeps guessing your password, sign in from a network that you have"
            " used before. Browsers in which you are signed in keep working."
        )
        home = site.home
    return _page(site, status, title, text, more, home=home)


def _password_unchecked_page(site: Site, path: str, wait: int) -> HttpResponse:
    """The page for a password that was not checked. `wait` is 0, or the seconds of a limit."""
    text = _("Your password was not checked, because another person was signing in.")
    when, status = _("Try again in a moment."), HTTPStatus.SERVICE_UNAVAILABLE
    if wait:
        text = _(
            "Your password was not checked, because there were too many sign-ins with this"
            " %(signs_in_with)s or from your network."
        ) % {"signs_in_with": site.signs_in_with}
        seconds = ngettext("%(wait)s second", "%(wait)s seconds", wait) % {"wait": wait}
        when, status = (
            _("Wait %(seconds)s, then try again.") % {"seconds": seconds},
            HTTPStatus.TOO_MANY_REQUESTS,
        )
    return _page(
        site, status, _("Too many sign-ins at once"), text, when, home=(_("Sign in"), path)
    )


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler404. The address of a page without its last slash redirects to the page."""
    if _lacks_its_slash(request):
        query = request.META.get("QUERY_STRING", "")
        return HttpResponsePermanentRedirect(f"{request.path}/" + (f"?{query}" if query else ""))
    site = _site_of(request)
    if site is None and request.path.startswith(DOCS):
        return docs_pages.not_found(request)
    if site is None and not _is_browser(request):
        return error_messages.not_found(request, exception)
    if site is None:  # no middleware has chosen the language
        with translation.override(translation.get_language_from_request(request)):
            page = render_to_string("landing.html", {"title": _(NOT_FOUND), "text": _(LOST)})
        headers = {"Vary": "Accept, Accept-Language, Cookie"}
        return HttpResponse(page, status=HTTPStatus.NOT_FOUND, headers=headers)
    title, text = _(NOT_FOUND), _(LOST)
    if site is MERCHANT_SITE and (member := docs_pages.find_reader(request)):
        context = error_context(title, text, home=site.home)
        return show(request, member, site.template, status=HTTPStatus.NOT_FOUND, **context)
    return _page(site, HTTPStatus.NOT_FOUND, title, text)


def server_error(request: HttpRequest) -> HttpResponse:
    """handler500. It reads no database: that may be what failed."""
    site = _site_of(request)
    if site is None:
        return error_messages.server_error(request)
    text = _(
        "The error is on our side, and we have recorded it. If you were saving something, check"
        " whether it was saved before you try again."
    )
    return _page(site, HTTPStatus.INTERNAL_SERVER_ERROR, _("Something went wrong"), text)


def _lacks_its_slash(request: HttpRequest) -> bool:
    whole = f"{request.path}/"
    return (
        request.method in ("GET", "HEAD")
        and whole.startswith(PAGES)
        and not whole.endswith("//")  # every path below /admin/ is valid
        and bool(is_valid_path(whole))
    )


def _is_browser(request: HttpRequest) -> bool:
    """Whether a person looks for a page. Programs and every path of the API get JSON."""
    return (
        request.method in ("GET", "HEAD")
        and request.headers.get("Accept", "").startswith("text/html")
        and "Authorization" not in request.headers
        and not request.path.startswith("/api")
    )


def _site_of(request: HttpRequest) -> Site | None:
    """The site of the path; None for a program with a key, which reads no page."""
    if request.headers.get("Authorization", "").lower().startswith("bearer "):
        return None
    return next((site for site in SITES if request.path.startswith(site.prefix)), None)


def _page(
    site: Site, status: HTTPStatus, title: str, *texts: str, home: tuple[str, str] | None = None
) -> HttpResponse:
    return error_page(site.template, status, title, *texts, home=home or site.home)
