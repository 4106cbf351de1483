"""deploy/compose/compose.yaml fits the image, the proxy's configuration and the written secrets."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from embedded.environment import PROJECT
from tests.deploy.entry_point import commands

FOLDER = PROJECT / "deploy" / "compose"
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = {name: one for name, one in SERVICES.items() if "VOUCHER_IMAGE" in one["image"]}


def make_secrets(folder: Path) -> list[str]:
    done = subprocess.run(
        [FOLDER / "make-secrets", folder], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_every_process_of_the_image_is_a_service() -> None:
    assert {name: one["command"] for name, one in OURS.items()} == {
        **{word: [word] for word in commands() if word != "manage"},
        **{"api-2": ["api"], "pages-2": ["pages"]},
    }


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_confined(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["stop_grace_period"] == "35s"
    assert service["restart"] == ("no" if name == "migrate" else "unless-stopped")
    assert "healthcheck" in service or name == "proxy"
    assert service.get("cap_add", []) == (["NET_BIND_SERVICE"] if name == "proxy" else [])


@pytest.mark.parametrize("name", OURS)
def test_a_service_counts_where_the_exporter_looks(name: str) -> None:
    """The image sets METRICS_DIR for all of them. A service that names volumes inherits none."""
    image = (PROJECT / "Containerfile").read_text()
    (folder,) = re.findall(r"^ +METRICS_DIR=(\S+)", image, re.MULTILINE)
    assert f"metrics:{folder}" in OURS[name]["volumes"]


def test_the_image_contains_the_health_check() -> None:
    program = Path(OURS["api"]["healthcheck"]["test"][-1]).relative_to("/app")
    lines = (PROJECT / ".dockerignore").read_text().splitlines()
    copied = {line[1:] for line in lines if line.startswith("!")}
    assert copied & {str(program), *map(str, program.parents)}


def test_only_the_proxy_is_open_to_other_hosts() -> None:
    published = {name: one["ports"] for name, one in SERVICES.items() if "ports" in one}
    assert published.keys() == {"proxy", "metrics"}
    assert all(port.startswith("127.0.0.1:") for port in published["metrics"])


def test_everything_named_is_defined() -> None:
    for kind in ("networks", "secrets"):
        named = {item for one in SERVICES.values() for item in one.get(kind, [])}
        assert named == COMPOSE[kind].keys()
    mounted = {text.split(":")[0] for one in SERVICES.values() for text in one.get("volumes", [])}
    assert {name for name in mounted if not name.startswith(".")} == COMPOSE["volumes"].keys()
    for path in (name for name in mounted if name.startswith(".")):
        assert (FOLDER / path).exists()
    for one in SERVICES.values():
        assert one.get("depends_on", {}).keys() <= SERVICES.keys()


def test_the_proxy_gets_the_variables_of_its_configuration() -> None:
    configuration = (PROJECT / "deploy" / "caddy" / "Caddyfile").read_text()
    for variable in SERVICES["proxy"]["environment"]:
        assert f"{{${variable}:" in configuration


def test_every_secret_is_a_file_that_is_written(tmp_path: Path) -> None:
    make_secrets(tmp_path / "secrets")
    files = {path.name: path for path in (tmp_path / "secrets").iterdir()}
    for name, secret in COMPOSE["secrets"].items():
        assert secret["file"] == f"./secrets/{name}"
        assert name in files
    for variable, value in OURS["api"]["environment"].items():
        if variable.endswith("_FILE"):
            assert value == f"/run/secrets/{variable.removesuffix('_FILE').lower()}"
            assert Path(value).name in OURS["api"]["secrets"]
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in files.values()} == {0o444}


def test_secrets_that_exist_are_kept(tmp_path: Path) -> None:
    assert make_secrets(tmp_path)
    before = {path.name: path.read_text() for path in tmp_path.iterdir()}
    (tmp_path / "redis_url").unlink()
    assert make_secrets(tmp_path) == [f"wrote {tmp_path}/redis_url"]
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before


def test_each_installation_has_secrets_of_its_own(tmp_path: Path) -> None:
    for name in ("one", "two"):
        make_secrets(tmp_path / name)
    for path in (tmp_path / "one").iterdir():
        same = path.read_text() == (tmp_path / "two" / path.name).read_text()
        assert same == (path.name in ("email_url", "telegram_bot_token")), path.name
