"""Python 3.9, the oldest with which the Python library works, and the packages that it needs."""

import atexit
import os
import shutil
import subprocess
import tempfile
from functools import cache

import pytest

from embedded.environment import PROJECT

_LIBRARY = PROJECT / "sdk" / "python" / "src"
_REQUIREMENTS = PROJECT / "requirements" / "library.txt"


@cache
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


needed = pytest.mark.skipif(find() is None, reason="needs Python 3.9")


@cache
def command() -> list[str]:
    """The beginning of a command that runs a program with the library."""
    python = find()
    assert python is not None
    folder = tempfile.mkdtemp(prefix="voucher-python-3.9-")
    atexit.register(shutil.rmtree, folder)
    install = [str(PROJECT / ".tools" / "bin" / "uv"), "pip", "install", "--quiet"]
    install += ["--python", python, "--target", folder]
    install += ["--require-hashes", "--requirements", str(_REQUIREMENTS)]
    subprocess.run(install, check=True)
    return ["env", f"PYTHONPATH={_LIBRARY}:{folder}", python]
