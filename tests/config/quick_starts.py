"""Starts programs of the service in fresh processes that have the large packages loaded already.

Each program is a fork of one server process (`multiprocessing`'s forkserver), so it costs a fork
instead of the import of Django and psycopg. The service's own modules, with its settings, are
loaded anew by each program.
"""

import multiprocessing
import os
import runpy
import sys
from pathlib import Path
from subprocess import CompletedProcess

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        "celery.app.base",
        "cryptography.hazmat.primitives.ciphers.aead",
        "django.contrib.auth.hashers",
        "django.core.management.base",
        "django.db.models",
        "django.forms",
        "psycopg",
        "django.template.engine",
        "orjson",
        "structlog",
    ]
)
TIMEOUT = 60.0


def start_program(
    command: list[str], *, environment: dict[str, str], folder: Path
) -> CompletedProcess[str]:
    """Runs `python COMMAND` with this environment in this folder, until it ends.

    `command` is a script and its arguments, or `-c` and a text.
    """
    output, errors = folder / "stdout", folder / "stderr"
    process = CONTEXT.Process(target=_run, args=(command, environment, folder, output, errors))
    process.start()
    process.join(TIMEOUT)
    assert process.exitcode is not None, f"{command} does not end"
    return CompletedProcess(command, process.exitcode, output.read_text(), errors.read_text())


def _run(
    command: list[str], environment: dict[str, str], folder: Path, output: Path, errors: Path
) -> None:
    for number, path in ((1, output), (2, errors)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = command
    if command[0] == "-c":
        exec(command[1], {"__name__": "__main__"})
    else:
        sys.path.insert(0, str(Path(command[0]).parent))
        runpy.run_path(command[0], run_name="__main__")
