"""Several threads may ask for the OpenAPI document before the process has generated it."""

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
from core.api import openapi

# drf-spectacular loads the target of an extension at its first use. Loading takes a different time
# in each thread, so the threads overlap.
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


def test_all_threads_get_the_same_document() -> None:
    made = call_in_four_threads("openapi_document")
    assert made.returncode == 0, made.stderr
    assert len(set(made.stdout.split())) == 1


def test_control_generation_without_the_lock_fails() -> None:
    assert call_in_four_threads("_generate_document").returncode != 0


def call_in_four_threads(function: str) -> "subprocess.CompletedProcess[str]":
    """Calls this function of core.api.openapi in four threads of a new process at once."""
    return subprocess.run(
        [sys.executable, "-c", FOUR_THREADS, function],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
