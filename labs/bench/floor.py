"""Measures the database alone with pgbench: the limit, or the service's own functions."""

import re
import subprocess
from pathlib import Path

from embedded.binaries import postgres_binary
from labs.bench.load import CONNECTIONS, BenchError

FLOOR = Path(__file__).with_name("floor.sql")
FUNCTIONS = Path(__file__).with_name("functions.sql")


def run_pgbench(url: str, script: Path, *, seconds: float, **variables: str) -> float:
    """Purchases per second of one of the scripts. Raises BenchError when pgbench fails."""
    ran = subprocess.run(
        [
            *(postgres_binary("pgbench"), "--no-vacuum", "--protocol=prepared"),
            *(f"--client={CONNECTIONS}", "--jobs=1", f"--time={max(1, round(seconds))}"),
            *(f"--define={name}={value}" for name, value in variables.items()),
            *(f"--file={script}", url),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"^tps = ([0-9.]+)", ran.stdout, re.MULTILINE)
    if ran.returncode or not found:
        raise BenchError(f"pgbench failed: {ran.stderr.strip()[-1000:]}")
    return float(found[1])
