"""Runs wrk, the load generator, with labs/bench/load.lua in a process of its own."""

import json
import os
import secrets
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

SCRIPT = Path(__file__).with_name("load.lua")
CONNECTIONS = 16
MISSING = "The load generator wrk is not installed: apt-get install wrk"


class BenchError(Exception):
    """The benchmark cannot continue. The message says why."""


@dataclass(frozen=True)
class Load:
    """The result of one run of wrk. `p50`, `p95` and `p99` are latencies in milliseconds."""

    requests: int
    per_second: float
    p50: float
    p95: float
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
    """Sends requests of one kind, a name in load.lua, for whole `seconds`.

    `data` is the Lua file with the keys and ids. Each keyword of `settings` becomes a variable
    BENCH_… of the script: `rate` sends requests at this rate per second, not one after the other;
    `seed` fixes the sequence of requests; `cycle` repeats the first so many requests.

    Raises BenchError when wrk fails, when a response was an error, or when there was no response.
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
    result = json.loads(ran.stdout.strip().splitlines()[-1])
    if result["errors"] or not result["requests"]:
        raise BenchError(f"{kind}: {result['errors']} errors in {result['requests']} responses")
    return Load(
        requests=result["requests"],
        per_second=result["requests"] / result["seconds"],
        p50=result["p50"],
        p95=result["p95"],
        p99=result["p99"],
    )
