"""The language of a person, in which they read pages and emails. The API is in English only."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import translation
from django.utils.cache import patch_vary_headers

from accounts.preferences.time_zones import LANGUAGE_IN_SESSION, SITES, preferences_of

LANDING = "/"  # the page that leads to the sites
DOCS = "/docs/"
COOKIE_SECONDS = 365 * 24 * 3600


def language_of(address: str) -> str:
    """The language of the emails to an address: that of its person, or English."""
    person = User.objects.filter(email=address).first()
    return preferences_of(person).language_of_emails or settings.LANGUAGE_CODE


class LanguageMiddleware:
    """Shows both sites in the language of the person who has signed in.

    So is the documentation. Without a choice, and before the sign-in, the browser chooses, or a
    link `?language=`, which sets a cookie.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        path = request.path_info
        if not path.startswith((*SITES, DOCS)) and path != LANDING:
            return self.get_response(request)
        chosen = request.session.get(LANGUAGE_IN_SESSION) if path != LANDING else None
        wanted = None if chosen else request.GET.get("language")
        if wanted in dict(settings.LANGUAGES):
            request.COOKIES[settings.LANGUAGE_COOKIE_NAME] = wanted
        else:
            wanted = None
        with translation.override(
            chosen
            if chosen in dict(settings.LANGUAGES)
            else translation.get_language_from_request(request)
        ):
            request.LANGUAGE_CODE = translation.get_language()  # as Django's own middleware
            response = self.get_response(request)
            response.headers.setdefault("Content-Language", translation.get_language() or "")
        patch_vary_headers(response, ["Accept-Language", "Cookie"])
        if wanted:
            response.set_cookie(
                settings.LANGUAGE_COOKIE_NAME,
                wanted,
                max_age=COOKIE_SECONDS,
                secure=settings.HTTPS,
                httponly=True,
                samesite="Lax",
            )
        return response
