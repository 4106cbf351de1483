"""What every request passes: HTTPS for the API, and headers that limit what pages may do."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.cache import add_never_cache_headers

from config.api.envelope import API_PREFIX, message_response


class ApiOverHttpsMiddleware:
    """Refuses the API over plain HTTP (403) where the service is reached by HTTPS.

    A redirect would be followed as a GET by some clients, and the key has been in the open by then:
    better that the very first call of a program fails.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if settings.HTTPS and request.path.startswith(API_PREFIX) and not request.is_secure():
            return message_response(403, "Use https: this request and its key came unencrypted.")
        return self.get_response(request)


class PageHeadersMiddleware:
    """Tells browsers that pages for people load nothing from elsewhere, send nothing there, stand
    in no frame and are kept nowhere: they show players, money, codes and keys.

    In the back office the theme's Alpine evaluates the expressions in its templates, and the
    theme's colours are a style in the page: hence the two `unsafe`. The API's page has a style in
    it, too. The merchants' page needs neither.

    Answers of the API are kept nowhere either: they hold codes, and a poll wants what is now.
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
        "/docs/": STRICT | {"style-src": "'self' 'unsafe-inline'"},
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
        for prefix, policy in self.headers.items():
            if request.path_info.startswith(prefix):  # wherever the service is mounted
                response["Content-Security-Policy"] = policy
                response["Permissions-Policy"] = "camera=(), geolocation=(), microphone=()"
                add_never_cache_headers(response)
        return response
