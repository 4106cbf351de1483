"""`make run`: starts and stops the whole service in one terminal."""

import http.client
import json
import logging
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from http import HTTPStatus
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import NoReturn

from embedded.binaries import postgres_major_version
from embedded.commands import PYTHON, Service, services
from embedded.environment import FILE_NAME, FOR_MIGRATE_ONLY, KEPT_WITH_THE_DATA, PROJECT
from embedded.errors import EmbeddedError
from embedded.interrupts import Interrupted, ignore_signals, interruptible
from embedded.processes import Process, describe_exit, listen_error
from embedded.screen import Screen
from embedded.servers import Servers, run_lock, stored_servers
from embedded.static_files import STATIC_ROOT, up_to_date_static_files

DEFAULT_PORTS = range(8000, 8100)
WEB_WORKERS = 2
WEB_START_TIMEOUT = 60.0  # seconds
STOP_TIMEOUT = 35.0  # seconds: a little longer than granian waits for running requests
LOG_NAME = "service.log"
REQUEST = "request_finished"  # core/http/request_log.py
BESIDE_THE_PAGES = ("200 GET /static/", "200 GET /healthz")
# Values that the screen leaves out; a request has its id in the file.
IN_THE_FILE_ONLY = ("event", "exception", "level", "logger", "request_id", "timestamp")
LOG_BYTES = 10_000_000  # then the log moves to service.log.1, in place of the one before

screen = Screen()


def run_service(*, var: Path, host: str, port: int | None) -> None:
    """Runs the service until a signal stops it (raises Interrupted) or a process ends by itself.

    Raises EmbeddedError when a process does not start or ends.
    """
    with ExitStack() as stack:
        stack.enter_context(interruptible())
        stack.enter_context(run_lock(var))
        port = _choose_port(host, port)
        base_url = f"http://{_url_host(host)}:{port}"
        servers = _start_servers(stack, var)
        environment = {"PUBLIC_URL": base_url} | _application_environment(servers)
        owner = {FOR_MIGRATE_ONLY: environment.pop(FOR_MIGRATE_ONLY)}
        with screen.step("Database schema"):
            _manage("migrate", "--no-input", "--verbosity=0", environment=environment | owner)
        with screen.step("Static files"), up_to_date_static_files() as is_stale:
            if is_stale:
                _manage("collectstatic", "--no-input", "--verbosity=0", environment=environment)
        with screen.step("Demo data"):
            options = ["load_demo", f"--base-url={base_url}"]
            welcome = _manage(*options, environment=environment | owner)
        log = _open_log(stack, var / LOG_NAME)
        with screen.step("Web server, worker and scheduler"):
            started = [
                _start(stack, service, environment, log)
                for service in services(host=host, port=port, var=var)
                if _is_enabled(service, environment)
            ]
            running = [*servers.processes, *started]
            _wait_for_web(host, port, running)
        screen.line(f"Serving {base_url} until Ctrl-C.\n\n{welcome.strip()}\n")
        screen.line(f"Requests and warnings are printed here; {var / LOG_NAME} has every line.\n")
        _watch(running)


def run_servers(*, var: Path) -> None:
    """Runs only the two servers, until a signal stops it (raises Interrupted) or one ends."""
    with ExitStack() as stack:
        stack.enter_context(interruptible())
        stack.enter_context(run_lock(var))
        servers = _start_servers(stack, var)
        screen.line(f"manage.py finds the servers through {var / FILE_NAME}. Ctrl-C stops them.")
        _watch(servers.processes)


def _is_enabled(service: Service, environment: Mapping[str, str]) -> bool:
    """Whether to start the process: the bot and the exporter of metrics must be asked for."""
    variable = {"bot": "TELEGRAM_BOT_TOKEN", "metrics": "METRICS_PORT"}.get(service.name)
    return variable is None or bool(environment.get(variable))


def _start_servers(stack: ExitStack, var: Path) -> Servers:
    with screen.step(f"PostgreSQL {postgres_major_version()} and Valkey"):
        return stack.enter_context(stored_servers(var))


def _application_environment(servers: Servers) -> dict[str, str]:
    """The shell's variables, except those for the servers and the keys of their data.

    The demo data must not be loaded into production when the shell has production's DATABASE_URL.
    """
    names = (*KEPT_WITH_THE_DATA, FOR_MIGRATE_ONLY, "CELERY_BROKER_URL")
    ours = {name: servers.environment[name] for name in names}
    for name in ours.keys() & os.environ.keys():
        if os.environ[name] != ours[name]:
            screen.line(f"{name} from your shell is ignored: `make run` uses its own servers.")
    defaults = servers.environment | {
        "GRANIAN_WORKERS": str(WEB_WORKERS),
        "STATIC_ROOT": str(STATIC_ROOT),
        "SUPPORT_CONTACT": "support@shop.example",
    }
    return defaults | os.environ | ours


