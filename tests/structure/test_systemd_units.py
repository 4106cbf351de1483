"""The units of `deploy/systemd` are valid, sandboxed, and start what `make run` starts.

systemd's own tools read the units; labs/upgrade/test_systemd.py runs them.
"""

import os
import re
import shlex
import shutil
import subprocess
from importlib import import_module
from pathlib import Path

import pytest

from embedded.commands import services
from embedded.environment import PROJECT

pytestmark = pytest.mark.systemd

UNITS = PROJECT / "deploy" / "systemd"
SERVICES = sorted(path.name for path in UNITS.glob("*.service"))
BIN = "/opt/voucher/current/.venv/bin/"
OTHERS = sorted(path for path in (PROJECT / "deploy").rglob("*.service") if path.parent != UNITS)
# 0 is perfect and 10 is bare. The network and Unix sockets, which every process needs, make 0.9.
# Backups also write where the operator wants them, and share /tmp with commands of the operator.
MOST_EXPOSED = 1.2
MOST_EXPOSED_OTHER = 2.0
PORTS = {"api": (8001, 8003), "pages": (8002, 8004)}


def commands_of(unit: str) -> list[list[str]]:
    """The words of each ExecStart, without the folder of the program."""
    text = (UNITS / unit).read_text().replace("\\\n", " ")
    found = [shlex.split(line) for line in re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)]
    assert all(words[0].startswith(BIN) for words in found)
    return [[words[0].removeprefix(BIN), *words[1:]] for words in found]


def of_make_run(name: str, *, port: int = 0) -> list[str]:
    """The command of `make run`, without the interpreter and its options."""
    (service,) = (
        service
        for service in services(host="127.0.0.1", port=port, var=Path("/var/lib/voucher"))
        if service.name == name
    )
    words = [str(word) for word in service.command]
    return words[words.index("-m") + 1 :] if "-m" in words else ["django-admin", *words[3:]]


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """A copy of the units whose programs exist, under another path."""
    copy = tmp_path / "units"
    shutil.copytree(UNITS, copy)
    programs = tmp_path / "opt" / "current" / ".venv" / "bin"
    programs.mkdir(parents=True)
    releases = tmp_path / "opt" / "releases"
    releases.mkdir()
    (releases / "i").symlink_to("../current")  # the instance that systemd verifies
    for name in ("granian", "celery", "python", "django-admin"):
        (programs / name).symlink_to("/bin/true")
    for path in (path for path in copy.rglob("*") if path.is_file()):
        path.write_text(path.read_text().replace("/opt/voucher", str(tmp_path / "opt")))
    return copy


def analyze(units: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    program = shutil.which("systemd-analyze")
    assert program, "install systemd"
    return subprocess.run(
        [program, *words],
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{units}:"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_systemd_accepts_the_units(units: Path) -> None:
    checked = analyze(
        units, "verify", "--man=no", units / "voucher.target", *units.glob("*.service")
    )
    assert (checked.stderr, checked.returncode) == ("", 0)


@pytest.mark.parametrize("unit", SERVICES)
def test_each_service_is_sandboxed(units: Path, unit: str) -> None:
    assert_sandboxed(units, units / unit, MOST_EXPOSED)


def test_the_services_that_copy_are_sandboxed(units: Path) -> None:
    assert len(OTHERS) == 3
    for unit in OTHERS:
        assert_sandboxed(units, unit, MOST_EXPOSED_OTHER)


def assert_sandboxed(units: Path, unit: Path, most: float) -> None:
    threshold = f"--threshold={most * 10:.0f}"
    checked = analyze(units, "security", "--offline=true", "--no-pager", threshold, unit)
    assert checked.returncode == 0, checked.stdout


def test_web_units_start_the_web_server_of_make_run() -> None:
    """Their name is their port. `LISTEN` may be another address in voucher.env."""
    ours = {"--port=%i": "--port=0", "--host=${LISTEN}": "--host=127.0.0.1"}
    for kind in PORTS:
        assert "Environment=LISTEN=127.0.0.1\n" in (UNITS / f"voucher-{kind}@.service").read_text()
    (command,) = {
        tuple(ours.get(word, word) for word in words)
        for kind in PORTS
        for words in commands_of(f"voucher-{kind}@.service")
    }
    assert list(command) == of_make_run("web")


@pytest.mark.parametrize("name", ["worker", "imports", "beat", "bot", "metrics"])
def test_other_units_start_what_make_run_starts(name: str) -> None:
    assert commands_of(f"voucher-{name}.service") == [of_make_run(name)]


def test_the_target_starts_what_runs_on_every_host() -> None:
    """It also starts what is enabled: the scheduler and the bot, on one host."""
    wanted = set(re.findall(r"voucher-[\w@]+\.service", (UNITS / "voucher.target").read_text()))
    on_one_host = ["voucher-beat.service", "voucher-bot.service"]
    web = {f"voucher-{kind}@{port}.service" for kind, ports in PORTS.items() for port in ports}
    workers = {"voucher-worker.service", "voucher-imports.service"}
    assert wanted == web | workers | {"voucher-metrics.service"}
    units = {re.sub(r"@\d+", "@", name) for name in wanted}
    assert sorted([*units, *on_one_host, "voucher-migrate@.service"]) == SERVICES
    for unit in on_one_host:
        assert "WantedBy=voucher.target" in (UNITS / unit).read_text()


def test_restart_replaces_every_unit_of_the_target() -> None:
    (units,) = re.findall(r"for unit in (.*);", (UNITS / "restart").read_text())
    web = [f"{kind}@{port}" for kind, ports in PORTS.items() for port in ports]
    assert units.split() == [*web, "worker", "imports", "beat", "bot", "metrics"]


def test_web_units_name_their_settings() -> None:
    for kind in PORTS:
        text = (UNITS / f"voucher-{kind}@.service").read_text()
        (module,) = re.findall(r"DJANGO_SETTINGS_MODULE=(\S+)", text)
        assert module == f"config.settings_{kind}"
        import_module(module)


def test_each_credential_is_read_by_a_setting() -> None:
    text = (UNITS / "voucher-.service.d" / "service.conf").read_text()
    loaded = set(re.findall(r"^LoadCredential=(\w+):/etc/voucher/secrets/\1$", text, re.MULTILINE))
    read = set(re.findall(r"(\w+)_FILE=%d/(\w+)", text))
    assert {name for _, name in read} == loaded
    assert {variable.lower() for variable, _ in read} == loaded


def test_every_variable_of_the_units_is_documented() -> None:
    documented = (PROJECT / "docs" / "operate" / "configure.md").read_text()
    service = (UNITS / "voucher-.service.d" / "service.conf").read_text()
    example = (UNITS / "voucher.env").read_text()
    names = {
        *re.findall(r"\b([A-Z_]+)_FILE=", service),
        *re.findall(r"\b([A-Z_]+)=/", service),
        *re.findall(r"^([A-Z_]+)=", example, re.MULTILINE),
    }
    assert len(names) > 10
    assert {name for name in names if f"`{name}`" not in documented} == set()
