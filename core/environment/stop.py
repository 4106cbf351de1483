"""Ends a process that must not start."""

from typing import NoReturn


def stop_start(variable: str, rule: str) -> NoReturn:
    """Ends the process with one line. The value is not shown: it may be a secret."""
    raise SystemExit(f"voucher.E009: {variable} {rule}")
