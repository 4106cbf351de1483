"""deploy/compose/upgrade, with a `docker` that only notes what it is asked."""

import os
import subprocess
from pathlib import Path

import pytest

from embedded.environment import PROJECT

# A process that has started passes the health check. /readyz, at port 8000, also asks for
# migrations and keys. A second passes with each call, so that nobody waits.
DOCKER = """#!/bin/sh
echo "$*" >>"$CALLS"
case "$*" in
  "compose config --services") echo bot ;;
  *" caddy validate "*) [ "$UNREADY" != proxy ] || exit 1 ;;
  *" $UNREADY python3 /app/deploy/probe.py 8000") exit 1 ;;
esac
"""
DATE = '#!/bin/sh\nwc -l <"$CALLS"\n'
SLEEP = "#!/bin/sh\n"
WEB = ["api", "api-2", "pages", "pages-2"]
OTHERS = ["worker", "imports", "beat", "metrics", "bot"]


def upgrade(folder: Path, *, unready: str = "none") -> tuple[int, str, list[str]]:
    """The exit code, what it said on stderr, and what `docker compose` was asked."""
    for name, script in (("docker", DOCKER), ("date", DATE), ("sleep", SLEEP)):
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    calls = folder / "calls"
    path = f"{folder}:{os.environ['PATH']}"
    ended = subprocess.run(
        [PROJECT / "deploy/compose/upgrade"],
        env={"PATH": path, "CALLS": str(calls), "UNREADY": unready},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    asked = [line.removeprefix("compose ") for line in calls.read_text().splitlines()]
    return ended.returncode, ended.stderr, asked


def replaced(asked: list[str]) -> list[str]:
    return [line.split()[-1] for line in asked if line.startswith("up ")]


def test_every_container_is_replaced_after_the_migrations(tmp_path: Path) -> None:
    code, said, asked = upgrade(tmp_path)
    assert (code, said) == (0, "")
    assert asked[1] == "run --rm --no-deps migrate"
    assert replaced(asked) == [*WEB, *OTHERS]


def test_a_proxy_that_cannot_read_its_configuration_stops_the_upgrade(tmp_path: Path) -> None:
    code, said, asked = upgrade(tmp_path, unready="proxy")
    assert (code, len(asked)) == (1, 1)
    assert "docker compose pull proxy" in said


@pytest.mark.parametrize("service", WEB)
def test_a_web_process_that_is_alive_but_not_ready_stops_the_upgrade(
    service: str, tmp_path: Path
) -> None:
    code, said, asked = upgrade(tmp_path, unready=service)
    assert code == 1
    assert said == f"{service} does not become ready: docker compose logs {service}\n"
    assert replaced(asked)[-1] == service
