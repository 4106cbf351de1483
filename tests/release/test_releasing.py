"""`make release` makes one commit and one tag with all that belongs to a release, or nothing."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from embedded.environment import PROJECT

pytestmark = pytest.mark.history

NOTE = "- Refunds are announced."
PERSON = {
    f"GIT_{role}_{field}": value
    for role in ("AUTHOR", "COMMITTER")
    for field, value in (("NAME", "Maintainer"), ("EMAIL", "maintainer@example.com"))
}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone of this repository with a fragment for the changelog."""
    folder = tmp_path / "clone"
    git("clone", "--quiet", "--shared", str(PROJECT), str(folder), folder=tmp_path)
    for tag in git("tag", folder=folder).split():
        git("tag", "--delete", tag, folder=folder)
    (folder / "changelog.d" / "+refunds.added.md").write_text(f"{NOTE}\n")
    git("add", "--all", folder=folder)
    git("commit", "--quiet", "--message", "Announce refunds", folder=folder)
    return folder


def git(*arguments: str, folder: Path) -> str:
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**os.environ, **PERSON},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def release(folder: Path, version: str = "7.8.9", check: str = "true") -> tuple[int, str]:
    """The exit code, and what is on stderr."""
    venv = Path(sys.prefix)
    done = subprocess.run(
        [
            *("make", "release", f"VENV={venv}", f"VERSION={version}", f"CHECK={check}"),
            *(f"--old-file={venv}/{stamp}.stamp" for stamp in ("dev", "release")),
        ],
        cwd=folder,
        env={**os.environ, **PERSON},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr.strip()


def versions(text: dict[str, str]) -> set[str]:
    line = text["core/version.py"].partition('\nVERSION = "')[2]
    return {line.partition('"')[0], tomllib.loads(text["pyproject.toml"])["project"]["version"]}


def test_a_release_is_tagged_and_the_next_version_begins(clone: Path) -> None:
    assert release(clone)[0] == 0

    tagged = git("rev-list", "-1", "v7.8.9", folder=clone)
    files = ("core/version.py", "pyproject.toml", "CHANGELOG.md")
    at_tag = {name: git("show", f"v7.8.9:{name}", folder=clone) for name in files}
    assert versions(at_tag) == {"7.8.9"}
    assert "## 7.8.9 (" in at_tag["CHANGELOG.md"]
    assert NOTE in at_tag["CHANGELOG.md"]
    assert git("cat-file", "-t", "v7.8.9", folder=clone) == "tag"
    message = git("tag", "--list", "v7.8.9", "--format=%(contents)", folder=clone)
    notes = (clone / "dist/7.8.9/notes.md").read_text()
    assert NOTE in message
    assert message.strip() == notes.strip()

    components = json.loads((clone / "dist/7.8.9/components.cdx.json").read_text())
    pinned = (clone / "requirements/run.txt").read_text()
    assert components["metadata"]["component"]["version"] == "7.8.9"
    assert {"django", "psycopg"} <= {one["name"] for one in components["components"]}
    assert all(f"{one['name']}==" in pinned for one in components["components"])

    now = {name: (clone / name).read_text() for name in files}
    assert versions(now) == {"7.8.10.dev0"}
    assert not list((clone / "changelog.d").glob("+*"))
    assert (clone / "tests/upgrade_from.txt").read_text().strip() == tagged
    assert git("status", "--porcelain", folder=clone) == ""


@pytest.mark.parametrize(
    ("version", "check", "message"),
    [
        ("7.8", "true", "Name a version, such as VERSION=1.2.0."),
        ("7.8.9", "false", "Error 1"),
        ("7.8.9", "touch left-behind", "Commit or remove the changes first."),
    ],
)
def test_a_release_that_cannot_be_made_changes_nothing(
    clone: Path, version: str, check: str, message: str
) -> None:
    before = git("rev-parse", "HEAD", folder=clone)

    code, shown = release(clone, version, check)

    assert (code, message in shown) == (2, True), shown
    assert git("rev-parse", "HEAD", folder=clone) == before
    assert git("tag", folder=clone) == ""
    assert git("diff", folder=clone) == ""


def test_a_dirty_tree_is_refused_before_the_check(clone: Path) -> None:
    (clone / "README.md").write_text("changed")

    code, shown = release(clone, check="touch checked")

    assert (code, "Commit or remove" in shown) == (2, True), shown
    assert not (clone / "checked").exists()


def test_a_version_is_released_once(clone: Path) -> None:
    git("tag", "--annotate", "v7.8.9", "--message", "made by hand", folder=clone)

    assert "v7.8.9 exists already." in release(clone)[1]


def test_a_failure_on_the_way_leaves_nothing(clone: Path) -> None:
    (clone / "requirements/run.txt").unlink()
    git("commit", "--quiet", "--all", "--message", "Lose the requirements", folder=clone)
    start = git("rev-parse", "HEAD", folder=clone)

    code, shown = release(clone)

    assert code == 2, shown
    assert git("rev-parse", "HEAD", folder=clone) == start
    assert git("status", "--porcelain", folder=clone) == ""
    assert git("tag", folder=clone) == ""


def test_a_release_without_news_is_refused(clone: Path) -> None:
    for fragment in (clone / "changelog.d").glob("+*"):
        fragment.unlink()
    git("commit", "--quiet", "--all", "--message", "Remove the news", folder=clone)

    code, shown = release(clone)

    assert (code, "changelog.d" in shown) == (2, True), shown
