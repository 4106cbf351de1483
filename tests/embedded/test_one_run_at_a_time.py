"""A second run is refused with one line and does not disturb the first."""

import os
import subprocess
from pathlib import Path

from tests.embedded.running import command, connect, servers


def test_a_second_run_is_refused(var: Path) -> None:
    with servers(var), connect(var) as connection:
        second = subprocess.run(
            command("run", "--var", var), capture_output=True, text=True, check=False
        )
        assert second.returncode == 1
        assert second.stdout == ""
        assert second.stderr == (f"Already running as process {os.getpid()}. Stop it first.\n")
        assert connection.execute("SELECT 1").fetchone() == (1,)
