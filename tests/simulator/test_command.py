"""The command of the exam, with servers of its own."""

import os
import subprocess
import sys

from embedded.environment import PROJECT


def test_the_command_starts_the_service_and_judges_a_program() -> None:
    python = sys.executable
    done = subprocess.run(
        [
            *(python, "-m", "embedded", "exec", "--fast", "--"),
            *(python, "-m", "simulator", "exam", "--purchases=4", "--kills=1", "--"),
            *(python, "simulator/programs/with_library.py"),
        ],
        cwd=PROJECT,
        env={
            **os.environ,
            "PYTHONPATH": str(PROJECT / "sdk" / "python" / "src"),
            "VOUCHER_SECOND": "0.1",
        },
        check=False,
        capture_output=True,
        text=True,
    )

    assert done.stdout.endswith("PASSED\n"), done.stdout + done.stderr
    assert done.returncode == 0
