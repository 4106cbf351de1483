"""A newcomer installs the service, backs it up, loses the database and restores it from the pages.

The commands are those of docs/operate, on a bare Debian 12 with systemd. It has the packages that
the pages install, and no network. The last part of the purchase log of this host is lost, too; a
copy has it. Before that, another host takes its place and has only what the page keeps elsewhere.
Keys are rotated there. Both are also the host that keeps the copies of the purchase log.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from labs.installation.machine import (
    Machine,
    can_boot,
    commands,
    copy_release,
    running_machine,
    timed,
)
from labs.recovery.pages import BACKUPS, COPY, ENGINES, PAGE, packages
from operators.upkeep.backoffice import GAUGES
from tests.tasks.running import wait_until

pytestmark = pytest.mark.skipif(not can_boot(), reason="needs root, mmdebstrap and namespaces")

VERSION, REPOSITORY = "1.3.0", "file:///src/voucher.git"
# A locale that a bare Debian lacks.
GERMAN = """
echo 'de_DE.UTF-8 UTF-8' >/etc/locale.gen && locale-gen
pg_dropcluster --stop 15 main && pg_createcluster --locale=de_DE.UTF-8 15 main
systemctl daemon-reload && systemctl start postgresql@15-main
"""
# What the host that keeps the copies still has when the other one is lost.
KEEPER = "srv/purchases etc/ssh/ssh_host_ed25519_key etc/ssh/ssh_host_ed25519_key.pub"
AS_POSTGRES = "runuser -u postgres --"
KILL = "systemctl kill --signal=KILL postgresql@15-main; sleep 1"
SWITCH_WAL = f"{AS_POSTGRES} psql --command='SELECT pg_switch_wal()'"
PASSPHRASE = " -pbkdf2 -pass pass:on-paper"  # the page asks for it
LOG, COPIES = "/var/lib/voucher/purchases", "/etc/voucher/files"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for machines, with the files of the release."""
    folder = tmp_path_factory.mktemp("machines")
    copy_release(folder / "release")
    git = ("git", "-C", str(folder / "release"))
    author = ("-c", "user.name=A", "-c", "user.email=a@example.com")
    for command in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message=A"]):
        subprocess.run([*git, *author, *command], check=True)
    subprocess.run([*git, "tag", f"v{VERSION}"], check=True)
    return folder


@contextmanager
def new_machine(folder: Path, name: str) -> Iterator[Machine]:
    """A machine in a network of its own, where nothing of the service is installed."""
    (folder / name).mkdir()
    shown = {folder / "release": "/src/voucher.git"}
    with running_machine(folder / name, shown, packages=packages(), alone=True) as machine:
        yield machine
        journal = ("journalctl", "--no-pager", "--lines=60")
        print(machine.run(*journal, check=False))  # noqa: T201


