"""Reads settings from environment variables; an invalid value stops the start with one line.

An invalid value is never guessed: `DJANGO_HTTPS=ture` must not switch HTTPS off silently. Any
variable may come from a file: `DATABASE_URL_FILE=/run/secrets/database_url` gives `DATABASE_URL`.
"""

import os
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import environ
from environ.fileaware_mapping import FileAwareMapping

from core.environment import addresses
from core.environment.stop import stop_start

LAST_PORT = 65_535
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
WORDS = {"1": True, "true": True, "yes": True, "on": True} | dict.fromkeys(
    ("0", "false", "no", "off"), False
)


KNOWN: set[str] = set()  # the variables that were read, set or not


class VariablesAndFiles(FileAwareMapping):  # type: ignore[misc]  # untyped
    """The environment, in which NAME_FILE names a file that holds the value of NAME.

    Secrets then need not be in the environment, which child processes inherit and tools print.
    """

    def __getitem__(self, name: str) -> str:
        """The value. A file's last line break does not count. Raises KeyError when it is unset.

        Ends the process when both variables are set or the file cannot be read.
        """
        KNOWN.add(name)
        path = os.environ.get(f"{name}_FILE")
        if path is None:
            return os.environ[name]
        if name in os.environ:
            stop_start(f"{name}_FILE", f"and {name} are both set: remove one of them.")
        try:
            return Path(path).read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
        except (OSError, ValueError) as error:
            stop_start(
                f"{name}_FILE", f"names a file that cannot be read ({type(error).__name__})."
            )


class StrictEnv(environ.Env):  # type: ignore[misc]  # untyped
    """Reads typed variables: an unset one has its default, an invalid one ends the process."""

    ENVIRON = VariablesAndFiles()

    def number(self, var: str, default: int, *, least: int = 1, most: int) -> int:
        """A whole number from `least` to `most`."""
        text = self.ENVIRON.get(var)
        if text is None:
            return default
        digits = text.lstrip("0")[:20] if text.isascii() and text.isdecimal() else ""
        if not least <= int(digits or 0) <= most:
            stop_start(var, f"must be a whole number from {least} to {most}.")
        return int(digits)

    def host(self, var: str, default: str) -> str:
        """An IP address at which a process listens."""
        text: str = self.ENVIRON.get(var) or default
        try:
            ip_address(text)
        except ValueError:
            stop_start(var, "must be an IP address of this machine, such as 127.0.0.1.")
        return text

    def folder(self, var: str, default: str, *, base: Path) -> Any:
        """A folder, which may be made later; a relative one is in `base`. None if there is none."""
        text: str = self.ENVIRON.get(var) or default
        path = base / text
        existing = next(each for each in (path, *path.parents) if os.path.exists(each))  # noqa: PTH110
        if not existing.is_dir():
            stop_start(var, "cannot be a folder: a part of its path is a file.")
        return path if text else None

    def port(self, var: str, default: int) -> int:
        """A port of TCP."""
        return self.number(var, default, most=LAST_PORT)

    def bool(self, var: str, default: Any = environ.Env.NOTSET) -> Any:
        """True for `1`, `true`, `yes`, `on`; False for `0`, `false`, `no`, `off`; in any case."""
        text = self.ENVIRON.get(var)
        if text is None:
            return default
        if text.lower() not in WORDS:
            stop_start(var, "must be 1 or 0.")
        return WORDS[text.lower()]

    def log_level(self, var: str, default: str) -> str:
        """The name of a standard logging level, in upper case."""
        text: str = self.ENVIRON.get(var) or default
        if text.upper() not in LOG_LEVELS:
            stop_start(var, "must be DEBUG, INFO, WARNING, ERROR or CRITICAL.")
        return text.upper()

    def postgres(self, var: str) -> dict[str, Any]:
        """Django's database settings for a PostgreSQL URL. NAME may be empty."""
        url: str = self.ENVIRON.get(var) or "postgresql://"
        addresses.check_postgres(var, url)
        parts: dict[str, Any] = self.db_url_config(url)
        return parts

    def redis(self, var: str) -> str:
        """A Redis or Valkey URL, or "" when the variable is unset or empty."""
        return self._address(var, "", addresses.check_redis)

    def broker(self, var: str, cache: str) -> str:
        """The URL of Celery's broker; by default that of the cache."""
        url = self.ENVIRON.get(var) or cache
        if url == cache and cache.startswith("unix://"):
            stop_start(var, "must be set: Celery does not reach REDIS_URL through a socket.")
        return self._address(var, cache, addresses.check_broker)

    def web(self, var: str, default: str) -> str:
        """The URL of a web server, or "" when both the variable and the default are empty."""
        return self._address(var, default, addresses.check_web)

    def email(self, var: str) -> dict[str, Any]:
        """Django's email settings for a URL; empty when the variable is unset or empty."""
        url = self._address(var, "", addresses.check_mail)
        parts: dict[str, Any] = self.email_url_config(url) if url else {}
        return parts

    def _address(self, var: str, default: str, check: Callable[[str, str], None]) -> str:
        url: str = self.ENVIRON.get(var) or default
        if url:
            check(var, url)
        return url
