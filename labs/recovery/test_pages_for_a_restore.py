"""A newcomer installs the service, backs it up, loses the database and restores it from the pages.

The commands are those of docs/operate, on a bare Debian 12 with systemd. The last part of the
purchase log of this host is lost, too; a copy has it.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labs.upgrade.machine import (
    Machine,
    can_boot,
    commands,
    copy_release,
    from_copies,
    running_machine,
    timed,
)

pytestmark = pytest.mark.skipif(not can_boot(), reason="needs root, mmdebstrap and namespaces")

HOST, VERSION = "api.example.com", "1.3.0"
ENGINES = "postgresql-15,pgbackrest,redis-server,nginx,openssl"
CERTIFICATE, KEY = "/etc/ssl/voucher/fullchain.pem", "/etc/ssl/voucher/privkey.pem"
LOG, COPIES = "/var/lib/voucher/purchases", "/etc/voucher/files"
# What the pages leave to the reader: addresses and passwords.
SECRETS = {
    "database_url": "postgresql://voucher_service:service-password@127.0.0.1:5432/voucher",
    "migration_database_url": "postgresql://voucher:owner-password@127.0.0.1:5432/voucher",
    "redis_url": "redis://127.0.0.1:6379/0",
    "email_url": "filemail:////var/lib/voucher/mail",
}


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A machine in a network of its own, where nothing of the service is installed."""
    copy_release(tmp_path / "release")
    folder = tmp_path / "machine"
    folder.mkdir()
    shown = {tmp_path / "release": f"/src/{VERSION}"}
    with running_machine(folder, shown, packages=ENGINES, alone=True) as machine:
        yield machine
        journal = ("journalctl", "--no-pager", "--lines=60")
        print(machine.run(*journal, check=False))  # noqa: T201


class Newcomer:
    """Copies the commands of the pages into a shell, and keeps what the shell keeps."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        manage = commands("install-systemd.md", "Run a command")
        self._shell = f"export CURL_CA_BUNDLE={CERTIFICATE}\n{manage.rpartition('manage ')[0]}"

    def run(self, script: str, *, check: bool = True) -> str:
        return self._machine.shell(f"exec 2>&1\n{self._shell}\n{script}", check=check)

    def install(self) -> None:
        roles = commands("database-roles.md", "Create the roles")
        self._machine.run("runuser", "-u", "postgres", "--", "psql", "--quiet", input_=roles)
        first, keys, last = (commands("install-systemd.md", "Steps", number) for number in range(3))
        self.run(from_copies(re.sub(r"^VERSION=.*$", f"VERSION={VERSION}", first, flags=re.M)))
        self.run(keys)
        for name, value in SECRETS.items():
            self._machine.write(f"/etc/voucher/secrets/{name}", value)
        self.run(f"VERSION={VERSION}\n{last}")

    def put_nginx_in_front(self) -> None:
        """docs/operate/proxies.md says it in words."""
        self.run(
            f"echo '127.0.0.1 {HOST}' >>/etc/hosts\n"
            f"mkdir -p {Path(KEY).parent}\n"
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
            f" -subj /CN={HOST} -addext subjectAltName=DNS:{HOST}"
            f" -keyout {KEY} -out {CERTIFICATE}\n"
            "cp /opt/voucher/current/deploy/nginx/voucher.conf /etc/nginx/conf.d/\n"
            "nginx -t && systemctl reload nginx"
        )

    def buy_a_first_code(self) -> str:
        self.run(commands("install-systemd.md", "Run a command", 1))
        script = commands("install-systemd.md", "Buy a first code")
        *_, bought, key = self.run(f"{script}\necho\necho $KEY").splitlines()
        self._shell += f"\nKEY={key}"
        return str(json.loads(bought)["data"]["codes"][0]["code"])

    def buy(self, key: str) -> Any:
        """The response to the last command of the page, with another idempotency key."""
        script = commands("install-systemd.md", "Buy a first code")
        curl = script[script.index("curl ") :]
        return json.loads(self.run(re.sub(r"(Idempotency-Key: )[\w-]+", rf"\g<1>{key}", curl)))

    def set_up_backups(self) -> None:
        first, settings, second = (
            commands("backup.md", "Backups that run by themselves", number) for number in range(3)
        )
        installed = re.sub(r"^apt-get install .*$", "", first, flags=re.M)  # without a network
        self.run(f"cd /opt/voucher/current\n{installed}")
        configuration = "/etc/postgresql/15/main/postgresql.conf"
        self._machine.run("tee", "--append", configuration, input_=settings)
        self.run(f"systemctl restart postgresql@15-main\n{second}")

    def restore(self, step: int, *, log: str = "") -> str:
        """The output of a step of docs/operate/restore.md, with these logs instead of all."""
        script = commands("restore.md", "What to do", step - 1)
        if log:
            script = re.sub(r"--log .*", f"--log {log}", script)
        copy = f"cp -r /srv/purchases/web1 {COPIES}/"
        return self.run(re.sub(r"^scp .*$", copy, script, flags=re.M), check=not log)


def test_a_newcomer_restores_the_database(machine: Machine) -> None:
    newcomer = Newcomer(machine)
    with timed("install, up to a service that is ready"):
        newcomer.install()
    newcomer.put_nginx_in_front()
    with timed("buy a first code"):
        kept = newcomer.buy_a_first_code()
    with timed("set up backups, and make the first"):
        newcomer.set_up_backups()
    with timed("drill"):
        assert "Newest of 1 orders" in newcomer.run(commands("backup.md", "The drill"))
    machine.shell("runuser -u postgres -- psql --command='SELECT pg_switch_wal()'")
    order = newcomer.buy("lost")["data"]

    machine.shell("systemctl kill --signal=KILL postgresql@15-main; sleep 1")
    machine.shell("rm -rf /var/lib/postgresql/15/main/*")
    with timed("restore, up to a service that sells"):
        newcomer.run(commands("restore.md", "What to look at"), check=False)
        newcomer.restore(1)
        machine.shell(
            f"mkdir -p /srv/purchases/web1; cp {LOG}/*.log /srv/purchases/web1/\n"
            f"sed -i '/{order['reference']}/,$d' {LOG}/*.log"
        )
        newcomer.restore(2)
        newcomer.restore(3)
        refused = newcomer.restore(4, log=f"{LOG}/*.log")
        assert "it did not stop then" in refused
        assert "hold_codes --all" in refused
        held = json.loads(newcomer.restore(4).splitlines()[-1])
        assert [each["reference"] for each in held["purchases"]] == [order["reference"]]
        assert '"findings":[]' in newcomer.restore(5)
        newcomer.restore(6)
        assert '"success"' not in newcomer.restore(7)

    assert newcomer.buy("lost")["error"]["code"] == "request_abandoned"
    assert newcomer.buy("more")["error"]["reason"] == "insufficient_stock"
    settle = commands("backup.md", "Restore", 1).splitlines()[0]
    settled = newcomer.run(settle.replace("manage.py", "manage").replace("ACCOUNT", "1"))
    assert '"settled":1' in settled
    assert '"findings":[]' in newcomer.restore(5)
    assert kept != order["codes"][0]["code"]
