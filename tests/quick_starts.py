"""Starts the service's programs as forks of a process that has loaded the large packages already.

    process = QuickProcess("web", command, environment=…, folder=PROJECT, log=folder / "log")
    done = run_quickly(["manage.py", "reconcile"], environment=…, folder=PROJECT)

A web process takes two seconds of processor time to load Django, Celery and what they need. A fork
has them (`multiprocessing`'s forkserver, one for each test process), and loads the service's own
modules and its settings itself, so each program has its own environment. Otherwise it is a process
like any other, with its own session, signals and exit code.

A test of what a program loads, or of how it starts, starts it with `Process` or `subprocess`. So
does `start_in` with a program of another checkout, which has packages of its own.
"""

import atexit
import ctypes
import gc
import json
import multiprocessing
import os
import runpy
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import forkserver
from pathlib import Path
from subprocess import CompletedProcess, TimeoutExpired
from types import ModuleType

import django

from embedded.environment import PROJECT
from embedded.processes import PR_SET_PDEATHSIG, Process

# Third-party modules that read no settings when they are imported; they import most others.
PRELOADED = [
    "authlib.integrations.django_client",
    "authlib.integrations.requests_client",
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.bin.celery",
    "celery.concurrency.prefork",
    "celery.fixups.django",
    "celery.worker.consumer",
    "cryptography.hazmat.primitives.ciphers.aead",
    "django.contrib.admin",
    "django.contrib.admindocs.views",
    "django.contrib.auth.hashers",
    "django.contrib.auth.password_validation",
    "django.contrib.auth.tokens",
    "django.contrib.contenttypes.management",
    "django.contrib.messages.middleware",
    "django.contrib.messages.storage.fallback",
    "django.contrib.sessions.middleware",
    "django.core.cache.backends.redis",
    "django.core.handlers.wsgi",
    "django.core.mail",
    "django.core.management.base",
    "django.db.backends.postgresql.base",
    "django.db.migrations.executor",
    "django.db.models",
    "django.forms",
    "django.middleware.cache",
    "django.middleware.clickjacking",
    "django.middleware.common",
    "django.middleware.security",
    "django.template.backends.django",
    "django.template.defaulttags",
    "django.template.loader_tags",
    "django.template.loaders.app_directories",
    "django.test",
    "django.views.defaults",
    "django.views.generic",
    "django_otp_webauthn.utils",
    "django_structlog.celery.steps",
    "django_structlog.middlewares",
    "drf_spectacular.utils",
    "environ",
    "granian.cli",
    "granian.server",
    "granian.wsgi",
    "ipware",
    "kombu.transport.pyamqp",
    "kombu.transport.redis",
    "orjson",
    "prometheus_client.multiprocess",
    "psycopg",
    "redis.asyncio",
    "requests",
    "rest_framework.mixins",
    "rest_framework.permissions",
    "rest_framework.serializers",
    "segno",
    "structlog",
    "telegram.ext",
    "tqdm",
    "ulid",
    "unfold.contrib.filters.apps",
    "webauthn",
    "whitenoise.middleware",
    "yaml",
]
TIMEOUT = 300.0

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(PRELOADED)


class QuickProcess(Process):
    """A `Process` whose command begins with the Python that runs the tests.

    What it prints is added to the file `log`.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        environment: Mapping[str, str],
        folder: Path,
        log: Path,
        errors: Path | None = None,
    ) -> None:
        self.name = name
        self.stop_signal = signal.SIGTERM
        self.own_session = True
        assert command[0] == sys.executable, command
        words = [str(word) for word in command[1:]]
        log.touch()  # a reader may come before the program has begun
        self.popen = _Fork(words, dict(environment), folder, log, errors or log)  # type: ignore[assignment]


def run_quickly(
    command: Sequence[str | Path],
    *,
    environment: Mapping[str, str],
    folder: Path = PROJECT,
    check: bool = False,
) -> CompletedProcess[str]:
    """Runs `python COMMAND` with this environment in this folder, until it ends.

    `command` is a script or `-m` and a module, with arguments, or `-c` and a text. With `check`, a
    program that fails raises CalledProcessError.
    """
    with tempfile.TemporaryDirectory(prefix="voucher-program-") as place:
        output, errors = Path(place, "stdout"), Path(place, "stderr")
        program = QuickProcess(
            "program",
            [sys.executable, *command],
            environment=environment,
            folder=folder,
            log=output,
            errors=errors,
        )
        try:
            code = program.popen.wait(TIMEOUT)
        finally:
            program.stop()
        done = CompletedProcess(list(command), code, output.read_text(), errors.read_text())
    if check:
        done.check_returncode()
    return done


def run_each(
    commands: Sequence[Sequence[str | Path]], *, environment: Mapping[str, str], folder: Path
) -> list[CompletedProcess[str]]:
    """Runs programs of the service that have the same environment, one after the other.

    They are forks of a process that has called `django.setup` with that environment, which is most
    of each start. What `django.setup` raises there, it raises again in each program.
    """
    with tempfile.TemporaryDirectory(prefix="voucher-programs-") as place:
        words = json.dumps([list(map(str, command)) for command in commands])
        text = f"from tests.quick_starts import fork_each; fork_each({words}, {place!r})"
        variables = {"PYTHONPATH": str(PROJECT), **environment}
        codes = json.loads(
            run_quickly(["-c", text], environment=variables, folder=folder, check=True).stdout
        )
        return [
            CompletedProcess(
                list(command), code, *(path.read_text() for path in _outputs(place, number))
            )
            for number, (command, code) in enumerate(zip(commands, codes, strict=True))
        ]


def fork_each(commands: list[list[str]], place: str) -> None:
    """In a program: runs others in forks of it, and prints their exit codes. What they print is in
    `place`."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    with suppress(BaseException):
        django.setup()
    codes = []
    for number, words in enumerate(commands):
        pid = os.fork()
        if not pid:
            for stream, path in enumerate(_outputs(place, number), start=1):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
            _run_program(words)
            return
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    print(json.dumps(codes))  # noqa: T201


