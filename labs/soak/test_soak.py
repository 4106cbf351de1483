"""A short run with each fault once. `make soak` runs the long one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from embedded.environment import PROJECT


@pytest.mark.compiler
def test_nothing_is_lost_in_a_short_run_with_every_fault(tmp_path: Path) -> None:
    """A process of its own: it mounts a disk for its logs, in a namespace of its own."""
    result = tmp_path / "result.json"
    command = [sys.executable, "-m", "labs.soak", "--minutes=0", "--pause=0.2", "--longest=1"]
    ran = subprocess.run(
        [*command, "--workers=1", "--vouchers=5000", "--topups=500", f"--result={result}"],
        cwd=PROJECT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = json.loads(result.read_text())
    assert found["problems"] == {}
    assert len(found["faults"]) == 12
    assert set(found["faults"].values()) == {1}
    assert found["debits"] == found["voucher_orders"] + found["top_up_orders"]
    assert found["voucher_orders"] > 100
    assert found["refunds"] > 0
    print({name: found[name] for name in ("seed", "debits", "refunds", "requests", "outcomes")})  # noqa: T201
