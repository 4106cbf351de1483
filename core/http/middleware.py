"""Middleware that refuses plain HTTP for the API, sets the headers of pages and compresses them."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.utils.cache import add_never_cache_headers

from core.api.envelope import message_response
from core.api.paths import API_PREFIX


class ApiOverHttpsMiddleware:
    """Refuses API requests over plain HTTP with 403 `{message}` when DJANGO_HTTPS is on.

    A redirect would hide that the API key was sent unencrypted, and some clients follow a
    redirected POST as a GET.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if settings.HTTPS and request.path.startswith(API_PREFIX) and not request.is_secure():
            return message_response(403, "Use https://. This request and its key were unencrypted.")
        return self.get_response(request)


class PageHeadersMiddleware:
    """Sets Content-Security-Policy, Permissions-Policy and Cache-Control.

    Pages for people show players, money, codes and keys. Browsers must not cache or frame them, and
    pages exchange data only with this service. In the back office the theme needs two exceptions:
    Alpine evaluates expressions in templates (`unsafe-eval`), and the colours are an inline style
    (`unsafe-inline`).

    API responses are not cached: they contain codes, and a poll must return the current state.
    """

    STRICT = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "font-src": "'self'",
        "connect-src": "'self'",
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }
    POLICIES = {
        "/admin/": STRICT
        | {"script-src": "'self' 'unsafe-eval'", "style-src": "'self' 'unsafe-inline'"},
        "/merchant/": STRICT,
        "/docs/": STRICT,
    }

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.headers = {
            prefix: "; ".join(f"{name} {sources}" for name, sources in policy.items())
            for prefix, policy in self.POLICIES.items()
        }

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.path_info.startswith(API_PREFIX):
            response["Cache-Control"] = "no-store"
            return response
        policy = self._policy_of(request.path_info)  # which is independent of the mount point
        if policy:
            response["Content-Security-Policy"] = policy
            response["Permissions-Policy"] = "camera=(), geolocation=(), microphone=()"
            add_never_cache_headers(response)
        return response

    def _policy_of(self, path: str) -> str | None:
        if path == "/":
            path = "/merchant/"  # the landing page looks like the merchant site
        prefixes = (prefix for prefix in self.headers if path.startswith(prefix))
        return self.headers.get(next(prefixes, ""))


class PageGZipMiddleware(GZipMiddleware):
    """Compresses pages. API responses stay as an API process sends them.

    Against BREACH, Django adds a random number of bytes, and masks the CSRF token differently in
    each response.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        if request.path_info.startswith(API_PREFIX):
            return response
        return super().process_response(request, response)
