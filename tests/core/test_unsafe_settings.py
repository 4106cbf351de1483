"""Unsafe settings stop the start with one line that contains the id of the check."""

import base64
import os
import re
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from core.environment import env
from embedded.environment import PROJECT
from tests.quick_starts import run_each, run_quickly

KEY = base64.urlsafe_b64encode(bytes(range(32))).decode()
SAFE = {
    "DATABASE_URL": "postgresql://voucher:secret@127.0.0.1:1/voucher",
    "REDIS_URL": "redis://127.0.0.1:1/0",
    "DJANGO_SECRET_KEY": "s" * 10 + "".join(chr(code) for code in range(48, 123)),
    "CODE_ENCRYPTION_KEYS": f"1:{KEY}",
    "DJANGO_ALLOWED_HOSTS": "api.example",
    "DJANGO_CSRF_TRUSTED_ORIGINS": "https://api.example",
    "TRUSTED_PROXIES": "10.0.0.0/8,2001:db8::/32",
    "EMAIL_URL": "smtp+tls://service:secret@mail.example:587",
    "PUBLIC_URL": "https://api.example",
    "SUPPORT_CONTACT": "help@api.example",
}

PASSWORDS = {
    "DATABASE_URL": "postgresql",
    "MIGRATION_DATABASE_URL": "postgresql",
    "REDIS_URL": "redis",
    "EMAIL_URL": "smtp",
}
DATABASE = "postgresql://voucher:secret@127.0.0.1:1/voucher"
NUMBERS = ("0", "-1", "5m", "1e3", "99999999999999999999999", "00000000000000000000999999999")
WORDS_FOR_BOOL = ("ture", "2", "")
# Wrong values of each variable, and a word of the line that refuses them. None: the variable is
# unset. Every variable of the service has a row here, or in ANY_TEXT.
WRONG: dict[str, list[tuple[str | None, str]]] = {
    "DATABASE_URL": [
        ("", "No database is configured: set DATABASE_URL"),
        ("postgresql://127.0.0.1", "E001"),
        ("mysql://127.0.0.1/voucher", "must begin with postgresql://"),
        ("postgersql://127.0.0.1/voucher", "must begin with postgresql://"),
        ("postgresql://voucher:secret@127.0.0.1:port/voucher", "no valid address"),
        (f"{DATABASE}?sslmod=require", "unknown here: sslmod"),
        (f"{DATABASE}?sslmode=verify_full", "a value that cannot be used: sslmode"),
        (f"{DATABASE}?sslmode=require&sslmode=prefer", "an option twice"),
        (f"{DATABASE}?conn_max_age=5", "unknown here: conn_max_age"),
        (f"{DATABASE}?options=-csearch_path%3Da", "unknown here: options"),
        (f"{DATABASE}?sslmode=verify-ca&sslrootcert=/nothing", "cannot be used: sslrootcert"),
    ],
    "MIGRATION_DATABASE_URL": [
        ("sqlite:///voucher", "must begin with postgresql://"),
        ("postgresql://owner:secret@127.0.0.1:1/other", "name different databases"),
        (f"{DATABASE}?sslmod=require", "unknown here: sslmod"),
    ],
    "REDIS_URL": [
        (None, "E004"),
        ("http://127.0.0.1", "must begin with redis://"),
        ("reddis://127.0.0.1", "must begin with redis://"),
        ("redis://127.0.0.1:1/zero", "the number of a database"),
        ("redis://127.0.0.1:1/0?sslmod=x", "unknown here: sslmod"),
        ("redis://127.0.0.1:1/0?ssl_cert_reqs=none", "unknown here: ssl_cert_reqs"),
        ("rediss://127.0.0.1:1/0?ssl_cert_reqs=no", "cannot be used: ssl_cert_reqs"),
        ("rediss://127.0.0.1:1/0?ssl_ca_certs=/nothing", "cannot be used: ssl_ca_certs"),
        ("unix:///run/valkey", "CELERY_BROKER_URL must be set"),
    ],
    "CELERY_BROKER_URL": [
        ("ampq://127.0.0.1:1//", "must begin with redis://"),
        ("sqs://127.0.0.1", "must begin with redis://"),
        ("amqp://127.0.0.1:1//;ampq://127.0.0.2:1//", "must begin with redis://"),
        ("amqp://127.0.0.1:1//?heartbeat=5", "unknown here: heartbeat"),
        ("redis://127.0.0.1:1/one", "the number of a database"),
    ],
    "CELERY_QUORUM_QUEUES": [("1", "is for RabbitMQ"), ("ture", "must be 1 or 0")],
    "EMAIL_URL": [
        ("smtps//mail.example", "must begin with smtp://"),
        ("mail.example:587", "must begin with smtp://"),
        ("smtp+tls://", "must name a mail server"),
        ("smtp+tls://mail.example:587?timeout=5", "unknown here: timeout"),
    ],
    "EMAIL_FROM": [("no-reply", "must be an email address"), ("", "must be an email address")],
    "DJANGO_SECRET_KEY": [(None, "E002"), ("", "E002"), ("s" * 49, "E002")],
    "DJANGO_SECRET_KEY_FALLBACKS": [(f"{'f' * 50},{'s' * 49}", "E002")],
    "CODE_ENCRYPTION_KEYS": [
        (None, "E003"),
        (KEY, "E003"),
        (f"0:{KEY}", "E003"),
        (f"1:{KEY},1:{KEY}", "E003"),
        ("1:c2hvcnQ=", "E003"),
        ("1:%%%", "E003"),
    ],
    "DJANGO_ALLOWED_HOSTS": [
        (None, "E008"),
        ("https://api.example", "is no host name"),
        ("api.example:443", "is no host name"),
        ("api.example/path", "is no host name"),
        ("other.example", "PUBLIC_URL leads to api.example"),
    ],
    "DJANGO_CSRF_TRUSTED_ORIGINS": [
        ("api.example", "is no origin"),
        ("https://api.example/admin", "is no origin"),
    ],
    "DJANGO_HTTPS": [(value, "must be 1 or 0") for value in WORDS_FOR_BOOL],
    "TRUSTED_PROXIES": [
        (None, "TRUSTED_PROXIES is not set"),
        ("10.0.0.0/99", "is not a network"),
        ("proxy.example", "is not a network"),
        ("0.0.0.0/0", "every address"),
        ("::/0", "every address"),
    ],
    "PUBLIC_URL": [
        ("shop.example", "must begin with https://"),
        ("htps://api.example", "must begin with https://"),
        ("http://api.example", "must begin with https://"),
        ("https://", "must contain a host"),
        ("https://api.example/shop", "must end with its host"),
        ("https://shop.example", "add it to DJANGO_ALLOWED_HOSTS"),
    ],
    "TELEGRAM_BOT_TOKEN": [("secret", "is not a bot token")],
    "TELEGRAM_API_URL": [
        ("api.telegram.org", "must begin with https://"),
        ("https:///", "must contain a host"),
    ],
    "OTEL_EXPORTER_OTLP_ENDPOINT": [("collector:4318", "must begin with https://")],
    "OTEL_EXPORTER_OTLP_HEADERS": [("Authorization: Bearer secret@", "must be name=value pairs")],
    "SENTRY_DSN": [("https://sentry.example", "is not an address of Sentry")],
    "LOG_LEVEL": [("LOUD", "must be DEBUG"), ("NOTSET", "must be DEBUG")],
    "PURCHASE_LOG_DIR": [
        ("/proc/purchases", "cannot make or write to"),
        ("/etc/hostname/purchases", "a part of its path is a file"),
    ],
    "METRICS_DIR": [("/etc/hostname/metrics", "a part of its path is a file")],
    "METRICS_HOST": [("everywhere", "must be an IP address"), ("127.0.0", "must be an IP")],
    "METRICS_PORT": [("99999", "from 1 to 65535"), ("http", "from 1 to 65535")],
    "PRICE_FALL_PERCENT": [("101", "from 1 to 100"), ("30%", "from 1 to 100")],
    "DESK_LATE_MINUTES": [("10", "more than DESK_WAITING_MINUTES"), ("0", "from 1 to")],
    "RETENTION_NIGHTLY": [("maybe", "must be 1 or 0")],
    "RETENTION_PLAYER_ID_DAYS": [("29", "from 30 to")],
    "RETENTION_EMAIL_DAYS": [("6", "from 7 to")],
    "RETENTION_SIGN_IN_DAYS": [("89", "from 90 to")],
    "RETENTION_READ_AUDIT_DAYS": [("89", "from 90 to")],
    "COMPANY_SIGN_IN_ISSUER": [
        ("http://id.example", "must begin with https://"),
        ("https://id.example", "COMPANY_SIGN_IN_CLIENT_ID must be set"),
    ],
    "COMPANY_SIGN_IN_ROLES": [("desk=Superuser", "Roles are"), ("desk=operator", "Roles are")],
    "COMPANY_SIGN_IN_SECOND_FACTORS": [("mfa", "must be like amr=mfa")],
    "COMPANY_SIGN_IN_LINKS_BY_EMAIL": [("ja", "must be 1 or 0")],
    "COMPANY_SIGN_IN_ONLY": [("1", "COMPANY_SIGN_IN_ISSUER is not")],
    **{
        name: [(value, "must be a whole number from 1 to") for value in NUMBERS]
        for name in (
            *("GRANIAN_WORKERS", "API_DEFAULT_RATE_LIMIT_PER_MINUTE", "DESK_WAITING_MINUTES"),
            *("LOGIN_FAILURE_LIMIT_PER_ADDRESS", "STAFF_SESSION_HOURS", "DESK_CLAIM_MINUTES"),
            *("STAFF_SESSION_IDLE_MINUTES", "MERCHANT_SESSION_HOURS", "RETENTION_REQUEST_DAYS"),
            *("MERCHANT_SESSION_IDLE_MINUTES", "RETENTION_CASE_FILE_DAYS", "RETENTION_RUN_DAYS"),
            *("RETENTION_DELIVERY_FILE_DAYS", "RETENTION_INVITATION_DAYS"),
            "RETENTION_SESSION_DAYS",
        )
    },
}
# Any text is valid, or only the company's provider knows which text is.
ANY_TEXT = {
    *("SUPPORT_CONTACT", "COMPANY_SIGN_IN_COMPANY", "COMPANY_SIGN_IN_CLIENT_ID"),
    *("COMPANY_SIGN_IN_CLIENT_SECRET", "COMPANY_SIGN_IN_SCOPES", "COMPANY_SIGN_IN_NAME_CLAIM"),
    *("COMPANY_SIGN_IN_ROLES_CLAIM", "COMPANY_SIGN_IN_BREAK_GLASS"),
    "STATIC_ROOT",  # only the web server refuses it (test_a_web_server_without_its_static_files)
}
# Several variables, or one that is misspelt.
TOGETHER: dict[str, tuple[dict[str, str | None], str]] = {
    **{
        f"{begin} in the password of {name}": (
            {name: f"{scheme}://voucher:{begin}cret@127.0.0.1:1/0"},
            f"voucher.E009: {name} is no valid address",
        )
        for name, scheme in PASSWORDS.items()
        for begin in ("s@", "s/", "s#", "s?", "s[", "12/")
    },
    "no shared cache": (
        {"REDIS_URL": None, "CELERY_BROKER_URL": "redis://127.0.0.1:1/1"},
        "voucher.E004",
    ),
    "no broker": ({"REDIS_URL": None, "GRANIAN_WORKERS": "1"}, "voucher.E005"),
    "secret in a variable and in a file": (
        {"DJANGO_SECRET_KEY_FILE": "key"},
        "DJANGO_SECRET_KEY are both set",
    ),
    "secret in a file that is missing": (
        {"DJANGO_SECRET_KEY": None, "DJANGO_SECRET_KEY_FILE": "missing"},
        "names a file that cannot be read",
    ),
    "a variable in lower case": ({"database_url": DATABASE}, "Did you mean DATABASE_URL?"),
    "a variable with another case": ({"Desk_Late_Minutes": "5"}, "mean DESK_LATE_MINUTES?"),
    "a letter too many": ({"DJANGO_ALLOWED_HOSTSS": "a"}, "mean DJANGO_ALLOWED_HOSTS?"),
    "letters in another order": ({"PUBLIC_ULR": "https://a.b"}, "mean PUBLIC_URL?"),
    "a file of a misspelt variable": ({"EMAIL_ULR_FILE": "file"}, "mean EMAIL_URL?"),
    "a setting that no variable sets": ({"DJANGO_DEBUG": "1"}, "DJANGO_DEBUG is no setting"),
}
UNSAFE: dict[str, tuple[dict[str, str | None], str]] = TOGETHER | {
    f"{name}={value}": ({name: value}, words)
    for name, rows in WRONG.items()
    for value, words in rows
}
MANAGE = str(PROJECT / "manage.py")
CELERY = ["-m", "celery", "--quiet", "-A", "config"]
STARTS = {
    "manage.py": [MANAGE, "check", "--tag=startup"],
    "web": ["-c", "import config.wsgi"],
    "worker": [*CELERY, "worker", "--concurrency=1"],
    "beat": [*CELERY, "beat", "--pidfile=", "--schedule=schedule"],
}


