"""Settings from the environment. One that cannot be read ends the start with one clear line.

Guessing would be worse: `DJANGO_HTTPS=ture` must not quietly switch HTTPS off.
"""

import logging
from typing import Any, NoReturn

import environ

WORDS = {"1": True, "true": True, "yes": True, "on": True} | dict.fromkeys(
    ("0", "false", "no", "off"), False
)


class StrictEnv(environ.Env):  # type: ignore[misc]  # untyped
    """Reads what is set exactly as it is meant, or refuses it; what is not set is the default."""

    def int(self, var: str, default: Any = environ.Env.NOTSET) -> Any:
        """A whole number of at least 1."""
        text = self.ENVIRON.get(var)
        if text is None:
            return default
        if not (text.isascii() and text.isdecimal() and int(text) >= 1):
            refuse(var, "must be a whole number of at least 1.")
        return int(text)

    def bool(self, var: str, default: Any = environ.Env.NOTSET) -> Any:
        """`1`, `true`, `yes` or `on`, or the opposite of these."""
        text = self.ENVIRON.get(var)
        if text is None:
            return default
        if text.lower() not in WORDS:
            refuse(var, "must be 1 or 0.")
        return WORDS[text.lower()]

    def log_level(self, var: str, default: str) -> str:
        """The name of a level of the standard library's logging."""
        text: str = self.ENVIRON.get(var) or default
        if text.upper() not in logging.getLevelNamesMapping():
            refuse(var, "must be DEBUG, INFO, WARNING, ERROR or CRITICAL.")
        return text.upper()

    def postgres(self, var: str) -> dict[str, Any]:
        """The database behind a PostgreSQL URL; without a NAME where that is missing."""
        url: str = self.ENVIRON.get(var) or "postgresql://"
        if not url.startswith(("postgresql://", "postgres://")):
            refuse(var, "must begin with postgresql://.")
        parts: dict[str, Any] = self.db_url_config(url)
        return parts

    def redis(self, var: str) -> str:
        """A Redis or Valkey URL, or nothing."""
        url: str = self.ENVIRON.get(var) or ""
        if url and not url.startswith(("redis://", "rediss://", "unix://")):
            refuse(var, "must begin with redis://, rediss:// or unix://.")
        return url


def refuse(var: str, rule: str) -> NoReturn:
    """Ends the process; the value itself is not shown, since it may be a secret."""
    raise SystemExit(f"voucher.E009: {var} {rule}")
