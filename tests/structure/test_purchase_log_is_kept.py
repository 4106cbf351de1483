"""Every web process keeps its purchase log in a place that outlives it, with systemd and Compose.
tests/deploy/test_kubernetes.py looks at Kubernetes."""

import re
from typing import Any

import pytest
import yaml

from embedded.environment import PROJECT

FOLDER = "/var/lib/voucher/purchases"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(
    (PROJECT / "deploy/compose/compose.yaml").read_text()
)["services"]


@pytest.mark.parametrize("name", ["api", "api-2", "pages", "pages-2"])
def test_a_container_writes_to_the_volume(name: str) -> None:
    assert SERVICES[name]["environment"]["PURCHASE_LOG_DIR"] == FOLDER
    assert f"purchases:{FOLDER}" in SERVICES[name]["volumes"]


@pytest.mark.parametrize("name", ["api", "pages"])
def test_a_unit_writes_to_the_folder(name: str) -> None:
    unit = (PROJECT / f"deploy/systemd/voucher-{name}@.service").read_text()
    assert re.findall(r"^Environment=PURCHASE_LOG_DIR=(.*)$", unit, re.MULTILINE) == [FOLDER]


def test_no_other_service_is_a_web_process() -> None:
    web = {name for name, one in SERVICES.items() if one.get("command") in (["api"], ["pages"])}
    assert web == {"api", "api-2", "pages", "pages-2"}