def environment_of(others: dict[str, str | None]) -> dict[str, str]:
    """SAFE with these changes."""
    wanted = {name: value for name, value in {**SAFE, **others}.items() if value is not None}
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT), **wanted}


def start(name: str, folder: Path, others: dict[str, str | None]) -> CompletedProcess[str]:
    """Starts a part of the service in an empty folder, where it finds no `var/`."""
    return run_quickly(STARTS[name], environment=environment_of(others), folder=folder)


def assert_refused_in_one_line(started: CompletedProcess[str], id: str) -> None:
    lines = [line for line in started.stderr.splitlines() if id in line]
    assert started.returncode == 1, started.stderr
    assert len(lines) == 1, started.stderr
    assert "Traceback" not in started.stderr
    for secret in (KEY, "secret@", "cret@", "s" * 10):
        assert secret not in started.stderr + started.stdout


def test_every_variable_has_wrong_values() -> None:
    """Fails for a new variable without a row."""
    assert set(SAFE) <= env.KNOWN, "the settings were not read"
    assert set(WRONG) | ANY_TEXT == env.KNOWN


@pytest.mark.parametrize("unsafe", UNSAFE)
def test_an_unsafe_setting_stops_the_start(unsafe: str, tmp_path: Path) -> None:
    others, id = UNSAFE[unsafe]
    programs = [STARTS["manage.py"], STARTS["web"]]
    for started in run_each(programs, environment=environment_of(others), folder=tmp_path):
        assert_refused_in_one_line(started, id)


