"""The environment of the embedded servers: secrets generated once, addresses of the current run.

`make run` stores it in `var/embedded.env`. config/settings.py reads this file when DATABASE_URL is
not set, so `manage.py` in another shell connects to the same servers.
"""

import base64
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from embedded.errors import EmbeddedError
from embedded.processes import free_port, listen_error

PROJECT = Path(__file__).resolve().parents[1]
VAR = PROJECT / "var"
FILE_NAME = "embedded.env"
DATABASE = "voucher"
OWNER = "postgres"
SERVICE = "voucher_service"  # the role of the service's processes; its rights come from `migrate`
FOR_MIGRATE_ONLY = "MIGRATION_DATABASE_URL"
# For commands with temporary servers, such as tests. Their DATABASE_URL is the owner's: they
# create databases and damage data. The processes of the service that they start use this one.
FOR_TESTED_SERVICE = "SERVICE_DATABASE_URL"
KEPT_WITH_THE_DATA = ("DATABASE_URL", "REDIS_URL", "DJANGO_SECRET_KEY", "CODE_ENCRYPTION_KEYS")


@dataclass(frozen=True)
class Addresses:
    """The ports of the two servers on 127.0.0.1, and their passwords. PostgreSQL has two: that of
    the owner and that of the service."""

    postgres_port: int
    postgres_password: str
    service_password: str
    valkey_port: int
    valkey_password: str

    @classmethod
    def fresh(cls) -> Self:
        return cls(free_port(), _new_password(), _new_password(), free_port(), _new_password())

    @classmethod
    def from_urls(cls, values: Mapping[str, str]) -> Self:
        service, valkey = urlsplit(values["DATABASE_URL"]), urlsplit(values["REDIS_URL"])
        owner = urlsplit(values.get(FOR_MIGRATE_ONLY, values["DATABASE_URL"]))
        # Before there were two roles, the owner ran the service.
        known = service.password if service.username == SERVICE else None
        return cls(
            owner.port or 0,
            owner.password or "",
            known or _new_password(),
            valkey.port or 0,
            valkey.password or "",
        )

    def moved_if_taken(self) -> Self:
        """The same passwords and ports, but another port for each port that is in use."""
        return replace(
            self,
            postgres_port=_same_or_free(self.postgres_port),
            valkey_port=_same_or_free(self.valkey_port),
        )

    def urls(self) -> dict[str, str]:
        postgres = f"127.0.0.1:{self.postgres_port}/{DATABASE}"
        valkey = f":{self.valkey_password}@127.0.0.1:{self.valkey_port}"
        return {
            "DATABASE_URL": f"postgresql://{SERVICE}:{self.service_password}@{postgres}",
            FOR_MIGRATE_ONLY: f"postgresql://{OWNER}:{self.postgres_password}@{postgres}",
            "REDIS_URL": f"redis://{valkey}/0",
            "CELERY_BROKER_URL": f"redis://{valkey}/1",
        }


def new_secrets() -> dict[str, str]:
    """New secrets, and the settings that the application needs besides its servers."""
    key = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    return {
        "DJANGO_SECRET_KEY": secrets.token_urlsafe(48),
        "CODE_ENCRYPTION_KEYS": f"1:{key}",
        "DJANGO_ALLOWED_HOSTS": "localhost,127.0.0.1,[::1]",
        "DJANGO_HTTPS": "0",
    }


def read_env_file(path: Path) -> dict[str, str]:
    """The variables of an environment file; empty when the file does not exist."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return {}
    pairs = (line.partition("=") for line in lines if "=" in line and not line.startswith("#"))
    return {name: value for name, _, value in pairs}


def write_env_file(path: Path, values: Mapping[str, str]) -> None:
    """Writes an environment file atomically. Only the owner can read it, at every moment."""
    lines = [
        "# Written by `make run`. These keys decrypt the codes in the database: keep both together."
    ]
    lines += [f"{name}={value}" for name, value in values.items()]
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    private = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(private, "w") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def stored_values(var: Path) -> dict[str, str]:
    """The variables that an earlier run stored in `var`; empty before the first run.

    Raises EmbeddedError when there is data whose passwords or keys are missing, because new keys
    could not decrypt it.
    """
    values = read_env_file(var / FILE_NAME)
    lost = [name for name in KEPT_WITH_THE_DATA if name not in values]
    if not lost:
        return values
    if (var / "postgres").exists():
        raise EmbeddedError(
            f"{var / FILE_NAME} has no {', '.join(lost)}, but the data in {var / 'postgres'} needs"
            f" it. Restore the file, or remove {var} to start with empty data."
        )
    return {}


def _new_password() -> str:
    """A password that needs no quoting in a URL."""
    return secrets.token_urlsafe(24)


def _same_or_free(port: int) -> int:
    return free_port() if listen_error("127.0.0.1", port) else port
