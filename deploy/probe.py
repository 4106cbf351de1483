"""Whether the process of this container works: exit code 0, or 1 with one line on stderr.

With a port, `probe.py 8001`, it waits until the web server there is ready.

The web processes are asked over HTTP. The workers and the scheduler must have written a heartbeat
(operators/upkeep/monitoring/heartbeats.py) in the last ALIVE_SECONDS. Django is not loaded: that
would cost a second of processor time for each check.
"""

import http.client
import os
import socket
import sys
import time
from contextlib import closing
from http import HTTPStatus
from pathlib import Path

import psycopg

from core.environment.env import StrictEnv
from operators.frame.limits import ALIVE_SECONDS

PROCESS = Path("/tmp/process")  # noqa: S108  written by deploy/container/start
SECONDS = 5.0
READY_SECONDS = 60.0  # until a web server must be ready
PAUSE = 0.2
HEARTBEAT = """
    SELECT 1 FROM upkeep_heartbeat
    WHERE kind = %s AND host = %s AND beat_at > now() - make_interval(secs => %s)
"""


def web_problem(path: str, port: int) -> str | None:
    """The problem of the web server of this container; None if it responds with 200."""
    hosts = StrictEnv().list("DJANGO_ALLOWED_HOSTS", default=["localhost"])
    host = hosts[0].lstrip(".*") or "localhost"
    try:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)) as connection:
            connection.request("GET", path, headers={"Host": host})
            status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return f"{path} does not respond: {type(error).__name__}"
    return None if status == HTTPStatus.OK else f"{path} responded with {status}"


def wait_until_ready(port: int) -> str | None:
    """None once the web server is ready; its problem after READY_SECONDS."""
    deadline = time.monotonic() + READY_SECONDS
    while (found := web_problem("/readyz", port)) and time.monotonic() < deadline:
        time.sleep(PAUSE)
    return found


def heartbeat_problem(kind: str) -> str | None:
    """The problem of the worker or the scheduler of this container; None if it is alive."""
    try:
        with psycopg.connect(
            StrictEnv().str("DATABASE_URL"), connect_timeout=int(SECONDS)
        ) as connection:
            row = connection.execute(
                HEARTBEAT, [kind, socket.gethostname(), ALIVE_SECONDS]
            ).fetchone()
    except psycopg.Error as error:
        return f"the database does not respond: {type(error).__name__}"
    return None if row else f"no heartbeat of {kind} for {ALIVE_SECONDS} seconds"


def problem() -> str | None:
    """The problem of the process of this container; None if it works or is not a service."""
    process = PROCESS.read_text().strip() if PROCESS.is_file() else ""
    if process in ("api", "pages"):
        return web_problem("/healthz", int(os.environ.get("PORT") or 8000))
    if process == "metrics":
        return web_problem("/metrics", int(os.environ.get("METRICS_PORT") or 9464))
    if process in ("worker", "imports", "beat"):
        return heartbeat_problem(process)
    if process == "bot":
        os.execvp("python3", ["python3", "/app/manage.py", "run_bot", "--check"])  # noqa: S606
    return None


if __name__ == "__main__":
    sys.exit(wait_until_ready(int(sys.argv[1])) if sys.argv[1:] else problem())
