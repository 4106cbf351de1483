"""A quick start is a real start in what tests rely on (tests/quick_starts.py)."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from embedded.environment import PROJECT
from embedded.processes import free_port, listen_error
from tests.quick_starts import QuickProcess, run_quickly

PRINTS_ITSELF = """
import json, os, signal, sys
loaded = [name for name in ("django.conf", "config", "config.settings") if name in sys.modules]
if "django.conf" in loaded:
    loaded.append(str(sys.modules["django.conf"].settings.configured))
print(json.dumps({
    "environment": dict(os.environ), "arguments": sys.argv, "loaded": loaded,
    "folder": os.getcwd(), "leads": os.getsid(0) == os.getpid(),
    "files": [int(number) for number in os.listdir("/proc/self/fd")],
    "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
}))
"""

LISTENS = """
import socket, sys, time
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
time.sleep(60)
"""
STARTS_A_SERVER_AND_DIES = f"""
import os, signal, sys, time
from pathlib import Path
from embedded.processes import listen_error
from tests.quick_starts import QuickProcess
command = [sys.executable, "-c", {LISTENS!r}, sys.argv[1]]
folder, log = Path("."), Path(os.devnull)
server = QuickProcess("server", command, environment=os.environ, folder=folder, log=log)
while not listen_error("127.0.0.1", int(sys.argv[1])):
    assert server.exit_code() is None
    time.sleep(0.02)
os.kill(os.getpid(), signal.SIGKILL)
"""


def environment(**others: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], **others}


def test_a_program_has_the_environment_of_a_real_start(tmp_path: Path) -> None:
    done = run_quickly(
        ["-c", PRINTS_ITSELF, "word"], environment=environment(ONE="1"), folder=tmp_path, check=True
    )
    told = json.loads(done.stdout)
    assert told.pop("files")[:3] == [0, 1, 2]
    assert told == {
        "environment": environment(ONE="1"),
        "arguments": ["-c", "word"],
        "loaded": ["django.conf", "False"],
        "folder": str(tmp_path),
        "leads": True,
        "interrupt": True,
    }


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1/4", "redis://127.0.0.1:2/5"])
def test_each_program_reads_its_own_settings(url: str) -> None:
    asks = "from django.conf import settings; print(settings.CACHES['default']['LOCATION'])"
    variables = {**os.environ, "REDIS_URL": url}
    assert run_quickly(["-c", asks], environment=variables, check=True).stdout == f"{url}\n"


@pytest.mark.parametrize(
    ("program", "code", "errors"),
    [
        ("", 0, ""),
        ("import sys; sys.exit(3)", 3, ""),
        ("import sys; sys.exit('no such order')", 1, "no such order\n"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -9, ""),
        ("import atexit, sys; atexit.register(sys.stderr.write, 'the end\\n')", 0, "the end\n"),
    ],
)
def test_a_program_ends_like_a_real_one(program: str, code: int, errors: str) -> None:
    done = run_quickly(["-c", program], environment=environment())
    assert (done.returncode, done.stderr) == (code, errors)


def test_an_exception_is_shown_and_ends_the_program() -> None:
    done = run_quickly(["-c", "1 / 0"], environment=environment())
    assert (done.returncode, "ZeroDivisionError" in done.stderr) == (1, True)


def test_a_signal_reaches_the_program(tmp_path: Path) -> None:
    waits = ["-u", "-c", "import time; print('here'); time.sleep(60)"]
    log = tmp_path / "log"
    process = QuickProcess(
        "waits", [sys.executable, *waits], environment=environment(), folder=PROJECT, log=log
    )
    while not log.exists() or log.read_text() != "here\n":
        assert process.exit_code() is None
    process.popen.send_signal(signal.SIGTERM)
    assert process.wait() == -signal.SIGTERM


def test_a_program_may_start_children_of_its_own() -> None:
    forks = (
        "from multiprocessing import Process, get_start_method as method;"
        "child = Process(target=print, args=[method()]); child.start(); child.join()"
    )
    done = run_quickly(["-c", forks], environment=environment(), check=True)
    assert done.stdout == "fork\n"


def test_programs_end_with_the_process_that_started_them() -> None:
    """Even a kill -9 of a test process leaves no server behind."""
    port = free_port()
    words = ["-c", STARTS_A_SERVER_AND_DIES, str(port)]
    assert (
        subprocess.run([sys.executable, *words], cwd=PROJECT, check=False).returncode
        == -signal.SIGKILL
    )
    deadline = time.monotonic() + 10
    while listen_error("127.0.0.1", port):
        assert time.monotonic() < deadline, "the program outlived the process that started it"
        time.sleep(0.02)