def _outputs(place: str, number: int) -> tuple[Path, Path]:
    return Path(place, f"{number}.out"), Path(place, f"{number}.err")


def start_in(
    project: Path,
    name: str,
    command: Sequence[str | Path],
    *,
    environment: Mapping[str, str],
    log: Path,
) -> Process:
    """Starts `python COMMAND` of this checkout: quickly, or with the packages that it installed.

    `command` begins with the Python that runs the tests. Another checkout has one in `.venv`.
    """
    if project == PROJECT:
        return QuickProcess(name, command, environment=environment, folder=project, log=log)
    own = [project / ".venv/bin/python", *command[1:]]
    with log.open("ab") as output:
        return Process(name, own, environment=environment, folder=project, output=output)


class _Fork:
    """What `Process` and the tests use of `subprocess.Popen`."""

    stdin = None

    def __init__(
        self, words: list[str], environment: dict[str, str], folder: Path, log: Path, errors: Path
    ) -> None:
        start_server()
        self._words = words
        # Ends with the test process, as `daemon` says.
        self._process = _context.Process(
            target=_run, args=(words, environment, folder, log, errors), daemon=True
        )
        with _without_main():
            self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self.poll()
        if code is None:
            raise TimeoutExpired(self._words, timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def start_server() -> None:
    """Starts the server if it does not run, without settings: a module that needs them fails."""
    module = os.environ.pop("DJANGO_SETTINGS_MODULE", None)
    try:
        with _without_main():
            forkserver.ensure_running()
    finally:
        if module is not None:
            os.environ["DJANGO_SETTINGS_MODULE"] = module


@contextmanager
def _without_main() -> Iterator[None]:
    """`multiprocessing` would run the main module of this process again in each fork."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _run(
    words: list[str], environment: dict[str, str], folder: Path, log: Path, errors: Path
) -> None:
    """Makes this fork what `python WORDS` would be, and runs the program."""
    assert "config" not in sys.modules, "the server must not load the service"
    gc.freeze()  # what is loaded already stays, and is never copied
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM))
    for number, path in ((0, os.devnull), (1, log), (2, errors)):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND), number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    multiprocessing.set_start_method("fork", force=True)
    multiprocessing.current_process().daemon = False  # it may have children of its own
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    try:
        _run_program(_read_options(words))
    finally:
        atexit._run_exitfuncs()


def _read_options(words: list[str]) -> list[str]:
    """Applies the options of Python that the service's commands have. Returns the rest."""
    while words[0] in ("-u", "-W"):
        if words[0] == "-u":
            sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
            words = words[1:]
        else:
            action, _, message = words[1].partition(":")
            warnings.filterwarnings(action, message)  # type: ignore[arg-type]
            words = words[2:]
    return words


def _run_program(words: list[str]) -> None:
    here = str(Path(words[0]).resolve().parent) if words[0] not in ("-c", "-m") else str(Path.cwd())
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    installed = [path for path in sys.path if path not in ("", str(PROJECT))]
    sys.path[:] = [here, *filter(None, paths), *installed]
    match words:
        case ["-c", text, *arguments]:
            sys.argv = ["-c", *arguments]
            exec(text, {"__name__": "__main__"})
        case ["-m", module, *arguments]:
            sys.argv = [module, *arguments]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case [script, *_]:
            sys.argv = words
            runpy.run_path(script, run_name="__main__")
