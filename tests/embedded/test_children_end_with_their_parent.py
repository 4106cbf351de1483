"""A child that does not listen is killed, and what it started itself goes with it."""

import subprocess
from pathlib import Path

from embedded.processes import Process, describe_exit
from tests.embedded.running import PATIENCE

# Ignores SIGTERM, and starts something that inherits the pipe we read from.
STUBBORN = "trap '' TERM; sleep 60 & echo up; while true; do sleep 1; done"


def test_a_stubborn_child_is_killed_with_its_own_children() -> None:
    child = Process("stubborn", ["sh", "-c", STUBBORN], output=subprocess.PIPE)
    assert child.popen.stdout
    with child.popen.stdout as output:
        assert output.readline() == b"up\n"
        child.stop(patience=0.1)
        assert output.read() == b""  # the end of it: nobody has the pipe open any more
    assert describe_exit(child.wait()) == "killed by SIGKILL"


def test_a_child_asked_to_stop_may_finish(tmp_path: Path) -> None:
    finishes = f"trap 'sleep 0.3; touch {tmp_path}/finished; exit 0' TERM; echo up; sleep 60 & wait"
    child = Process("patient", ["sh", "-c", finishes], output=subprocess.PIPE)
    assert child.popen.stdout
    with child.popen.stdout as output:
        assert output.readline() == b"up\n"
        child.stop(patience=PATIENCE)
    assert (tmp_path / "finished").exists()
    assert describe_exit(child.wait()) == "exit code 0"
