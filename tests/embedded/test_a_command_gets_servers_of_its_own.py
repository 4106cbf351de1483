"""`exec`: the command decides about the exit code, and its servers go with it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.embedded.running import PATIENCE, command

ASK_BOTH_SERVERS = """
import os, psycopg, redis
with psycopg.connect(os.environ["DATABASE_URL"]) as database:
    print(*database.execute("SELECT current_database()").fetchone())
for name in ("REDIS_URL", "CELERY_BROKER_URL"):
    with redis.Redis.from_url(os.environ[name]) as server:
        print(server.ping())
print("testserver" in os.environ["DJANGO_ALLOWED_HOSTS"].split(","))
"""


def execute(place: Path, *arguments: str) -> "subprocess.Popen[str]":
    """With its temporary files below `place`, where a test can look at what remains."""
    return subprocess.Popen(
        command("exec", "--fast", "--", *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(place)},
    )


def test_it_finds_both_and_nothing_remains(tmp_path: Path) -> None:
    with execute(tmp_path, sys.executable, "-c", ASK_BOTH_SERVERS) as started:
        printed, errors = started.communicate(timeout=PATIENCE)
    assert (printed, errors) == ("voucher\nTrue\nTrue\nTrue\n", "")
    assert started.returncode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", 137)])
def test_its_exit_code_is_ours(tmp_path: Path, script: str, code: int) -> None:
    with execute(tmp_path, "sh", "-c", script) as started:
        assert started.wait(PATIENCE) == code


def test_a_command_that_does_not_exist_is_one_line(tmp_path: Path) -> None:
    with execute(tmp_path, "no-such-command") as started:
        _, errors = started.communicate(timeout=PATIENCE)
    assert errors == "Cannot run no-such-command: No such file or directory\n"
    assert started.returncode == 1


def test_a_sigterm_is_passed_on_and_then_all_is_removed(tmp_path: Path) -> None:
    with execute(tmp_path, "sh", "-c", "trap 'exit 9' TERM; echo up; sleep 60 & wait") as started:
        assert started.stdout
        assert started.stdout.readline() == "up\n"
        time.sleep(0.5)  # until we are past starting it
        started.send_signal(signal.SIGTERM)
        assert started.wait(PATIENCE) == 9
    assert list(tmp_path.iterdir()) == []
