"""The first readers of the document may come at once, to a process that has made none yet."""

import subprocess
import sys

from config.embedded.environment import PROJECT

FOUR_THREADS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import django

django.setup()
from config.api import openapi

start = Barrier(4)


def make(_):
    start.wait()
    return len(getattr(openapi, sys.argv[1])()["paths"])


sys.setswitchinterval(1e-5)
with ThreadPoolExecutor(4) as pool:
    print(*pool.map(make, range(4)))
"""


def test_all_of_them_get_the_document() -> None:
    made = made_by_four_threads("openapi_document")
    assert made.returncode == 0, made.stderr
    assert len(set(made.stdout.split())) == 1


def test_control_they_would_fail_without_taking_turns() -> None:
    assert made_by_four_threads("_make_document").returncode != 0


def made_by_four_threads(function: str) -> "subprocess.CompletedProcess[str]":
    """As many threads of a new process call this function at once."""
    return subprocess.run(
        [sys.executable, "-c", FOUR_THREADS, function],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
