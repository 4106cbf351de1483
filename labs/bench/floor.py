"""Measures the limit of the database: runs labs/bench/floor.sql with pgbench."""

import re
import subprocess
from pathlib import Path

from embedded.binaries import postgres_binary
from labs.bench.load import CONNECTIONS, BenchError

SCRIPT = Path(__file__).with_name("floor.sql")


def run_floor(url: str, *, seconds: float) -> float:
    """Purchases per second. Raises BenchError when pgbench fails."""
    ran = subprocess.run(
        [
            *(postgres_binary("pgbench"), "--no-vacuum", "--protocol=prepared"),
            *(f"--client={CONNECTIONS}", "--jobs=1", f"--time={max(1, round(seconds))}"),
            *(f"--file={SCRIPT}", url),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"^tps = ([0-9.]+)", ran.stdout, re.MULTILINE)
    if ran.returncode or not found:
        raise BenchError(f"pgbench failed: {ran.stderr.strip()[-1000:]}")
    return float(found[1])
