"""After a boot, systemd starts a unit that sells only if the other site's database follows.

The machine is a bare Debian 12 with the databases of both sites. In place of the web process, the
unit starts `sleep`.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.environment import PROJECT
from labs.installation.machine import Machine, can_boot, commands, running_machine
from labs.recovery.pages import ENGINES, packages
from labs.recovery.pages import PAGE as INSTALL
from labs.second_site.sites import PAGE

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
# Makes the database of the other site, from a backup, beside that of this site.
OTHER = """
pg_createcluster --port=5433 15 other
cp /etc/postgresql/15/main/server.crt /etc/postgresql/15/main/other-site.crt
cp -p /etc/postgresql/15/main/conf.d/second-site.conf /etc/postgresql/15/other/conf.d/
"""
RESTORE = """
cd /var/lib/postgresql/15 && rm -r other
runuser -u postgres -- pg_basebackup --pgdata=other --checkpoint=fast
"""
STANDBY = "runuser -u postgres -- touch /var/lib/postgresql/15/other/standby.signal"
IN_RECOVERY = """
runuser -u postgres -- touch /var/lib/postgresql/15/other/recovery.signal
cat >/etc/postgresql/15/other/conf.d/restore.conf <<'END'
restore_command = '/bin/false'
recovery_target = 'immediate'
END
"""
START_OTHER, STOP_OTHER = (f"systemctl {each} postgresql@15-other" for each in ("start", "stop"))


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


def ask_other(machine: Machine, question: str) -> str:
    psql = f'psql --port=5433 -Atc "SELECT {question}"'
    return machine.shell(f"cd / && runuser -u postgres -- {psql}").strip()


def test_a_site_sells_only_beside_a_standby(machine: Machine) -> None:
    machine.shell(commands(INSTALL, ENGINES, 1))
    machine.shell(PREPARE)
    machine.shell(commands(PAGE, "Set up", 0))
    parts = [commands(PAGE, "Set up", number) for number in (2, 3)]
    machine.shell("\n".join(["OTHER=127.0.0.1 PASSWORD=secret", *parts, OTHER, RESTORE, STANDBY]))
    assert starts(machine), "until the other site follows, this one sells and restarts"

    machine.shell(START_OTHER)
    assert machine.shell(commands(PAGE, "Set up", 6)).endswith("yes\n")
    machine.shell(STOP_OTHER)
    assert starts(machine), "a cut link stops no restart"

    machine.shell("rm /run/voucher-may-sell")  # as a boot does
    assert not starts(machine), "nobody knows whether the other site sells"
    assert "does not follow this one" in journal(machine)
    machine.shell(f"{RESTORE}{IN_RECOVERY}{START_OTHER}")
    assert ask_other(machine, "pg_is_in_recovery()") == "t"
    assert not starts(machine), "the other site restores its database from a backup"
    machine.shell("touch /etc/voucher/other-site-is-off")
    assert starts(machine), "a person has decided"

    machine.shell(f"rm /run/voucher-may-sell /etc/voucher/other-site-is-off; {STOP_OTHER}")
    machine.shell(
        f"rm /etc/postgresql/15/other/conf.d/restore.conf{RESTORE}{STANDBY}\n{START_OTHER}"
    )
    assert starts(machine), "the other site follows again"
    machine.shell("rm /run/voucher-may-sell")
    assert ask_other(machine, "pg_promote()") == "t"
    assert not starts(machine), "the other site sells"
