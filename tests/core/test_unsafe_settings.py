"""Unsafe settings stop the start with one line that contains the id of the check."""

import base64
import os
import re
from pathlib import Path
from subprocess import CompletedProcess

import pytest

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
# Unsafe setting: (variables changed from SAFE, None for unset; id of the check that refuses it).
UNSAFE: dict[str, tuple[dict[str, str | None], str]] = {
    "empty database URL": ({"DATABASE_URL": ""}, "voucher.E001"),
    "database without a name": ({"DATABASE_URL": "postgresql://127.0.0.1"}, "voucher.E001"),
    "no secret key": ({"DJANGO_SECRET_KEY": None}, "voucher.E002"),
    "empty secret key": ({"DJANGO_SECRET_KEY": ""}, "voucher.E002"),
    "short secret key": ({"DJANGO_SECRET_KEY": "s" * 49}, "voucher.E002"),
    "short fallback key": (
        {"DJANGO_SECRET_KEY_FALLBACKS": f"{'f' * 50},{'s' * 49}"},
        "voucher.E002",
    ),
    "no encryption key": ({"CODE_ENCRYPTION_KEYS": None}, "voucher.E003"),
    "encryption key without an id": ({"CODE_ENCRYPTION_KEYS": KEY}, "voucher.E003"),
    "encryption key id 0": ({"CODE_ENCRYPTION_KEYS": f"0:{KEY}"}, "voucher.E003"),
    "encryption key id twice": ({"CODE_ENCRYPTION_KEYS": f"1:{KEY},1:{KEY}"}, "voucher.E003"),
    "short encryption key": ({"CODE_ENCRYPTION_KEYS": "1:c2hvcnQ="}, "voucher.E003"),
    "garbled encryption key": ({"CODE_ENCRYPTION_KEYS": "1:%%%"}, "voucher.E003"),
    "no shared cache": (
        {"REDIS_URL": None, "CELERY_BROKER_URL": "redis://127.0.0.1:1/1"},
        "voucher.E004",
    ),
    "no broker": ({"REDIS_URL": None, "GRANIAN_WORKERS": "1"}, "voucher.E005"),
    "proxies with a typo": ({"TRUSTED_PROXIES": "10.0.0.0/99"}, "voucher.E006"),
    "every IPv4 proxy": ({"TRUSTED_PROXIES": "0.0.0.0/0"}, "voucher.E006"),
    "every IPv6 proxy": ({"TRUSTED_PROXIES": "::/0"}, "voucher.E006"),
    "no hosts": ({"DJANGO_ALLOWED_HOSTS": None}, "voucher.E008"),
    "a host with a scheme": ({"DJANGO_ALLOWED_HOSTS": "https://api.example"}, "voucher.E008"),
    "MySQL database": ({"DATABASE_URL": "mysql://127.0.0.1/voucher"}, "voucher.E009"),
    **{
        f"{begin} in the password of {name}": (
            {name: f"{scheme}://voucher:{begin}cret@127.0.0.1:1/0"},
            f"voucher.E009: {name} is no valid address",
        )
        for name, scheme in PASSWORDS.items()
        for begin in ("s@", "s/", "s#", "s?", "s[", "12/")
    },
    "a port that is no number": (
        {"DATABASE_URL": "postgresql://voucher:secret@127.0.0.1:port/voucher"},
        "voucher.E009: DATABASE_URL is no valid address",
    ),
    "HTTPS with a typo": ({"DJANGO_HTTPS": "ture"}, "voucher.E009"),
    "minutes that are not a number": ({"DESK_LATE_MINUTES": "5m"}, "voucher.E009"),
    "a port beyond the last": (
        {"METRICS_PORT": "99999"},
        "METRICS_PORT must be a port, from 1 to 65535.",
    ),
    "zero days": ({"RETENTION_RUN_DAYS": "0"}, "voucher.E009"),
    "zero requests": ({"API_DEFAULT_RATE_LIMIT_PER_MINUTE": "0"}, "voucher.E009"),
    "negative minutes": ({"DESK_WAITING_MINUTES": "-1"}, "voucher.E009"),
    "cache URL that is not Redis": ({"REDIS_URL": "http://127.0.0.1"}, "voucher.E009"),
    "malformed bot token": ({"TELEGRAM_BOT_TOKEN": "secret"}, "voucher.E010"),
    "Telegram URL without a scheme": ({"TELEGRAM_API_URL": "api.telegram.org"}, "voucher.E010"),
    "public URL without a scheme": ({"PUBLIC_URL": "shop.example"}, "voucher.E011"),
    "unencrypted public URL": ({"PUBLIC_URL": "http://shop.example"}, "voucher.E011"),
    "secret in a variable and in a file": ({"DJANGO_SECRET_KEY_FILE": "key"}, "voucher.E009"),
    "secret in a file that is missing": (
        {"DJANGO_SECRET_KEY": None, "DJANGO_SECRET_KEY_FILE": "missing"},
        "voucher.E009",
    ),
    "company sign-in without HTTPS": (
        {"COMPANY_SIGN_IN_ISSUER": "http://id.example"},
        "COMPANY_SIGN_IN_ISSUER must begin with https://",
    ),
    "company sign-in without a client": (
        {"COMPANY_SIGN_IN_ISSUER": "https://id.example"},
        "voucher.E009",
    ),
    "company sign-in with an unknown role": (
        {"COMPANY_SIGN_IN_ROLES": "desk=Superuser"},
        "COMPANY_SIGN_IN_ROLES must be",
    ),
    "player ids deleted too early": ({"RETENTION_PLAYER_ID_DAYS": "29"}, "voucher.E009"),
    "unknown log level": ({"LOG_LEVEL": "LOUD"}, "voucher.E009"),
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


@pytest.mark.parametrize("unsafe", UNSAFE)
def test_an_unsafe_setting_stops_the_start(unsafe: str, tmp_path: Path) -> None:
    others, id = UNSAFE[unsafe]
    programs = [STARTS["manage.py"], STARTS["web"]]
    for started in run_each(programs, environment=environment_of(others), folder=tmp_path):
        assert_refused_in_one_line(started, id)


@pytest.mark.parametrize("name", ["worker", "beat"])
@pytest.mark.parametrize("unsafe", ["no secret key", "no encryption key", "HTTPS with a typo"])
def test_celery_refuses_unsafe_settings(unsafe: str, name: str, tmp_path: Path) -> None:
    others, id = UNSAFE[unsafe]
    assert_refused_in_one_line(start(name, tmp_path, others), id)


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
        ({"MIGRATION_DATABASE_URL": "postgresql://owner:secret@db.example/v"}, [DATABASE]),
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
        ({"DATABASE_URL": "postgresql:///voucher", "REDIS_URL": "unix:///run/valkey"}, []),
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
