"""A newcomer sets up several hosts from the pages, and sells through their proxy.

The commands are those of docs/operate, on bare Debian 12 with systemd: a web host, a worker host, a
proxy, and three hosts with queues and databases. `apt-get` starts services that the machines have.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from labs.installation.machine import (
    Machine,
    can_boot,
    commands,
    copy_release,
    from_copies,
    running_machine,
    timed,
)
from tests.tasks.running import wait_until

pytestmark = [
    pytest.mark.skipif(not can_boot(), reason="needs root, mmdebstrap and namespaces"),
    # Six machines need both processors.
    pytest.mark.skipif("SEVERAL_HOSTS" not in os.environ, reason="runs alone: SEVERAL_HOSTS=1"),
]

PAGE = "several-hosts.md"
NAME, VERSION = "api.example.com", "1.3.0"
# Packages, and the services that Debian starts when it installs them.
SERVICES = {
    "postgresql-15": "postgresql", "patroni": "patroni", "etcd-server": "etcd",
    "redis-server": "redis-server", "redis-sentinel": "redis-sentinel",
    "rabbitmq-server": "rabbitmq-server", "haproxy": "haproxy",
}  # fmt: skip
PACKAGES = f"{','.join(SERVICES)},etcd-client,openssl,procps"
ENGINES = ("queue1", "queue2", "queue3")  # with a database each
ADDRESSES = {
    "queue1": ("10.0.0.21", "10.0.0.1"),
    "queue2": ("10.0.0.22", "10.0.0.2"),
    "queue3": ("10.0.0.23", "10.0.0.3"),
    "web1": ("10.0.0.31",),
    "worker1": ("10.0.0.41",),
    "proxy1": ("10.0.0.11",),
}
HOSTS = "".join(f"{all_[0]} {name}\n" for name, all_ in ADDRESSES.items())
PROXY = ADDRESSES["proxy1"][0]
FOLDER = f"/opt/voucher/releases/{VERSION}"
# What the pages leave to the reader: addresses and passwords.
TLS = "sslmode=verify-ca&sslrootcert=/etc/ssl/certs/voucher-database.crt"
SECRETS = {
    "database_url": f"postgresql://voucher_service:service-password@127.0.0.1:5432/voucher?{TLS}",
    "migration_database_url": f"postgresql://voucher:owner-password@127.0.0.1:5432/voucher?{TLS}",
    "redis_url": "redis://:another-one@127.0.0.1:6379/0",
    "celery_broker_url": "amqp://voucher:another-one@127.0.0.1:5672//",
    "email_url": "filemail:////var/lib/voucher/mail",
}
PASSWORDS = {"voucher": "owner-password", "voucher_service": "service-password"}
KEYS = ("django_secret_key", "code_encryption_keys")
# What step 2 of failover.md says in words. The machine has a cluster already.
DROP = "pg_dropcluster 15 main"
CHANGES = """
chown postgres /etc/patroni/server.key
sed -i '/^ETCD_INITIAL_CLUSTER=/!s/db1/db{0}/; /^ETCD_INITIAL_CLUSTER=/!s/10.0.0.1:/10.0.0.{0}:/' \
  /etc/default/etcd
sed -i 's/db1/db{0}/; s/10.0.0.1:/10.0.0.{0}:/' /etc/patroni_env.conf
"""
CERTIFICATE = f"""
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
  -subj /CN={NAME} -addext subjectAltName=DNS:{NAME} -keyout privkey.pem -out fullchain.pem
