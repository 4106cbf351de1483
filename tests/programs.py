"""Leaves out the tests whose marker names a program that this machine lacks. CI has them all.

One line at the end of a run says what was left out, and which packages of Debian are missing.
"""

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.old_version import has_history

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser")
CONTAINERS = ("buildah", "podman", "runc", "mmdebstrap")
# What generated clients need in Go, PHP and Java.
LIBRARIES_OF_CLIENTS = (
    "/usr/share/gocode/src/gopkg.in/validator.v2",
    "/usr/share/php/GuzzleHttp/autoload.php",
    "/usr/share/java/jakarta-annotation-api.jar",
)
POSTGRES_15 = Path("/usr/lib/postgresql/15/bin")
RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")  # Debian's own wrapper changes the user
UNSHARE = ("unshare", "--net", "--pid", "--mount", "--mount-proc", "--fork")


def find_program(name: str) -> str | None:
    """The path of the program. Debian keeps some where only root looks."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin")


def find_browser() -> str | None:
    """The path of Chromium; None if it is not installed."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)


def has_programs(*names: str) -> bool:
    return all(map(find_program, names))


def has_libraries_of_clients() -> bool:
    return has_programs("npm", "javac", "go", "php") and all(
        map(os.path.exists, LIBRARIES_OF_CLIENTS)
    )


def has_patroni() -> bool:
    """Whether Patroni and its parts are installed, and can have hosts of their own."""
    installed = has_programs("patroni", "etcd", "haproxy") and (POSTGRES_15 / "postgres").exists()
    return installed and can_make_networks()


def can_make_networks() -> bool:
    """Whether this process may create the namespaces of labs/installation/network.py."""
    if os.geteuid() != 0 or not has_programs("unshare", "nsenter", "setpriv", "ip"):
        return False
    attempt = [*UNSHARE, "ip", "link", "add", "lan", "type", "bridge"]
    return subprocess.run(attempt, capture_output=True, check=False).returncode == 0


def has_rabbitmq() -> bool:
    return RABBITMQ.exists() and has_programs("epmd")


@dataclass(frozen=True)
class Need:
    """What tests with a marker need beside Python, and what a user installs for it."""

    text: str
    packages: str
    found: Callable[[], object]


def program(text: str, packages: str, *names: str) -> Need:
    return Need(text, packages, lambda: has_programs(*names))


NEEDS = {
    "blackbox_exporter": program(
        "the blackbox exporter of Prometheus",
        *("prometheus-blackbox-exporter", "prometheus-blackbox-exporter"),
    ),
    "browser": Need("a browser (Chromium)", "chromium-headless-shell", find_browser),
    "compiler": program("a C compiler", "gcc libc6-dev", "cc"),
    "containers": program("what builds and runs containers", " ".join(CONTAINERS), *CONTAINERS),
    "generators": Need(
        "what generated clients need",
        "npm golang-go golang-gopkg-validator.v2-dev php-cli php-guzzlehttp-guzzle php-curl "
        "php-mbstring default-jdk-headless libjakarta-annotation-api-java",
        has_libraries_of_clients,
    ),
    "go": program("Go 1.19 or newer", "golang-go", "go"),
    "history": Need("the commit of tests/upgrade_from.txt", "git and a clone", has_history),
    "java": program("a JDK 17 or newer", "default-jdk-headless", "javac"),
    "libreoffice": program("LibreOffice Calc", "libreoffice-calc-nogui", "soffice"),
    "nginx": program("nginx, HAProxy and curl", "nginx haproxy curl", "nginx", "haproxy", "curl"),
    "node": program("Node.js 18 or newer", "nodejs", "node"),
    "npm": program("Node.js 18 or newer, and npm", "nodejs npm", "node", "npm"),
    "patroni": Need(
        "Patroni, and network namespaces of root",
        "patroni etcd-server haproxy postgresql-15 iproute2",
        has_patroni,
    ),
    "pgbouncer": program("PgBouncer", "pgbouncer", "pgbouncer"),
    "php": program("PHP 8.1 or newer", "php-cli", "php"),
    "prometheus": program(
        "Prometheus and Alertmanager",
        "prometheus prometheus-alertmanager",
        *("prometheus", "promtool", "amtool"),
    ),
    "rabbitmq": Need("RabbitMQ", "rabbitmq-server", has_rabbitmq),
    "systemd": program("systemd-analyze", "systemd", "systemd-analyze"),
    "wrk": program("wrk, the load generator", "wrk", "wrk"),
}
LEFT_OUT = pytest.StashKey[dict[str, int]]()


def pytest_configure(config: pytest.Config) -> None:
    for marker, need in NEEDS.items():
        config.addinivalue_line("markers", f"{marker}: needs {need.text}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("CI"):
        return
    lacks = {item: _missing(item) for item in items}
    without = [item for item in items if lacks[item]]
    items[:] = [item for item in items if not lacks[item]]
    config.hook.pytest_deselected(items=without)
    counts = Counter(name for item in without for name in lacks[item])
    config.stash[LEFT_OUT] = dict(counts)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if os.environ.get("CI") and (missing := _missing(item)):
        pytest.fail(f"CI lacks {NEEDS[missing[0]].text}", pytrace=False)


def _missing(item: pytest.Item) -> list[str]:
    return [mark.name for mark in item.iter_markers() if mark.name in NEEDS and _lacks(mark.name)]


@cache
def _lacks(marker: str) -> bool:
    return not NEEDS[marker].found()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """In a process of xdist: hands the numbers to the process that reports."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left_out"] = session.config.stash.get(LEFT_OUT, None)


def pytest_testnodedown(node: Any) -> None:
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", {})


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if left_out := config.stash.get(LEFT_OUT, None):
        parts = (
            f"{count} marked `{name}` ({NEEDS[name].packages})"
            for name, count in sorted(left_out.items())
        )
        terminalreporter.write_line(f"Left out for lack of packages: {', '.join(parts)}")