@pytest.mark.parametrize(
    "unsafe",
    [
        "DJANGO_SECRET_KEY=None",
        "CODE_ENCRYPTION_KEYS=None",
        "DJANGO_HTTPS=ture",
        "CELERY_BROKER_URL=ampq://127.0.0.1:1//",
        "a letter too many",
    ],
)
def test_celery_refuses_unsafe_settings(unsafe: str, tmp_path: Path) -> None:
    others, id = UNSAFE[unsafe]
    programs = [STARTS["worker"], STARTS["beat"]]
    for started in run_each(programs, environment=environment_of(others), folder=tmp_path):
        assert_refused_in_one_line(started, id)


@pytest.mark.parametrize("name", ["manage.py", "web"])
def test_safe_settings_start(name: str, tmp_path: Path) -> None:
    encoded = {name: f"{url}://a:s%2F%40@127.0.0.1:1/0" for name, url in PASSWORDS.items()}
    started = start(name, tmp_path, {**encoded})
    assert (started.returncode, "voucher." in started.stderr) == (0, False), started.stderr


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("EMAIL_URL", "voucher.W001"),
        ("PUBLIC_URL", "voucher.W002"),
        ("SUPPORT_CONTACT", "voucher.W006"),
    ],
)
def test_what_merchants_miss_causes_a_warning(name: str, id: str, tmp_path: Path) -> None:
    started = start("manage.py", tmp_path, {name: None})
    assert (started.returncode, id in started.stderr) == (0, True), started.stderr