"""
# The catalogue of the page gets a top-up product, too.
TOPUP = """{"topup_products": [{"id": 20, "name": "Gems", "currency": "USD", "price": "5.00",
                     "active": true, "published": true, "available_stock": 9}],"""


class Host:
    """A machine with a name and an address, and the shell of the newcomer there."""

    def __init__(self, name: str, machine: Machine) -> None:
        self.name, self.machine = name, machine
        machine.write("/etc/hosts", f"127.0.0.1 localhost\n{HOSTS}{PROXY} {NAME}\n", mode=0o644)
        machine.run("hostname", name)

    def join(self, lan: Machine) -> None:
        """Connects the machine with the bridge `lan` of another one, or of itself."""
        link = f"to-{self.name}"
        bridge = ("nsenter", f"--target={lan.pid}", "--net", "ip")
        own = ("nsenter", f"--target={self.machine.pid}", "--net", "ip")
        for words in (
            (*bridge, "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns",
             str(self.machine.pid)),
            (*bridge, "link", "set", link, "master", "lan", "up"),
            *((*own, "address", "add", f"{each}/24", "dev", "eth0")
              for each in ADDRESSES[self.name]),
            (*own, "link", "set", "eth0", "up"),
        ):  # fmt: skip
            subprocess.run(words, check=True)

    def run(self, script: str, *, check: bool = True) -> str:
        """The output of lines of a page. `apt-get install` starts what Debian would start."""
        script = re.sub(r"^apt-get install .*$", _start_services, script, flags=re.M)
        return self.machine.shell(f"exec 2>&1\n{script}", check=check)

    def says(self, script: str, wanted: str) -> bool:
        return wanted in self.run(script, check=False)


def _start_services(install: re.Match[str]) -> str:
    services = [service for package, service in SERVICES.items() if package in install[0].split()]
    return f"systemctl enable --quiet --now {' '.join(services)}" if services else ""


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[dict[str, Host]]:
    copy_release(tmp_path / "release")
    shown = {tmp_path / "release": f"/src/{VERSION}"}
    found: dict[str, Host] = {}
    with ExitStack() as stack:
        for name in ADDRESSES:
            folder = tmp_path / name
            folder.mkdir()
            machine = stack.enter_context(
                running_machine(
                    folder, shown, packages=PACKAGES, image="machine-of-several",
                    disabled=tuple(SERVICES.values()), alone=True,
                )
            )  # fmt: skip
            found[name] = Host(name, machine)
        lan = found["queue1"].machine
        for words in (("link", "add", "lan", "type", "bridge"), ("link", "set", "lan", "up")):
            subprocess.run(["nsenter", f"--target={lan.pid}", "--net", "ip", *words], check=True)
        for host in found.values():
            host.join(lan)
        yield found
        for host in found.values():
            journal = ("journalctl", "--no-pager", "--lines=40")
            print(host.name, host.machine.run(*journal, check=False))  # noqa: T201


def release(page: str, heading: str, number: int = 0) -> str:
    """The commands of a block, for this version."""
    found = commands(page, heading, number)
    return from_copies(re.sub(r"^VERSION=.*$", f"VERSION={VERSION}", found, flags=re.M))


def set_up_queues(hosts: Sequence[Host]) -> None:
    def set_up(host: Host) -> None:
        script = commands(PAGE, "Install").replace("NAME=queue1", f"NAME={host.name}")
        host.run(f"cd /src/{VERSION}\n{script}")

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(set_up, hosts))
    members, sentinel = commands(PAGE, "Install", 1).splitlines()
    members += " --formatter=json"

    def are_three() -> bool:
        return len(json.loads(hosts[0].run(members))["running_nodes"]) == len(hosts)

    wait_until(lambda: hosts[0].says(sentinel, "OK 3 usable"), "Sentinel", 60)
    wait_until(are_three, "RabbitMQ", 60)


def set_up_databases(hosts: Sequence[Host]) -> str:
    """Returns the certificate of the authority."""
    leader, *others = hosts
    leader.run(f"cd /root\n{commands('failover.md', 'Install')}")
    script = release("failover.md", "Install", 1)
    for number, host in enumerate(hosts, start=1):
        host.run(f"{DROP}\n{script}")
        for name in ("ca.crt", f"db{number}.crt", f"db{number}.key"):
            copy = f"/etc/patroni/{name.replace(f'db{number}', 'server')}"
            text = leader.machine.run("cat", f"/root/{name}")
            host.machine.write(copy, text, mode=0o600 if "key" in name else 0o644)
        host.run(CHANGES.format(number))
    etcd, patroni = commands("failover.md", "Install", 2).split("\n", 1)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda host: host.run(etcd), hosts))
    wait_until(lambda: leader.says(patroni, "Leader"), "a leader", 60)
    for host in others:
        host.run(patroni)
    wait_until(
        lambda: all(leader.says(patroni, role) for role in ("Sync Standby", "Replica")),
        "the standbys", 60,
    )  # fmt: skip
    roles = commands("failover.md", "Install", 3)
    for role in ("voucher_service", "voucher"):  # without a terminal
        create = f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORDS[role]}'"
        roles = roles.replace(f"createuser --pwprompt {role}\n", f'psql -c "{create}"\n')
    leader.run(roles)
    return leader.machine.run("cat", "/root/ca.crt")


def prepare_service(host: Host) -> None:
    """The steps of a single host up to the secrets."""
    host.run(release("install-systemd.md", "Steps"))


def set_up_service(host: Host, number: int, *, keys: Mapping[str, str], authority: str) -> None:
    """A web host or a worker host: its block has this number."""
    if not keys:
        host.run(commands("install-systemd.md", "Steps", 1))
    for name, value in {**SECRETS, **keys}.items():
        host.machine.write(f"/etc/voucher/secrets/{name}", value)
    host.machine.write("/root/ca.crt", authority)
    host.run(f"umask 077\nVERSION={VERSION}\n{commands(PAGE, 'Install', 2)}")
    host.run(f"cd {FOLDER}\n{commands(PAGE, 'Install', number)}")


def set_up_proxy(host: Host) -> None:
    """docs/operate/proxies.md says it in words."""
    host.run(
        "systemctl enable --quiet haproxy\n"
        f"cp /src/{VERSION}/deploy/haproxy/haproxy.cfg /etc/haproxy/haproxy.cfg\n"
        f"{CERTIFICATE}"
        "cat fullchain.pem privkey.pem >/etc/haproxy/voucher.pem\n"
        "chmod 600 /etc/haproxy/voucher.pem\n"
        "haproxy -c -f /etc/haproxy/haproxy.cfg"
    )
    host.run(commands(PAGE, "Install", 5))


class Newcomer:
    """Sells from the shell of the worker host, as the page of systemd says."""

    def __init__(self, host: Host, certificate: str) -> None:
        self._host = host
        host.machine.write("/root/fullchain.pem", certificate)
        manage = commands("install-systemd.md", "Run a command")
        self._shell = (
            "export CURL_CA_BUNDLE=/root/fullchain.pem\n" + manage.rpartition("manage ")[0]
        )
        self._curl = ""

    def run(self, script: str) -> str:
        return self._host.run(f"{self._shell}\n{script}")

    def ask(self, script: str) -> Any:
        return json.loads(self.run(script).splitlines()[-1])

    def buy_a_first_code(self) -> Any:
        self.run(commands("install-systemd.md", "Run a command", 1))
        script = commands("install-systemd.md", "Buy a first code")
        script = script.replace('{"categories"', f'{TOPUP}\n "categories"')
        self._curl = script[script.index("curl ") :]
        *_, bought, key = self.run(f"{script}\necho\necho $KEY").splitlines()
        self._shell += f"\nKEY={key}"
        return json.loads(bought)

    def buy_a_topup(self) -> Any:
        body = '{"delivery_type": "top_up", "system_product_id": 20, "player_id": "0077"}'
        return self.ask(
            re.sub(r"(Idempotency-Key: )[\w-]+", r"\1topup", self._curl).replace(
                '{"product_id": 10, "quantity": 1}', body
            )
        )

    def read(self, reference: str) -> Any:
        words, _, _ = self._curl.partition(" --data")
        words = words.replace("/orders", f"/orders/{reference}").rstrip("\\\n ")
        return self.ask(words)["data"]


def reject_a_topup(newcomer: Newcomer) -> None:
    """Waits for the worker's refund."""
    topup = newcomer.buy_a_topup()["data"]
    assert topup["status"] == "pending"
    newcomer.run("manage createsuperuser --no-input --username=desk --email=desk@example.com")
    (waiting,) = newcomer.ask("manage fulfilment list")["fulfilments"]
    reject = f"manage fulfilment reject {topup['reference']} --operator=desk"
    newcomer.run(f"{reject} --version={waiting['version']}")
    wait_until(lambda: newcomer.read(topup["reference"])["refunded"], "the refund", 60)


def test_a_newcomer_sets_up_several_hosts(hosts: dict[str, Host]) -> None:
    engines = [hosts[name] for name in ENGINES]
    web, worker, proxy = (hosts[name] for name in ("web1", "worker1", "proxy1"))
    with ThreadPoolExecutor(2) as pool:
        prepared = [pool.submit(prepare_service, host) for host in (web, worker)]
        with timed("database hosts"):
            authority = set_up_databases(engines)
        with timed("queue hosts"):
            set_up_queues(engines)
        with timed("packages of the web host and the worker host, from then on"):
            for each in prepared:
                each.result()
    with timed("web host, from the secrets to a service that is ready"):
        set_up_service(web, 3, keys={}, authority=authority)
    keys = {each: web.machine.run("cat", f"/etc/voucher/secrets/{each}") for each in KEYS}
    with timed("worker host, from the secrets"):
        set_up_service(worker, 4, keys=keys, authority=authority)
    with timed("proxy"):
        set_up_proxy(proxy)

    newcomer = Newcomer(worker, proxy.machine.run("cat", "/fullchain.pem"))
    with timed("first code"):
        first = newcomer.buy_a_first_code()
    assert first["data"]["codes"]

    with timed("top-up, rejected and refunded"):
        reject_a_topup(newcomer)

    queue = engines[0].run("rabbitmqctl --quiet list_queues name type durable").splitlines()
    assert "celery\tquorum\ttrue" in queue
    units = "systemctl is-active voucher-api@8001 voucher-pages@8002 voucher-worker voucher-beat"
    assert web.run(units, check=False).split() == ["active", "active", "inactive", "inactive"]
    assert worker.run(units, check=False).split() == ["inactive", "inactive", "active", "active"]
    assert '"findings":[]' in newcomer.run("manage reconcile")
    web.run(f"{FOLDER}/deploy/systemd/switch")  # leaves out what the host does not run
    assert web.run(units, check=False).split() == ["active", "active", "inactive", "inactive"]
