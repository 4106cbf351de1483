"""A command loads no package that it does not use (docs/decisions/0035-what-a-command-loads.md)."""

import subprocess
import sys

from embedded.environment import PROJECT

# Each takes a tenth of a second or more of every command, worker and scheduler.
NOT_LOADED = {"celery", "redis", "requests", "rest_framework.serializers", "telegram"}


def test_a_command_starts_without_what_it_does_not_use() -> None:
    program = "import django, sys; django.setup(); print(*sys.modules)"
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    assert "operators.apps" in loaded
    assert loaded & NOT_LOADED == set()