def _choose_port(host: str, requested: int | None) -> int:
    if requested is None:
        for port in DEFAULT_PORTS:
            if listen_error(host, port) is None:
                return port
        requested = DEFAULT_PORTS.start
    if error := listen_error(host, requested):
        raise EmbeddedError(f"Cannot listen on {host}, port {requested}: {error}. Try PORT=…")
    return requested


def _manage(*arguments: str, environment: Mapping[str, str]) -> str:
    """Runs a management command and returns its stdout.

    When the command fails, prints its output and its log, and raises EmbeddedError.
    """
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as logged:
        child = Process(
            arguments[0],
            [*PYTHON, "manage.py", *arguments],
            environment=environment,
            folder=PROJECT,
            output=printed,
            errors=logged,
        )
        try:
            code = child.wait()
        finally:
            child.stop()
        printed.seek(0)
        text = printed.read().decode(errors="replace")
        if code:
            logged.seek(0)
            screen.line(f"\n{text}{logged.read().decode(errors='replace')}".rstrip())
            raise EmbeddedError(f"manage.py {arguments[0]} failed: {describe_exit(code)}.")
    return text


def _open_log(stack: ExitStack, path: Path) -> logging.Logger:
    handler = RotatingFileHandler(path, maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8")
    stack.callback(handler.close)
    log = logging.Logger(path.name)
    log.addHandler(handler)
    return log


def _start(
    stack: ExitStack, service: Service, environment: Mapping[str, str], log: logging.Logger
) -> Process:
    child = Process(
        service.name,
        service.command,
        orphan_signal=service.orphan_signal,
        environment=environment,
        folder=PROJECT,
        output=subprocess.PIPE,
    )
    relay = threading.Thread(target=_relay, args=[child, log], daemon=True)
    stack.callback(relay.join, 1)
    stack.callback(child.stop, timeout=STOP_TIMEOUT)
    relay.start()
    return child


def _relay(child: Process, log: logging.Logger) -> None:
    """Logs the output of a child, each line with the child's name in front, and prints requests,
    warnings and errors in short. Other lines would push the passwords off the screen."""
    for line in child.popen.stdout or ():
        if text := line.decode(errors="replace").rstrip():
            log.info("%s", f"{child.name:>7} | {text}")
            if short := _shorten(text):
                screen.line(f"{child.name:>7} | {short}")


def _shorten(line: str) -> str:
    """A line for people: of JSON what happened and its values, with the traceback of an exception.
    Empty if it tells of neither a request nor a problem."""
    try:
        values = json.loads(line)
        event, level = values["event"], values["level"].upper()
    except (ValueError, TypeError, KeyError, AttributeError):
        return line
    if event == REQUEST:
        text = _printable(f"{values.get('code')} {values.get('request')}")
        return "" if text.startswith(BESIDE_THE_PAGES) else text
    if level in ("DEBUG", "INFO"):
        return ""
    rest = (f"{name}={values[name]}" for name in values if name not in IN_THE_FILE_ONLY)
    traceback = str(values.get("exception") or "").splitlines()
    return "\n".join(map(_printable, (" ".join((level, str(event), *rest)), *traceback)))


def _printable(text: str) -> str:
    """The text in one line that a terminal shows as it is: a stranger chooses the path."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def _wait_for_web(host: str, port: int, running: Sequence[Process]) -> None:
    deadline = time.monotonic() + WEB_START_TIMEOUT
    while time.monotonic() < deadline:
        _check_running(running)
        if _answers(_url_host(host).strip("[]"), port):
            return
        time.sleep(0.1)
    raise EmbeddedError(f"The web server did not respond within {WEB_START_TIMEOUT:.0f} s.")


def _answers(host: str, port: int) -> bool:
    connection = http.client.HTTPConnection(host, port, timeout=5)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status < HTTPStatus.INTERNAL_SERVER_ERROR
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _watch(running: Sequence[Process]) -> NoReturn:
    try:
        while True:
            _check_running(running)
            time.sleep(0.2)
    except Interrupted:
        screen.line("\nStopping. Running requests and tasks finish first.")
        raise


def _check_running(running: Sequence[Process]) -> None:
    """Raises EmbeddedError when a process has ended. The service does not run without a part:
    it would take money for top-ups and announce none."""
    for child in running:
        if (code := child.exit_code()) is not None:
            ignore_signals()
            screen.line(f"\n{child.name} has ended. Stopping the other processes.")
            raise EmbeddedError(f"{child.name} ended by itself: {describe_exit(code)}.")


def _url_host(host: str) -> str:
    """The host name for a URL that a browser on this machine can open."""
    if host in ("0.0.0.0", "::"):  # noqa: S104
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
