"""The programs that read the files of `deploy/failover/` accept them, as they are shipped."""

import shutil
import subprocess
from pathlib import Path

import pytest

from embedded.environment import PROJECT

pytestmark = [pytest.mark.patroni, pytest.mark.systemd]

FILES = PROJECT / "deploy/failover"
UNITS = Path("/lib/systemd/system")  # of Debian's packages


def test_systemd_accepts_the_changes_of_debians_units(tmp_path: Path) -> None:
    names = ["patroni.service", "etcd.service"]
    for name in names:
        shutil.copy(UNITS / name, tmp_path)
        shutil.copytree(FILES / "systemd" / f"{name}.d", tmp_path / f"{name}.d")
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *(tmp_path / name for name in names)],
        env={"SYSTEMD_UNIT_PATH": f"{tmp_path}:", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert verified.stdout + verified.stderr == ""


def test_haproxy_accepts_its_file() -> None:
    haproxy = shutil.which("haproxy") or "/usr/sbin/haproxy"
    subprocess.run([haproxy, "-c", "-f", FILES / "haproxy.cfg"], capture_output=True, check=True)
