"""Process.stop ends a child and every process that the child started."""

import subprocess
from pathlib import Path

from embedded.processes import Process, describe_exit
from tests.embedded.running import TIMEOUT

# Ignores SIGTERM and starts a process that inherits its output pipe.
STUBBORN = "trap '' TERM; sleep 60 & echo up; while true; do sleep 1; done"


def test_a_child_that_ignores_sigterm_is_killed_with_its_children() -> None:
    child = Process("stubborn", ["sh", "-c", STUBBORN], output=subprocess.PIPE)
    assert child.popen.stdout
    with child.popen.stdout as output:
        assert output.readline() == b"up\n"
        child.stop(timeout=0.1)
        assert output.read() == b""  # end of file: no process has the pipe open
    assert describe_exit(child.wait()) == "killed by SIGKILL"


def test_a_stopping_child_may_finish_its_work(tmp_path: Path) -> None:
    finishes = f"trap 'sleep 0.3; touch {tmp_path}/finished; exit 0' TERM; echo up; sleep 60 & wait"
    child = Process("patient", ["sh", "-c", finishes], output=subprocess.PIPE)
    assert child.popen.stdout
    with child.popen.stdout as output:
        assert output.readline() == b"up\n"
        child.stop(timeout=TIMEOUT)
    assert (tmp_path / "finished").exists()
    assert describe_exit(child.wait()) == "exit code 0"
