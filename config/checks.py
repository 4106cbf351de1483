"""System checks for settings that would lose money or secrets: refused at start, one line each."""

import ipaddress
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register, run_checks
from django.core.exceptions import ImproperlyConfigured

from config.database import sealing

TAG = "startup"
MIN_SECRET_KEY_LENGTH = 50
MAX_TELEGRAM_TIMEOUT = 12  # so that a task that begins a call late ends before its limit


@register(TAG)
def check_secrets(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> Iterable[CheckMessage]:
    """voucher.E001 to E003: the secrets are there and usable."""
    if not settings.DATABASES["default"].get("NAME"):
        yield Error(
            "No database: set DATABASE_URL, or start the embedded one with `make run`.",
            id="voucher.E001",
        )
    if len(_secret_key()) < MIN_SECRET_KEY_LENGTH:
        yield Error(
            f"DJANGO_SECRET_KEY is not set, or shorter than {MIN_SECRET_KEY_LENGTH} characters.",
            id="voucher.E002",
        )
    try:
        sealing.parse_keys(settings.CODE_ENCRYPTION_KEYS)
    except sealing.BadKeys as error:
        yield Error(f"CODE_ENCRYPTION_KEYS: {error}", id="voucher.E003")


def _secret_key() -> str:
    """Django refuses to hand over an empty one, with an exception."""
    try:
        return str(settings.SECRET_KEY)
    except ImproperlyConfigured:
        return ""


@register(TAG)
def check_cache(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> Iterable[CheckMessage]:
    """voucher.E004: a rate limit counted per process is no limit for several processes."""
    backend = str(settings.CACHES["default"]["BACKEND"])
    if not backend.endswith("RedisCache") and settings.WEB_WORKERS != 1:
        yield Error(
            "The rate limit needs a cache that all web workers share: set REDIS_URL"
            " (or GRANIAN_WORKERS=1 if there really is only one).",
            id="voucher.E004",
        )


@register(TAG)
def check_broker(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> Iterable[CheckMessage]:
    """voucher.E005: without a broker no refund and no cleanup would ever run."""
    if not settings.CELERY_BROKER_URL:
        yield Error("Celery has no broker: set CELERY_BROKER_URL or REDIS_URL.", id="voucher.E005")


@register(TAG)
def check_proxies(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> Iterable[CheckMessage]:
    """voucher.E006: a proxy list with a typo would trust nobody, or everybody."""
    for network in settings.TRUSTED_PROXIES:
        try:
            parsed = ipaddress.ip_network(network, strict=False)
        except ValueError:
            yield Error(f"TRUSTED_PROXIES: {network!r} is not a network.", id="voucher.E006")
            continue
        if parsed.prefixlen == 0:
            yield Error("TRUSTED_PROXIES must not trust every address.", id="voucher.E006")


@register(TAG)
def check_transactions(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """voucher.E007: a transaction around the request would hide the claim from a retry."""
    if settings.DATABASES["default"].get("ATOMIC_REQUESTS"):
        yield Error("ATOMIC_REQUESTS must stay off.", id="voucher.E007")


@register(TAG)
def check_hosts(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> Iterable[CheckMessage]:
    """voucher.E008: without a host name every request would be refused."""
    if not settings.ALLOWED_HOSTS:
        yield Error("DJANGO_ALLOWED_HOSTS is not set.", id="voucher.E008")


@register(TAG)
def check_telegram(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """voucher.E010: a token or an address that cannot work; neither is shown, both are secrets."""
    token, address = settings.TELEGRAM_BOT_TOKEN, urlsplit(settings.TELEGRAM_API_URL)
    if token and not re.fullmatch(r"[0-9]{1,20}:[A-Za-z0-9_-]{10,}", token):
        yield Error(
            "TELEGRAM_BOT_TOKEN is no token of a bot: digits, a colon, letters.",
            id="voucher.E010",
        )
    if address.scheme not in ("http", "https") or not address.hostname:
        yield Error(
            "TELEGRAM_API_URL must begin with https:// (or http://) and name a host.",
            id="voucher.E010",
        )
    if settings.TELEGRAM_TIMEOUT_SECONDS > MAX_TELEGRAM_TIMEOUT:
        yield Error(
            f"TELEGRAM_TIMEOUT_SECONDS must be at most {MAX_TELEGRAM_TIMEOUT}: a task must end.",
            id="voucher.E010",
        )


@register(TAG)
def check_email(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> Iterable[CheckMessage]:
    """voucher.E011: links in letters are secrets, and must lead somewhere.

    voucher.W001 and W002: the service runs for the public, and its letters reach nobody.
    """
    address = urlsplit(settings.PUBLIC_URL)
    if address.scheme not in ("http", "https") or not address.hostname:
        yield Error(
            "PUBLIC_URL must begin with https:// (or http://) and name a host.", id="voucher.E011"
        )
    elif settings.HTTPS and address.scheme == "http" and not _is_local(address.hostname):
        yield Error(
            "PUBLIC_URL must begin with https://: links in letters are secrets.", id="voucher.E011"
        )
    elif settings.HTTPS and _is_local(address.hostname):
        yield Warning(
            "PUBLIC_URL is not set: links in letters lead to localhost.", id="voucher.W002"
        )
    if settings.HTTPS and settings.EMAIL_BACKEND.endswith(
        ("filebased.EmailBackend", "console.EmailBackend")
    ):
        yield Warning(
            "EMAIL_URL is not set: letters to merchants stay in files on this machine.",
            id="voucher.W001",
        )


def _is_local(host: str) -> bool:
    return host in ("localhost", "127.0.0.1", "::1")


def refuse_unsafe_start() -> None:
    """Exits with status 1 and one line per problem; called by the web server and by Celery.

    `manage.py` runs the same checks by itself.
    """
    errors = [message for message in run_checks(tags=[TAG]) if message.is_serious()]
    for error in errors:
        sys.stderr.write(f"{error.id}: {error.msg}\n")
    if errors:
        sys.exit(1)