class Newcomer:
    """Copies the commands of the pages into a shell, and keeps what the shell keeps."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.first = self.lost = ""  # the first code, and an order that the copies lack
        self._kept = dict[str, str]()  # what lies outside the host, as Base64
        self._shell = commands(PAGE, "Run a command").rpartition("manage ")[0]

    def run(self, script: str, *, check: bool = True) -> str:
        """The output of lines of a page. The machine has the packages already."""
        script = re.sub(r"^apt-get .*$", "", script, flags=re.M)
        return self.machine.shell(f"exec 2>&1\n{self._shell}\n{script}", check=check)

    def install(self) -> None:
        self.run(commands(PAGE, ENGINES, 1))
        first, keys, last = (commands(PAGE, "Steps", number) for number in range(3))
        for name, value in (("VERSION", VERSION), ("REPOSITORY", REPOSITORY)):
            first = re.sub(rf"^{name}=.*$", f"{name}={value}", first, flags=re.M)
        self.run(first)
        self.run(keys)
        self.run(f"VERSION={VERSION}\n{last}")

    def put_nginx_in_front(self) -> None:
        certificate, nginx = (commands(PAGE, "nginx in front", number) for number in range(2))
        self.run(certificate)
        self.run(nginx)
        self._shell += "\n".join(re.findall(r"^export .*$", certificate, re.M))

    def buy_a_first_code(self) -> None:
        self.run(commands(PAGE, "Run a command", 1))
        script = commands(PAGE, "Buy a first code")
        *_, bought, key = self.run(f"{script}\necho\necho $KEY").splitlines()
        self._shell += f"\nKEY={key}"
        self.first = json.loads(bought)["data"]["codes"][0]["code"]

    def buy(self, key: str) -> Any:
        """The response to the last command of the page, with another idempotency key."""
        script = commands(PAGE, "Buy a first code")
        curl = script[script.index("curl ") :]
        return json.loads(self.run(re.sub(r"(Idempotency-Key: )[\w-]+", rf"\g<1>{key}", curl)))

    def import_codes(self, *codes: str) -> None:
        self.machine.write(f"{COPIES}/codes.csv", "\n".join(["code", *codes, ""]), mode=0o644)
        self.run(f"manage import_codes 10 {COPIES}/codes.csv; rm {COPIES}/codes.csv")

    def set_up_backups(self) -> None:
        first, _, settings, second = (commands("backup.md", BACKUPS, each) for each in range(4))
        self.run(first)
        self.run(f"{settings}\n{SWITCH_WAL}")
        wait_until(lambda: self.gauge("voucher_archiving_fails_seconds"), "no repository yet")
        assert self.copies()["backup"] == {}
        self.run(second)
        assert self.gauge("voucher_archiving_fails_seconds") == 0
        assert len(self.copies()["backup"]) == 1

    def set_up_copies_of_the_log(self) -> None:
        making_a_key, keeping, sending = (commands("backup.md", COPY, each) for each in range(3))
        key = self.run(making_a_key).strip()
        self.run(re.sub(r"^KEY=.*$", f"KEY='{key}'", keeping, flags=re.M))
        self.run(sending)

    def move_to(self, machine: Machine) -> "Newcomer":
        """The newcomer on another machine, under the same name."""
        moved = Newcomer(machine)
        moved.first, moved.lost, moved._shell = self.first, self.lost, self._shell
        moved._kept = self._kept
        machine.shell("echo '127.0.0.1 api.example.com logs.example.com' >>/etc/hosts")
        return moved

    def keep(self) -> None:
        """Copies what lies outside the host: the encrypted files, and the repository."""
        make, check = (commands("lost-host.md", "What must lie outside", each) for each in range(2))
        self.run("touch /etc/voucher/other-site-is-off")
        self.run_with_passphrase(make)
        self.run("rm /etc/voucher/other-site-is-off")
        refused = self.run_with_passphrase(check, passphrase="wrong", check=False)
        assert "bad decrypt" in refused
        assert self.copies()["files"] == {}
        self.run_with_passphrase(check)
        assert [*self.copies()["files"]]
        repository = self.run("tar --create --directory=/ var/lib/pgbackrest | base64 --wrap=0")
        files = self.run("base64 --wrap=0 /root/host-files.enc")
        self._kept = {"files": files, "repository": repository}

    def run_with_passphrase(
        self, script: str, *, passphrase: str = "on-paper", check: bool = True
    ) -> str:
        """The output of a command that asks for the passphrase, whether once or twice."""
        typed = f"printf '{passphrase}\\n{passphrase}\\n'"
        return self.run(f"cd /root\n{typed} | setsid {script.strip()}", check=check)

    def lose(self) -> None:
        """Keeps the copies of the purchase log. The host that has them goes on."""
        self.run("systemctl start ship-purchases")
        self._kept["keeper"] = self.run(f"tar --create --directory=/ {KEEPER} | base64 --wrap=0")

    def take_over(self) -> None:
        """The commands of the page of a lost host, up to those for the lost purchases."""
        packages, files, release, restore = (
            commands("lost-host.md", "What to do", number) for number in range(4)
        )
        self.run(packages)
        for name, text in self._kept.items():
            self.machine.write(f"/root/{name}.b64", text)
        self.run("useradd --home-dir /srv/purchases purchases")
        self.run("base64 --decode /root/keeper.b64 | tar --extract --directory=/")
        self.run("systemctl restart ssh")
        self.run("base64 --decode /root/files.b64 >/root/host-files.enc")
        self.run(f"cd /root\n{files.replace(' -pbkdf2', PASSPHRASE)}")
        self.run(release)
        self.run("base64 --decode /root/repository.b64 | tar --extract --directory=/")
        self.run(restore)

    def go_on(self) -> dict[str, Any]:
        """The rest of the page. Returns what was held."""
        logs, hold, check, backup, start = (
            commands("lost-host.md", "What to do", number) for number in range(4, 9)
        )
        self.run(copied(logs))
        strict = hold.replace("--skip-missing --skip-damaged", "")
        strict = strict.partition("manage hold_codes --all")[0]
        assert "it did not stop then" in self.run(strict, check=False)
        held, rest = (line for line in self.run(hold).splitlines() if line.startswith("{"))
        assert json.loads(rest)["codes_held"] == 1
        assert '"findings":[]' in self.run(check)
        self.run(backup)
        assert '"status":"ok"' in self.run(start)
        found: dict[str, Any] = json.loads(held)
        return found

    def copies(self) -> dict[str, dict[str, str]]:
        """When each thing was last seen outside, by host."""
        shown = self.run(commands("lost-host.md", "What must lie outside", 2), check=False)
        copies = json.loads(shown[shown.index("{") :])["copies"]
        return {copy["copy"]: copy["last_seen"] for copy in copies}

    def gauge(self, name: str) -> int | None:
        """What the exporter would read, with the role of the service."""
        (sql,) = (str(one.read) for one in GAUGES if name in one.meanings)
        psql = (*AS_POSTGRES.split(), "psql", "--quiet", "--tuples-only", "voucher")
        read = self.machine.run(*psql, input_=f"SET ROLE voucher_service;{sql};").strip()
        return round(float(read)) if read else None

    def restore(self, step: int, *, log: str = "") -> str:
        """The output of a step of docs/operate/restore.md, with these logs instead of all."""
        script = commands("restore.md", "What to do", step - 1)
        if log:
            script = re.sub(r"--log .*", f"--log {log}", script)
        return self.run(copied(script), check=not log)


def copied(script: str) -> str:
    """The commands, with the host of the copies on this machine."""
    return re.sub(r"^scp .*$", f"cp -r /srv/purchases/web1 {COPIES}/", script, flags=re.M)


def test_the_page_creates_the_roles_of_the_page_of_roles() -> None:
    roles = commands("database-roles.md", "Create the roles")
    for word in ("owner", "service"):
        roles = roles.replace(f"{word}-password", f"${word.upper()}")
    assert roles in commands(PAGE, ENGINES, 1)


@pytest.fixture(scope="module")
def machine(folder: Path) -> Iterator[Machine]:
    with new_machine(folder, "first") as machine:
        yield machine


@pytest.fixture(scope="module")
def newcomer(machine: Machine) -> Newcomer:
    """A newcomer who has a backup and copies, and has sold one code before them and one after."""
    newcomer = Newcomer(machine)
    machine.shell(GERMAN)
    machine.shell("echo '127.0.0.1 logs.example.com' >>/etc/hosts")
    with timed("install, up to a service that is ready"):
        newcomer.install()
    with timed("put nginx in front, and buy a first code"):
        newcomer.put_nginx_in_front()
        newcomer.buy_a_first_code()
    newcomer.import_codes("MORE-1")
    with timed("set up backups, and make the first"):
        newcomer.set_up_backups()
    with timed("set up copies of the purchase log"):
        newcomer.set_up_copies_of_the_log()
    newcomer.keep()
    newcomer.lost = newcomer.buy("after the copies")["data"]["reference"]
    return newcomer


@pytest.fixture(scope="module")
def successor(newcomer: Newcomer, folder: Path) -> Iterator[Newcomer]:
    """The newcomer on another machine, which has only what lies outside the first one."""
    newcomer.lose()
    with new_machine(folder, "second") as machine:
        successor = newcomer.move_to(machine)
        with timed("replace a lost host, up to a service that sells"):
            successor.take_over()
            held = successor.go_on()
        assert [each["reference"] for each in held["purchases"]] == [successor.lost]
        yield successor


def test_a_newcomer_replaces_a_lost_host(successor: Newcomer) -> None:
    assert "other-site-is-off" not in successor.run("ls /etc/voucher")
    assert successor.buy("after the copies")["error"]["code"] == "request_abandoned"
    assert successor.buy("none")["error"]["reason"] == "insufficient_stock"
    successor.import_codes("NEW-1")
    bought = successor.buy("more")["data"]
    assert bought["codes"][0]["code"] == "NEW-1"
    for _ in range(2):  # the first start may join a copy that began before the purchase
        successor.run("systemctl start ship-purchases")
    copy = successor.run("cat /srv/purchases/web1/*.log")
    orders = (bought["reference"], successor.lost)
    assert [reference for reference in orders if reference not in copy] == []
    assert successor.run(f"diff -r {LOG} /srv/purchases/web1 | grep '^<' || echo same") == "same\n"
    assert '"findings":[]' in successor.restore(5)


def test_a_newcomer_rotates_the_keys(successor: Newcomer) -> None:
    newcomer, machine = successor, successor.machine
    newcomer.import_codes("NEW-2")
    secrets = "/etc/voucher/secrets"
    before = machine.run("cat", f"{secrets}/django_secret_key")

    with timed("rotate the secret key"):
        for step in range(3):
            newcomer.run(commands("rotate-keys.md", "Secret key", step))
    assert machine.run("cat", f"{secrets}/django_secret_key") != before

    with timed("rotate the encryption key"):
        newcomer.run(commands("rotate-keys.md", "Encryption keys", 0))
        assert '"keys":true' in newcomer.run(commands("rotate-keys.md", "Encryption keys", 1))
        machine.shell(f"cp {secrets}/code_encryption_keys /root/right")
        machine.shell(f"echo 2:broken >{secrets}/code_encryption_keys")
        refused = newcomer.run(commands(PAGE, "Stop and restart"), check=False)
        assert "CODE_ENCRYPTION_KEYS" in refused
        assert newcomer.buy("while a value is wrong")["success"], "nothing was restarted"
        machine.shell(f"cp /root/right {secrets}/code_encryption_keys")
        newcomer.run(commands("rotate-keys.md", "Encryption keys", 2))
        sealed = newcomer.run(commands("rotate-keys.md", "Encryption keys", 3))
        assert '"keys_in_use":[2]' in sealed
        assert "full backup" in newcomer.run(commands("rotate-keys.md", "Encryption keys", 4))
        newcomer.run(commands("rotate-keys.md", "Encryption keys", 5))
    assert machine.run("cat", f"{secrets}/code_encryption_keys").startswith("2:")


def test_everything_works_with_encrypted_secrets(successor: Newcomer) -> None:
    newcomer, machine = successor, successor.machine
    secrets, encrypted = "/etc/voucher/secrets", "/etc/voucher/encrypted"
    before = machine.shell(f"cat {secrets}/*")
    machine.shell(f"echo 123456:ABC-def_123 >{secrets}/telegram_bot_token")
    newcomer.run(commands(PAGE, "Encrypted secrets"))
    assert machine.run("ls", secrets) == "ship_purchases_key.pub\n", "no unit reads it"

    replay = newcomer.buy("7a0a2f0e-3c55-4a5e-9d6c-0f6f3f1b2c9d")
    assert replay["data"]["codes"][0]["code"] == newcomer.first
    assert "ledger_root" in newcomer.run(commands("verify-ledger.md", "Keep the roots"))
    assert '"findings":[]' in newcomer.run("manage reconcile --decrypt")
    newcomer.run("systemctl start ship-purchases voucher-bot")
    assert newcomer.run("systemctl show --property=ConditionResult voucher-bot").endswith("yes\n")
    newcomer.run("systemctl stop voucher-bot")
    assert "Reconciled" in newcomer.run(commands("backup.md", "The drill"))
    for number in range(2):
        newcomer.run_with_passphrase(commands("lost-host.md", "What must lie outside", number))

    newcomer.run(commands("rotate-keys.md", "Before and after each step", 0))
    machine.shell(f"rm {secrets}/telegram_bot_token")
    assert machine.shell(f"cat {secrets}/*") == before
    newcomer.run(commands("rotate-keys.md", "Secret key", 0))
    newcomer.run(commands("rotate-keys.md", "Before and after each step", 1))
    assert "django_secret_key_fallbacks" in machine.run("ls", encrypted)
    newcomer.run(commands(PAGE, "Stop and restart"))
    assert newcomer.buy("7a0a2f0e-3c55-4a5e-9d6c-0f6f3f1b2c9d")["success"]


def test_a_newcomer_restores_the_database(newcomer: Newcomer) -> None:
    machine = newcomer.machine
    newcomer.import_codes("MORE-2", "MORE-3")
    newcomer.buy("in the next backup")
    machine.shell("systemctl start database-backup@incr")
    newcomer.buy("in the archive only")
    machine.shell(SWITCH_WAL)
    machine.shell(f"{AS_POSTGRES} pgbackrest --stanza=voucher check")  # waits for the archive
    with timed("drill"):
        assert "Newest of 4 orders" in newcomer.run(commands("backup.md", "The drill"))
    machine.shell("! grep -rq catalogue_product /var/lib/pgbackrest")  # it is encrypted
    machine.shell(SWITCH_WAL)
    order = newcomer.buy("lost with the data")["data"]

    machine.shell(KILL)
    machine.shell("rm -rf /var/lib/postgresql/15/main/*")
    with timed("restore, up to a service that sells"):
        newcomer.run(commands("restore.md", "What to look at"), check=False)
        newcomer.restore(1)
        machine.shell(
            "systemctl start ship-purchases; systemctl stop ship-purchases.timer\n"
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

    assert newcomer.buy("lost with the data")["error"]["code"] == "request_abandoned"
    assert newcomer.buy("more")["error"]["reason"] == "insufficient_stock"
    settle = commands("backup.md", "Restore", 1).splitlines()[0]
    settled = newcomer.run(settle.replace("manage.py", "manage").replace("ACCOUNT", "1"))
    assert '"settled":1' in settled
    assert '"findings":[]' in newcomer.restore(5)
    assert newcomer.first != order["codes"][0]["code"]
