"""After a boot, systemd starts a unit that sells only if the other site's database is a standby.

The machine is a bare Debian 12. Its own PostgreSQL is that of the other site. In place of the web
process, the unit starts `sleep`.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.environment import PROJECT
from labs.installation.machine import Machine, can_boot, commands, running_machine
from labs.recovery.pages import ENGINES, packages
from labs.recovery.pages import PAGE as INSTALL
from labs.second_site.sites import PAGE
from tests.tasks.running import wait_until

pytestmark = pytest.mark.skipif(not can_boot(), reason="needs root, mmdebstrap and namespaces")

UNIT = "voucher-api@8001"
SLEEP = "[Service]\nExecStart=\nExecStart=sleep infinity\nExecStartPost=\n"
PREPARE = f"""
cd /opt/voucher/current/deploy/systemd
install -D -m 644 sysusers.conf /etc/sysusers.d/voucher.conf && systemd-sysusers
install -m 600 voucher.env /etc/voucher/voucher.env
touch /etc/voucher/secrets/django_secret_key /etc/voucher/secrets/code_encryption_keys
cp -r voucher-.service.d voucher-api@.service /etc/systemd/system/
install -D -m 644 /dev/stdin /etc/systemd/system/{UNIT}.service.d/sleep.conf <<'END'
{SLEEP}END
"""
STANDBY = """
cp /etc/postgresql/15/main/server.crt /etc/postgresql/15/main/other-site.crt
runuser -u postgres -- touch /var/lib/postgresql/15/main/standby.signal
"""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    shown = {PROJECT / "deploy": "/opt/voucher/current/deploy"}
    with running_machine(tmp_path, shown, packages=packages(), alone=True) as machine:
        yield machine


def starts(machine: Machine) -> bool:
    machine.run("systemctl", "restart", UNIT)
    return machine.run("systemctl", "is-active", UNIT, check=False) == "active\n"


def journal(machine: Machine) -> str:
    return machine.run("journalctl", "--no-pager", f"--unit={UNIT}")


def test_a_site_sells_only_beside_a_standby(machine: Machine) -> None:
    machine.shell(commands(INSTALL, ENGINES, 1))
    machine.shell(PREPARE)
    machine.shell(commands(PAGE, "Set up", 0))
    machine.shell(f"OTHER=127.0.0.1 PASSWORD=secret\n{commands(PAGE, 'Set up', 1)}{STANDBY}")

    assert not starts(machine), "nobody knows: its certificate is not the one of the other site"
    assert "certificate verify failed" in journal(machine)
    machine.shell("rm /var/lib/postgresql/15/main/standby.signal")
    machine.shell("systemctl restart postgresql@15-main")
    assert not starts(machine), "the other site sells"
    assert "does not say that it is a standby" in journal(machine)

    machine.shell(f"{STANDBY}systemctl restart postgresql@15-main")
    wait_until(lambda: starts(machine), "a start beside a standby")
    machine.shell("systemctl stop postgresql@15-main")
    assert starts(machine), "a cut link stops no restart"

    machine.shell("rm /run/voucher-may-sell")  # as a boot does
    assert not starts(machine)
    machine.shell("touch /etc/voucher/other-site-is-off")
    assert starts(machine), "a person has decided"