def test_safe_settings_pass_the_deployment_checks(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], **SAFE}
    command = [MANAGE, "check", "--deploy", "--fail-level=WARNING"]
    run_quickly(command, environment=environment, folder=tmp_path, check=True)


def deployment_warnings(folder: Path, others: dict[str, str | None]) -> list[str]:
    """The ids of the warnings of `check --deploy` about connections, in this environment."""
    variables = {name: value for name, value in {**SAFE, **others}.items() if value is not None}
    environment = {"PATH": os.environ["PATH"], **variables}
    command = [MANAGE, "check", "--deploy", "--tag=startup"]
    checked = run_quickly(command, environment=environment, folder=folder, check=True)
    assert "secret" not in checked.stderr
    return re.findall(r"voucher\.W00[345]", checked.stderr)


DATABASE, CACHE, BROKER = "voucher.W003", "voucher.W004", "voucher.W005"


@pytest.mark.parametrize(
    ("others", "ids"),
    [
        ({"DATABASE_URL": "postgresql://voucher:secret@db.example/voucher"}, [DATABASE]),
        (
            {"DATABASE_URL": "postgresql://voucher:secret@db.example/v?sslmode=prefer"},
            [DATABASE],
        ),
        ({"DATABASE_URL": "postgresql://voucher@db.example/v?sslmode=verify-full"}, [DATABASE]),
        ({"DATABASE_URL": "postgresql://voucher@10.0.0.7/voucher"}, [DATABASE] * 2),
        ({"MIGRATION_DATABASE_URL": "postgresql://owner:secret@db.example/voucher"}, [DATABASE]),
        ({"REDIS_URL": "redis://:secret@cache.example/0"}, [CACHE]),
        ({"REDIS_URL": "rediss://cache.example/0"}, [CACHE]),
        ({"CELERY_BROKER_URL": "amqp://voucher:secret@broker.example//"}, [BROKER]),
        ({"CELERY_BROKER_URL": "amqps://broker.example//"}, [BROKER]),
        (
            {
                "DATABASE_URL": "postgresql://voucher:secret@db.example/v?sslmode=verify-full",
                "REDIS_URL": "rediss://:secret@cache.example/0",
                "CELERY_BROKER_URL": "amqps://voucher:secret@broker.example//",
            },
            [],
        ),
        (
            {
                "DATABASE_URL": "postgresql:///voucher",
                "REDIS_URL": "unix:///run/valkey",
                "CELERY_BROKER_URL": "redis://127.0.0.1/1",
            },
            [],
        ),
    ],
)
def test_an_open_connection_to_another_host_causes_a_warning(
    others: dict[str, str | None], ids: list[str], tmp_path: Path
) -> None:
    assert deployment_warnings(tmp_path, others) == ids


def test_a_web_server_without_its_static_files_does_not_start(tmp_path: Path) -> None:
    assert_refused_in_one_line(start("web", tmp_path, {"STATIC_ROOT": "static"}), "voucher.E012")


def test_atomic_requests_stops_the_start() -> None:
    """No environment variable sets ATOMIC_REQUESTS; only an edit of the settings does."""
    script = (
        "import django; django.setup();"
        "from django.conf import settings; settings.DATABASES['default']['ATOMIC_REQUESTS'] = True;"
        "from core.checks import refuse_unsafe_start; refuse_unsafe_start()"
    )
    environment = {
        "PATH": os.environ["PATH"],
        "DJANGO_SETTINGS_MODULE": "config.settings",
        **SAFE,
    }
    started = run_quickly(["-c", script], environment=environment)
    assert_refused_in_one_line(started, "voucher.E007")
