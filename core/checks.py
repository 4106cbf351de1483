"""System checks that refuse to start with settings that could lose money or secrets."""

import ipaddress
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from email.utils import parseaddr
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import structlog
from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register, run_checks
from django.core.exceptions import ImproperlyConfigured
from django.db import Error as DjangoDatabaseError
from django.db import connection
from django.http.request import split_domain_port, validate_host

from core.database import sealing
from core.database.key_ring import WrongKeys, key_ring
from core.environment.addresses import WEB
from core.environment.misspelt import closest, is_misspelt

logger = structlog.get_logger(__name__)

TAG = "startup"
MIN_SECRET_KEY_LENGTH = 50
# PostgreSQL: no right. The guards of our tables refuse with the same number and other words.
NO_RIGHT = ("42501", "permission denied")


@register(TAG)
def check_secrets(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> Iterable[CheckMessage]:
    """voucher.E001 to E003: the database and the secret keys are set and usable."""
    if not settings.DATABASES["default"].get("NAME"):
        yield Error(
            "No database is configured: set DATABASE_URL, or start the embedded database with"
            " `make run`.",
            id="voucher.E001",
        )
    if len(_secret_key()) < MIN_SECRET_KEY_LENGTH:
        yield Error(
            f"DJANGO_SECRET_KEY must have at least {MIN_SECRET_KEY_LENGTH} characters.",
            id="voucher.E002",
        )
    if any(len(key) < MIN_SECRET_KEY_LENGTH for key in settings.SECRET_KEY_FALLBACKS):
        yield Error(
            f"Each key of DJANGO_SECRET_KEY_FALLBACKS must have at least {MIN_SECRET_KEY_LENGTH}"
            " characters.",
            id="voucher.E002",
        )
    try:
        sealing.parse_keys(settings.CODE_ENCRYPTION_KEYS)
    except sealing.BadKeys as error:
        yield Error(f"CODE_ENCRYPTION_KEYS: {error}", id="voucher.E003")


def _secret_key() -> str:
    """The secret key, or "". Django raises ImproperlyConfigured when the key is empty."""
    try:
        return str(settings.SECRET_KEY)
    except ImproperlyConfigured:
        return ""


@register(TAG)
def check_cache(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> Iterable[CheckMessage]:
    """voucher.E004: all web processes must count requests in one cache, or the limit multiplies."""
    if not settings.REDIS_URL and settings.WEB_WORKERS != 1:
        yield Error(
            "The rate limit needs a cache that all web workers share: set REDIS_URL,"
            " or set GRANIAN_WORKERS=1 to run a single worker.",
            id="voucher.E004",
        )


@register(TAG)
def check_broker(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> Iterable[CheckMessage]:
    """voucher.E005: refunds and cleanup run in Celery, which needs a broker."""
    if not settings.CELERY_BROKER_URL:
        yield Error("Celery has no broker: set CELERY_BROKER_URL or REDIS_URL.", id="voucher.E005")


@register(TAG)
def check_proxies(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> Iterable[CheckMessage]:
    """voucher.E006: every trusted proxy is a valid network, and none covers all addresses. Where
    browsers use HTTPS, there is one: the web server itself speaks plain HTTP."""
    if settings.HTTPS and not settings.TRUSTED_PROXIES:
        yield Error(
            "TRUSTED_PROXIES is not set, so no request counts as HTTPS: name the networks of the"
            " proxies in front. DJANGO_HTTPS=0 is for a service that nobody outside can reach.",
            id="voucher.E006",
        )
    for network in settings.TRUSTED_PROXIES:
        try:
            parsed = ipaddress.ip_network(network, strict=False)
        except ValueError:
            yield Error(f"TRUSTED_PROXIES: {network!r} is not a network.", id="voucher.E006")
            continue
        if parsed.prefixlen == 0:
            yield Error("TRUSTED_PROXIES must not cover every address.", id="voucher.E006")


@register(TAG)
def check_transactions(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """voucher.E007: a transaction around the whole request would hide its claim from a retry."""
    if settings.DATABASES["default"].get("ATOMIC_REQUESTS"):
        yield Error("ATOMIC_REQUESTS must be off.", id="voucher.E007")


@register(TAG)
def check_hosts(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> Iterable[CheckMessage]:
    """voucher.E008: Django refuses every request while ALLOWED_HOSTS has no host name."""
    if not settings.ALLOWED_HOSTS:
        yield Error(
            "DJANGO_ALLOWED_HOSTS is not set: list the host names of the service.",
            id="voucher.E008",
        )
    for host in settings.ALLOWED_HOSTS:
        name, port = split_domain_port(host)
        if host != "*" and (port or not name):
            yield Error(
                f"DJANGO_ALLOWED_HOSTS: {host!r} is no host name. Leave out https://, the port"
                " and the path.",
                id="voucher.E008",
            )
    for origin in settings.CSRF_TRUSTED_ORIGINS:
        address = urlsplit(origin)
        if address.scheme not in WEB or not address.hostname or address.path:
            yield Error(
                f"DJANGO_CSRF_TRUSTED_ORIGINS: {origin!r} is no origin, such as"
                " https://api.example.com.",
                id="voucher.E008",
            )


@register(TAG)
def check_variables(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """voucher.E013: no variable looks like one of the service without being one."""
    for name in sorted(os.environ):
        if is_misspelt(name):
            meant = closest(name)
            yield Error(
                f"{name} is no setting of the service."
                + (f" Did you mean {meant}?" if meant else " Remove it."),
                id="voucher.E013",
            )


@register(TAG)
def check_purchase_log(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """voucher.E014: this process can write to the folder of the purchase log."""
    folder = settings.PURCHASE_LOG_DIR
    if folder is None:
        return
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        yield Error(
            "PURCHASE_LOG_DIR names a folder that this process cannot make or write to.",
            id="voucher.E014",
        )


@register(TAG)
def check_migration_database(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """voucher.E015: `migrate` changes the database that the service uses. A pool of connections
    elsewhere may have another name for it."""
    other, ours = settings.MIGRATION_DATABASE, settings.DATABASES["default"]
    same_server = all(other.get(part) == ours.get(part) for part in ("HOST", "PORT"))
    if other.get("NAME") and same_server and other["NAME"] != ours.get("NAME"):
        yield Error(
            "MIGRATION_DATABASE_URL and DATABASE_URL name different databases.", id="voucher.E015"
        )


@register(TAG)
def check_telegram(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """voucher.E010: the Telegram token is valid. The message never quotes it."""
    token = settings.TELEGRAM_BOT_TOKEN
    if token and not re.fullmatch(r"[0-9]{1,20}:[A-Za-z0-9_-]{10,}", token):
        yield Error(
            "TELEGRAM_BOT_TOKEN is not a bot token. A bot token has the form 123456:ABC-def_123.",
            id="voucher.E010",
        )


@register(TAG)
def check_public_url(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """voucher.E011: links in emails work and use HTTPS, because the links are secrets.

    voucher.W002: those of a public service lead to its public host.
    """
    address = urlsplit(settings.PUBLIC_URL)
    host = address.hostname or ""
    if address.path or address.query or address.fragment or address.username:
        yield Error(
            "PUBLIC_URL must end with its host or port: https://api.example.com.",
            id="voucher.E011",
        )
    elif not (_is_local(host) or validate_host(host, settings.ALLOWED_HOSTS)):
        yield Error(
            f"PUBLIC_URL leads to {host}, which the service would refuse: add it to"
            " DJANGO_ALLOWED_HOSTS.",
            id="voucher.E011",
        )
    elif settings.HTTPS and address.scheme == "http" and not _is_local(host):
        yield Error(
            "PUBLIC_URL must begin with https://: links in emails are secrets.", id="voucher.E011"
        )
    elif settings.HTTPS and _is_local(host):
        yield Warning(
            "PUBLIC_URL is not set: links in emails lead to localhost.", id="voucher.W002"
        )


@register(TAG)
def check_email(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> Iterable[CheckMessage]:
    """voucher.E011: emails have a sender. voucher.W001: those of a public service reach merchants.

    voucher.W006: its pages name the contact of support.
    """
    if settings.HTTPS and settings.EMAIL_BACKEND.endswith(
        ("filebased.EmailBackend", "console.EmailBackend")
    ):
        yield Warning(
            "EMAIL_URL names no mail server: emails to merchants stay on this machine.",
            id="voucher.W001",
        )
    name, at, domain = parseaddr(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")
    if not (name and at and domain):
        yield Error(
            "EMAIL_FROM must be an email address, such as Shop <no-reply@shop.example>.",
            id="voucher.E011",
        )
    if settings.HTTPS and not settings.SUPPORT_CONTACT:
        yield Warning(
            "SUPPORT_CONTACT is not set: pages tell merchants to contact support, but not how.",
            id="voucher.W006",
        )


@register(TAG, deploy=True)
def check_connections(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """voucher.W003 to W005: a remote database, cache or broker uses TLS and asks for a password.

    `check --deploy` runs it. The messages never quote an address: it may contain a password.
    """
    yield from _check_database("DATABASE_URL", settings.DATABASES["default"])
    yield from _check_database("MIGRATION_DATABASE_URL", settings.MIGRATION_DATABASE)
    yield from _check_url("REDIS_URL", settings.REDIS_URL, "cache", "voucher.W004")
    if settings.CELERY_BROKER_URL != settings.REDIS_URL:
        for url in settings.CELERY_BROKER_URL.split(";"):
            yield from _check_url("CELERY_BROKER_URL", url, "broker", "voucher.W005")


def _check_database(variable: str, database: Mapping[str, Any]) -> Iterable[CheckMessage]:
    options = database.get("OPTIONS", {})
    hosts = database.get("HOST", "").split(",")
    if all(not host or host.startswith("/") or _is_local(host) for host in hosts):
        return
    if options.get("sslmode") not in ("require", "verify-ca", "verify-full"):
        yield Warning(
            f"{variable} names a remote database without TLS: add ?sslmode=verify-full.",
            id="voucher.W003",
        )
    if not (database.get("PASSWORD") or options.get("passfile") or options.get("sslcert")):
        yield Warning(f"{variable} names a remote database without a password.", id="voucher.W003")


ENCRYPTED = {"redis": "rediss", "amqp": "amqps", "pyamqp": "amqps"}


def _check_url(variable: str, url: str, what: str, id: str) -> Iterable[CheckMessage]:
    address = urlsplit(url)
    if not address.hostname or _is_local(address.hostname):
        return
    if address.scheme in ENCRYPTED:
        yield Warning(
            f"{variable} names a remote {what} without TLS:"
            f" begin it with {ENCRYPTED[address.scheme]}://.",
            id=id,
        )
    if not (address.password or "password=" in address.query):
        yield Warning(f"{variable} names a remote {what} without a password.", id=id)


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def refuse_start_without_static_files() -> None:
    """Exits with status 1 and one line if STATIC_ROOT is set and nothing was collected there.

    Only the web server needs the files, so this is not one of the startup checks.
    """
    if settings.STATIC_ROOT and not (Path(settings.STATIC_ROOT) / "staticfiles.json").is_file():
        sys.stderr.write(
            "voucher.E012: STATIC_ROOT has no collected files. Run `manage.py collectstatic`.\n"
        )
        sys.exit(1)


def refuse_unsafe_start() -> None:
    """Runs the startup checks. Exits with status 1 and one line on stderr for each error.

    The web server and Celery call this function; `manage.py` runs the checks by itself.
    """
    errors = [message for message in run_checks(tags=[TAG]) if message.is_serious()]
    for error in errors:
        sys.stderr.write(f"{error.id}: {error.msg}\n")
    if errors:
        sys.exit(1)


def refuse_wrong_keys() -> None:
    """Exits with status 1 and one line on stderr if CODE_ENCRYPTION_KEYS does not fit the stored
    values, or if the role may not read them. The web server and Celery's workers call it when they
    start.

    Without a database there is nothing to compare the keys with. The process then starts, checks
    the keys before it first uses them, and `/readyz` reports it as not ready until then.
    """
    try:
        key_ring()
    except WrongKeys as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(1)
    except DjangoDatabaseError as error:
        if problem := schema_problem(error):
            sys.stderr.write(f"{problem}\n")
            sys.exit(1)
        logger.warning("encryption_keys_not_checked", cause=type(error).__name__)
    finally:
        connection.close()  # a process that forks must not share it


def schema_problem(error: DjangoDatabaseError) -> str | None:
    """The line to show if `migrate` has not given the role its rights; else None."""
    cause = error.__cause__
    state, words = NO_RIGHT
    if getattr(cause, "sqlstate", None) != state:
        return None
    message: str = cause.diag.message_primary  # type: ignore[union-attr]
    if not message.startswith(words):
        return None
    return (
        f"voucher.E016: The database refuses the role {settings.SERVICE_ROLE}: {message}."
        " Run `manage.py migrate` of this version, which gives the role its rights."
    )
