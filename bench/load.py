"""The load generator: wrk, outside of every process that is measured (bench/load.lua)."""

import json
import os
import secrets
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

SCRIPT = Path(__file__).with_name("load.lua")
CONNECTIONS = 16
MISSING = "wrk is needed, the load generator: apt-get install wrk"


class BenchError(Exception):
    """The benchmark cannot go on; the message says why."""


@dataclass(frozen=True)
class Load:
    """What one run of the load generator saw; times in milliseconds."""

    requests: int
    per_second: float
    p50: float
    p99: float


def find_wrk() -> str | None:
    return shutil.which("wrk")


def run_load(
    kind: str,
    *,
    port: int,
    data: Path,
    seconds: float,
    connections: int = CONNECTIONS,
    **settings: float | str,
) -> Load:
    """Sends requests of one kind (a name in load.lua) for so long; `data` is its Lua table.

    wrk counts in whole seconds. Settings reach the script as BENCH_…: `rate` paces the requests
    instead of sending the next when an answer came, `seed` repeats a sequence, `cycle` repeats its
    first so many requests.

    Raises BenchError where any answer was an error or none came: a benchmark of errors is none.
    """
    wrk = find_wrk()
    if wrk is None:
        raise BenchError(MISSING)
    named = {f"BENCH_{name.upper()}": str(value) for name, value in settings.items()}
    environment = {
        "BENCH_SEED": str(secrets.randbits(48)),
        **named,
        "BENCH_KIND": kind,
        "BENCH_DATA": str(data),
    }
    command = [
        wrk,
        "--threads=1",
        f"--connections={connections}",
        f"--duration={max(1, round(seconds))}s",
    ]
    ran = subprocess.run(
        [*command, "--timeout=20s", f"--script={SCRIPT}", f"http://127.0.0.1:{port}"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode or not ran.stdout.strip():
        raise BenchError(f"wrk failed: {ran.stderr.strip() or ran.stdout.strip()}")
    said = json.loads(ran.stdout.strip().splitlines()[-1])
    if said["errors"] or not said["requests"]:
        raise BenchError(f"{kind}: {said['errors']} errors in {said['requests']} answers")
    return Load(
        requests=said["requests"],
        per_second=said["requests"] / said["seconds"],
        p50=said["p50"],
        p99=said["p99"],
    )
