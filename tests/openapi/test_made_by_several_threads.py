"""The first readers of the document may come at once, to a process that has made none yet."""

import subprocess
import sys

from embedded.environment import PROJECT

FOUR_THREADS = """
import itertools
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import django
from drf_spectacular.plumbing import OpenApiGeneratorExtension

django.setup()
from config.api import openapi

# What an extension is for is loaded when it is first asked. Threads that come for it together are
# let in one after another.
load = OpenApiGeneratorExtension._load_class.__func__
turns = itertools.count()


def load_in_turn(extension):
    time.sleep(0.03 * (1 + next(turns) % 3))
    load(extension)


OpenApiGeneratorExtension._load_class = classmethod(load_in_turn)
start = Barrier(4)


def make(_):
    start.wait()
    return len(getattr(openapi, sys.argv[1])()["paths"])


with ThreadPoolExecutor(4) as pool:
    print(*pool.map(make, range(4)))
"""


def test_all_of_them_get_the_document() -> None:
    made = made_by_four_threads("openapi_document")
    assert made.returncode == 0, made.stderr
    assert len(set(made.stdout.split())) == 1


def test_control_they_would_fail_without_taking_turns() -> None:
    assert made_by_four_threads("_generate_document").returncode != 0


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
