"""The Python library works with the oldest Python that it supports."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from embedded.environment import PROJECT
from tests.live import LiveServer
from tests.sdk.test_kills import mistakes_of

LIBRARY = PROJECT / "sdk" / "python" / "src"
PACKAGES = PROJECT / ".tools" / "library"  # `make system-test` installs requirements/library.txt


def find() -> str | None:
    """The path of Python 3.9. pyenv shows it only if it is asked for it."""
    if not shutil.which("python3.9"):
        return None
    done = subprocess.run(
        ["python3.9", "-c", "import sys; print(sys.executable)"],
        env={**os.environ, "PYENV_VERSION": "3.9"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or None


@pytest.mark.skipif(find() is None, reason="needs Python 3.9")
@pytest.mark.django_db(transaction=True)
def test_a_shop_killed_on_python_3_9_doubles_and_loses_nothing(
    live: LiveServer, tmp_path: Path
) -> None:
    python = ["env", f"PYTHONPATH={LIBRARY}:{PACKAGES}", str(find())]
    assert mistakes_of(python, live, tmp_path) == []
