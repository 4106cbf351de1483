"""Reads settings from environment variables; an invalid value stops the start with one line.

An invalid value is never guessed: `DJANGO_HTTPS=ture` must not switch HTTPS off silently. Any
variable may come from a file: `DATABASE_URL_FILE=/run/secrets/database_url` gives `DATABASE_URL`.
"""

import logging
import os
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import environ
from environ.fileaware_mapping import FileAwareMapping

LAST_PORT = 65_535
WORDS = {"1": True, "true": True, "yes": True, "on": True} | dict.fromkeys(
    ("0", "false", "no", "off"), False
)


class VariablesAndFiles(FileAwareMapping):  # type: ignore[misc]  # untyped
    """The environment, in which NAME_FILE names a file that holds the value of NAME.

    Secrets then need not be in the environment, which child processes inherit and tools print.
    """

    def __getitem__(self, name: str) -> str:
        """The value. A file's last line break does not count. Raises KeyError when it is unset.

        Ends the process when both variables are set or the file cannot be read.
        """
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

    def int(self, var: str, default: Any = environ.Env.NOTSET) -> Any:
        """A whole number of at least 1."""
        text = self.ENVIRON.get(var)
        if text is None:
            return default
        if not (text.isascii() and text.isdecimal() and int(text) >= 1):
            stop_start(var, "must be a whole number of at least 1.")
        return int(text)

    def port(self, var: str, default: Any = environ.Env.NOTSET) -> Any:
        """A port of TCP."""
        number = self.int(var, default)
        if number > LAST_PORT:
            stop_start(var, f"must be a port, from 1 to {LAST_PORT}.")
        return number

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
        if text.upper() not in logging.getLevelNamesMapping():
            stop_start(var, "must be DEBUG, INFO, WARNING, ERROR or CRITICAL.")
        return text.upper()

    def postgres(self, var: str) -> dict[str, Any]:
        """Django's database settings for a PostgreSQL URL. NAME may be empty."""
        url: str = self.ENVIRON.get(var) or "postgresql://"
        if not url.startswith(("postgresql://", "postgres://")):
            stop_start(var, "must begin with postgresql://.")
        _check_address(var, url)
        parts: dict[str, Any] = self.db_url_config(url)
        return parts

    def redis(self, var: str) -> str:
        """A Redis or Valkey URL, or "" when the variable is unset or empty."""
        url: str = self.ENVIRON.get(var) or ""
        if url and not url.startswith(("redis://", "rediss://", "unix://")):
            stop_start(var, "must begin with redis://, rediss:// or unix://.")
        _check_address(var, url)
        return url

    def email(self, var: str) -> dict[str, Any]:
        """Django's email settings for a URL; empty when the variable is unset or empty."""
        url: str = self.ENVIRON.get(var) or ""
        _check_address(var, url)
        parts: dict[str, Any] = self.email_url_config(url) if url else {}
        return parts


def _check_address(var: str, url: str) -> None:
    """Ends the process if the address cannot be read, for example because of a `/` or `@` in a
    password. What reads it would report a piece of the password as a port or a host."""
    try:
        parts = urlsplit(url)
        is_valid = (parts.port or 1) and "@" not in parts.path + parts.query + parts.fragment
        is_valid = is_valid and parts.netloc.count("@") <= 1  # libpq ends a password at the first
    except ValueError:
        is_valid = False
    if not is_valid:
        stop_start(
            var,
            "is no valid address. In a user name or password, write @ as %40, / as %2F, ? as %3F,"
            " # as %23, [ as %5B and % as %25.",
        )


def stop_start(var: str, rule: str) -> NoReturn:
    """Ends the process with one line. The value is not shown: it may be a secret."""
    raise SystemExit(f"voucher.E009: {var} {rule}")
