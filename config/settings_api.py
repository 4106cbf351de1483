"""The settings of a web process that serves only the API.

It loads only what a purchase needs. Every response is the same, byte for byte, as that of a process
that serves everything (tests/api/test_kinds_of_processes.py). Only unknown paths outside the API
differ: there, a process with pages has a page for browsers.
"""

from config.settings import *  # noqa: F403

# Without the packages that only add pages, static files or commands.
INSTALLED_APPS = [
    "django.contrib.auth",  # other models refer to its users
    "django.contrib.contenttypes",
    "core.apps.CoreConfig",
    "audit",
    "accounts",
    "catalogue",
    "wallets",
    "idempotency",
    "topups",
    "orders",
    "operators.telegram",  # queues the announcement of a top-up
]

MIDDLEWARE = [
    "core.http.request_metrics.RequestMetricsMiddleware",
    "accounts.api_access.request_records.RequestRecordMiddleware",
    "core.http.request_log.RequestLogMiddleware",
    "accounts.middleware.TrustedProxyMiddleware",
    "core.http.middleware.ApiOverHttpsMiddleware",
    "core.http.body_limits.BodyLimitMiddleware",
    "core.http.api_headers.ApiHeadersMiddleware",
    "core.http.hosts.AllowedHostsMiddleware",
]
# ApiHeadersMiddleware sets the headers of the middleware that W001 and W002 miss. The CSRF
# middleware (W003) is not needed: no request is authenticated by a cookie.
_needless = ["security.W001", "security.W002", "security.W003"]
SILENCED_SYSTEM_CHECKS = [*SILENCED_SYSTEM_CHECKS, *_needless]  # noqa: F405

ROOT_URLCONF = "config.urls_api"
TEMPLATES = []
CSRF_FAILURE_VIEW = "django.views.csrf.csrf_failure"  # ours loads the pages, and none calls it here
USE_I18N = False  # the API is in English only
STATIC_ROOT = None  # the files are served by the processes for pages
