"""Describes the machine and the software of a benchmark."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from embedded.binaries import postgres_binary

PACKAGES = ("django", "djangorestframework", "granian", "psycopg", "fastapi", "asyncpg")


def describe_machine() -> dict[str, str]:
    """The rows of the report's table of the machine: names and values."""
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GB",
        "system": f"{platform.system()} {platform.release()}",
        "database": _first_line(str(postgres_binary("postgres")), "--version"),
        "load generator": _first_line("wrk", "--version").split(" Copyright")[0],
        "Python": platform.python_version(),
        "packages": ", ".join(filter(None, map(_installed, PACKAGES))),
        "load average before": " ".join(f"{load:.1f}" for load in os.getloadavg()),
    }


def _installed(package: str) -> str | None:
    """The package with its version; None when it is not installed."""
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return None


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _first_line(*command: str) -> str:
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    return (shown.stdout + shown.stderr).strip().splitlines()[0]
