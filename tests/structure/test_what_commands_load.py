"""A process loads nothing that it does not use (docs/decisions/0035-what-a-command-loads.md)."""

import os
import subprocess
import sys

import pytest

from embedded.environment import PROJECT

# Each takes a tenth of a second or more of every command, worker and scheduler.
NOT_LOADED = {"celery", "redis", "requests", "rest_framework.serializers", "telegram"}


def modules_after(program: str, settings: str) -> set[str]:
    """The modules that a new process has loaded."""
    ran = subprocess.run(
        [sys.executable, "-c", f"import django, sys; django.setup(); {program}print(*sys.modules)"],
        cwd=PROJECT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": settings},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(ran.stdout.split())


def test_a_command_starts_without_what_it_does_not_use() -> None:
    loaded = modules_after("", "config.settings")
    assert "operators.admin.apps" in loaded
    assert loaded & NOT_LOADED == set()


@pytest.mark.parametrize(
    ("program", "settings"),
    [("", "config.settings"), ("import config.urls_api; ", "config.settings_api")],
)
def test_only_a_reader_loads_what_the_apps_declare(program: str, settings: str) -> None:
    loaded = modules_after(program, settings)
    assert "orders.models" in loaded
    declarations = {name for name in loaded if name.endswith(".backoffice")}
    assert declarations <= {"core.backoffice"}  # the types, which `operators.staff.roles` imports
