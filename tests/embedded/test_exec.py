"""`embedded exec` runs a command with temporary servers and returns its exit code."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.embedded.running import TIMEOUT, command

QUERY_BOTH_SERVERS = """
import os, psycopg, redis
with psycopg.connect(os.environ["DATABASE_URL"]) as database:
    print(*database.execute("SELECT current_database()").fetchone())
for name in ("REDIS_URL", "CELERY_BROKER_URL"):
    with redis.Redis.from_url(os.environ[name]) as server:
        print(server.ping())
print("testserver" in os.environ["DJANGO_ALLOWED_HOSTS"].split(","))
"""


def execute(place: Path, *arguments: str) -> "subprocess.Popen[str]":
    """Starts `embedded exec` with `place` as its folder for temporary files."""
    return subprocess.Popen(
        command("exec", "--fast", "--", *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(place)},
    )


def test_a_command_reaches_both_servers_and_leaves_no_files(tmp_path: Path) -> None:
    with execute(tmp_path, sys.executable, "-c", QUERY_BOTH_SERVERS) as started:
        printed, errors = started.communicate(timeout=TIMEOUT)
    assert (printed, errors) == ("voucher\nTrue\nTrue\nTrue\n", "")
    assert started.returncode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", 137)])
def test_the_exit_code_of_the_command_is_returned(tmp_path: Path, script: str, code: int) -> None:
    with execute(tmp_path, "sh", "-c", script) as started:
        assert started.wait(TIMEOUT) == code


def test_a_missing_command_prints_one_line(tmp_path: Path) -> None:
    with execute(tmp_path, "no-such-command") as started:
        _, errors = started.communicate(timeout=TIMEOUT)
    assert errors == "Cannot run no-such-command: No such file or directory\n"
    assert started.returncode == 1


def test_sigterm_is_forwarded_and_no_files_are_left(tmp_path: Path) -> None:
    with execute(tmp_path, "sh", "-c", "trap 'exit 9' TERM; echo up; sleep 60 & wait") as started:
        assert started.stdout
        assert started.stdout.readline() == "up\n"
        time.sleep(0.5)  # until `exec` waits for the command
        started.send_signal(signal.SIGTERM)
        assert started.wait(TIMEOUT) == 9
    assert list(tmp_path.iterdir()) == []
