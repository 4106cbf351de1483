"""What the settings of API processes leave out, and that each kind passes Django's checks."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import RequestFactory
from django.utils.module_loading import import_string

from config import settings as all_settings
from config import settings_api
from embedded.environment import PROJECT
from tests.core.test_unsafe_settings import SAFE
from tests.quick_starts import run_quickly

API_HEADERS = "core.http.api_headers.ApiHeadersMiddleware"
THE_SAME_HEADERS = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "core.http.middleware.PageHeadersMiddleware",
]
MODULES = ["config.settings", "config.settings_api", "config.settings_pages"]
# An API process never loads these: they take memory, and no request needs them.
NOT_FOR_THE_API = {
    *("merchants", "operators.upkeep", "operators.admin", "unfold", "axes", "whitenoise"),
    *("django.contrib.sessions", "django.contrib.messages.middleware"),
    *("django.contrib.staticfiles", "telegram", "segno"),
}


def environment_of(module: str) -> dict[str, str]:
    return {
        **SAFE,
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(PROJECT),
        "DJANGO_SETTINGS_MODULE": module,
    }


@pytest.mark.parametrize("module", MODULES)
def test_each_kind_passes_the_deployment_checks(module: str, tmp_path: Path) -> None:
    command = [str(PROJECT / "manage.py"), "check", "--deploy", "--fail-level=WARNING"]
    ended = run_quickly(command, environment=environment_of(module), folder=tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "no issues" in ended.stdout


def test_an_api_process_loads_nothing_of_the_pages(tmp_path: Path) -> None:
    program = "import sys, config.wsgi; print(*sys.modules)"
    environment = environment_of("config.settings_api")
    # `run_quickly` would have loaded other modules.
    loaded = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert "orders.views" in loaded
    assert NOT_FOR_THE_API.isdisjoint(loaded)


@pytest.mark.parametrize("path", ["/api/v1/ping", "/healthz", "/nothing"])
@pytest.mark.parametrize("https", [False, True])
@pytest.mark.parametrize("secure", [False, True])
def test_one_middleware_sets_the_headers_of_three(
    path: str, https: bool, secure: bool, settings: Any
) -> None:
    settings.SECURE_SSL_REDIRECT = https
    settings.SECURE_HSTS_SECONDS = 60 if https else 0
    settings.SECURE_HSTS_PRELOAD = settings.SECURE_HSTS_INCLUDE_SUBDOMAINS = https
    answers = []
    for names in ([API_HEADERS], THE_SAME_HEADERS):
        chain: Any = lambda request: HttpResponse("body")  # noqa: E731
        for name in reversed(names):
            chain = import_string(name)(chain)
        answers.append(chain(RequestFactory().get(path, secure=secure, HTTP_HOST="localhost")))
    one, other = answers
    assert (one.status_code, dict(one.headers)) == (other.status_code, dict(other.headers))


def test_api_middleware_keeps_its_order() -> None:
    """A middleware that everything needs must be added to both lists."""
    expanded = list(settings_api.MIDDLEWARE)
    place = expanded.index(API_HEADERS)
    expanded[place : place + 1] = THE_SAME_HEADERS
    shared = [name for name in all_settings.MIDDLEWARE if name in expanded]
    assert shared == expanded
    assert set(all_settings.MIDDLEWARE) - set(shared) == {
        "whitenoise.middleware.WhiteNoiseMiddleware",
        "core.http.middleware.PageGZipMiddleware",
        "accounts.sign_in.sessions.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django_otp.middleware.OTPMiddleware",
        "accounts.preferences.languages.LanguageMiddleware",
        "accounts.middleware.ActorMiddleware",
        "accounts.preferences.time_zones.TimeZoneMiddleware",
        "operators.sign_in.middleware.StaffSecondFactorMiddleware",
        "merchants.middleware.MemberSecondFactorMiddleware",
        "operators.frame.reader.ReaderMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
        "axes.middleware.AxesMiddleware",
    }


@pytest.mark.parametrize(
    ("others", "queue", "confirmed"),
    [
        ({}, "classic", False),
        ({"CELERY_BROKER_URL": "amqp://voucher:secret@127.0.0.1:1//"}, "classic", True),
        (
            {
                "CELERY_BROKER_URL": "amqp://voucher:secret@127.0.0.1:1//",
                "CELERY_QUORUM_QUEUES": "1",
            },
            "quorum",
            True,
        ),
    ],
    ids=["Redis", "RabbitMQ", "quorum queues"],
)
def test_tasks_are_queued_as_the_broker_needs_it(
    others: dict[str, str], queue: str, confirmed: bool, tmp_path: Path
) -> None:
    """As Celery itself reads the settings."""
    program = (
        "import json; from config.celery import app; from core.queue import TIMEOUTS;"
        "options = app.connection_for_write(transport_options=TIMEOUTS).transport_options;"
        "kind = app.amqp.queues['celery'].queue_arguments or {};"
        "print(json.dumps([kind.get('x-queue-type'), options.get('confirm_publish', False)]))"
    )
    environment = environment_of("config.settings") | others
    printed = run_quickly(["-c", program], environment=environment, folder=tmp_path, check=True)
    kind, confirms = json.loads(printed.stdout)
    assert (kind or "classic", confirms) == (queue, confirmed)
