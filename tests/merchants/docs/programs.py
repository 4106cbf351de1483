"""Runs the example programs of the documentation, and compiles those that need it."""

import atexit
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from merchants.docs.docs_content import (
    SNIPPETS,
)
from tests.factories import (
    Merchant,
)
from tests.live import LiveServer
from tests.neighbour import ours
from tests.sdk import npm, typescript
from wallets.models import EntryKind, LedgerEntry

# Only what Node removes itself, so `node buy.mts` runs the program, too.
STRICT = ["--strict", "--target", "es2022", "--module", "nodenext", "--erasableSyntaxOnly"]
STRICT += ["--typeRoots", str(typescript.LIBRARY / "node_modules" / "@types"), "--types", "node"]
SECOND = 0.05  # of the programs
SHORT_SECOND = 0.01  # where a program gives up; the shell counts whole seconds


def command_in(language: str, name: str) -> list[str]:
    """The command of the program of this name in one language."""
    return {
        "curl": ["sh", f"{name}.sh"],
        "python": [sys.executable, f"{name}.py"],
        "typescript": ["node", f"{name}.mts"],
        "php": ["php", f"{name}.php"],
        "go": ["go", f"{name}.go"],
        "java": ["java", f"{name.capitalize()}.java"],
    }[language]


@cache
def compiled(*program: str) -> list[str]:
    """The command of a program. Go, Java and TypeScript are compiled once: the documented commands
    compile each time."""
    compiler, file = program[0], SNIPPETS / program[-1]
    if compiler not in ("go", "java", "node"):
        return list(program)
    folder = Path(tempfile.mkdtemp(prefix="voucher-program-"))
    atexit.register(shutil.rmtree, folder)
    if compiler == "node":
        npm.install(typescript.LIBRARY)
        command = [str(typescript.LIBRARY / "node_modules" / ".bin" / "tsc"), *STRICT]
        command += ["--outDir", str(folder), str(file)]
        run_it = ["node", str(folder / f"{file.stem}.mjs")]
    elif compiler == "go":
        built = folder / file.stem
        command = ["go", "build", "-o", str(built), str(file)]
        run_it = [str(built)]
    else:
        command = ["javac", "-d", str(folder), str(file)]
        run_it = ["java", "-XX:TieredStopAtLevel=1", "-cp", str(folder), file.stem]
    cache_of_go = {"GOCACHE": str(folder / "cache"), "GOFLAGS": "-mod=mod", "GO111MODULE": "off"}
    subprocess.run(command, check=True, env={**os.environ, **cache_of_go})
    return run_it


@dataclass(frozen=True)
class Run:
    """The exit code and the output of a program."""

    code: int
    out: str
    err: str

    @property
    def printed(self) -> Any:
        """The printed order or error, without the envelope that the curl program prints."""
        value = json.loads(self.out, parse_float=Decimal)
        return value.get("data") or value.get("error") or value


def run(
    program: list[str],
    *arguments: str,
    base_url: str,
    key: str,
    typed: str | None = None,
    second: float = SECOND,
    full: bool = False,
) -> Run:
    """Runs a program of the docs pages. `typed` is its standard input, and its standard output a
    file on a full disk if `full`."""
    command = [*compiled(*program), *arguments]
    if full:
        command = ["sh", "-c", 'exec "$@" >/dev/full', "sh", *command]
    environment = {
        "PATH": os.environ["PATH"],
        "VOUCHER_BASE_URL": base_url,
        "VOUCHER_API_KEY": key,
        "VOUCHER_SECOND": str(second),
    }
    done = subprocess.run(
        command,
        cwd=SNIPPETS,
        env=environment,
        input=typed,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert not key or key not in done.stdout + done.stderr
    return Run(done.returncode, done.stdout, done.stderr)


def debits() -> list[str | None]:
    purchases = ours(LedgerEntry).filter(kind=EntryKind.PURCHASE).order_by("pk")
    return list(purchases.values_list("order_reference", flat=True))


def documented_commands(name: str) -> list[str]:
    """The commands at the head of a program: the first lines that are indented."""
    commands: list[str] = []
    for line in (SNIPPETS / name).read_text().splitlines():
        if found := re.match(r"(?:#|//)?(?:\t| {3,})(\S.*)", line):
            commands.append(found[1])
        elif commands:
            break
    return [command for command in commands if not command.startswith("npm install")]


@contextmanager
def waiting_for(
    program: list[str], *references: str, live: LiveServer, merchant: Merchant, **variables: str
) -> Iterator["subprocess.Popen[str]"]:
    """The running waiting program."""
    environment = {
        "PATH": os.environ["PATH"],
        "VOUCHER_BASE_URL": f"{live.base_url}/api/v1",
        "VOUCHER_API_KEY": merchant.key,
        "VOUCHER_PAUSE_SECONDS": "0.1",
        **variables,
    }
    with subprocess.Popen(
        [*compiled(*program), *references],
        cwd=SNIPPETS,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def wait_until(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)
