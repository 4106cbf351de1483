"""The commands that start the processes of the service, for `make run` and for production.

docs/operate/install.md shows these commands; tests/structure/test_documented_commands.py compares
them.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from signal import Signals

WEB_THREADS = 8  # per web process: two that work, and others that wait (core/http/turns.py)
PYTHON = (sys.executable, "-u")
CELERY = (
    *PYTHON,
    # Celery warns about root because of pickle, which no task here uses.
    *("-W", "ignore:You're running the worker with superuser privileges"),
    *("-m", "celery", "--quiet", "-A", "config"),
)


@dataclass(frozen=True)
class Service:
    """One process of the application. It receives `orphan_signal` when the supervisor is killed."""

    name: str
    command: Sequence[str]
    orphan_signal: Signals = Signals.SIGTERM


def services(*, host: str, port: int, var: Path) -> list[Service]:
    """The processes in start order. They stop in reverse order, the web server first."""
    return [
        Service("worker", _worker("--queues=celery", "--concurrency=2"), Signals.SIGKILL),
        # A process of its own reads each file, and returns its memory afterwards.
        Service(
            "imports",
            _worker(
                *("--queues=imports,files", "--hostname=imports@"),
                *("--concurrency=1", "--max-tasks-per-child=1"),
            ),
            Signals.SIGKILL,
        ),
        Service(
            "beat",
            [
                *CELERY,
                "beat",
                "--loglevel=warning",
                "--pidfile=",
                f"--schedule={var / 'celerybeat-schedule'}",
            ],
        ),
        Service("bot", [*PYTHON, "manage.py", "run_bot"]),
        Service("metrics", [*PYTHON, "manage.py", "run_metrics"]),
        Service("web", _granian(host, port)),
    ]


def _worker(*options: str) -> list[str]:
    return [*CELERY, "worker", "--loglevel=warning", *options, "--without-gossip"]


def _granian(host: str, port: int) -> list[str]:
    """Granian with several threads per process: one computes while another waits for PostgreSQL.

    Its log level is `error`, because at each start it warns about more threads than two per core.
    """
    return [
        *PYTHON,
        *("-m", "granian", "--interface=wsgi", "--no-ws", "--log-level=error"),
        *(f"--host={host}", f"--port={port}"),
        *("--runtime-threads=1", f"--blocking-threads={WEB_THREADS}"),
        "--blocking-threads-idle-timeout=600",  # a thread that ends closes its database connection
        "--respawn-failed-workers",
        "--workers-kill-timeout=30",
        "config.wsgi:application",
    ]
