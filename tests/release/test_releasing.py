"""`make release` makes one commit and one tag with all that belongs to a release, or nothing."""

import gzip
import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from embedded.environment import PROJECT

pytestmark = pytest.mark.history

NOTE = "- Refunds are announced."
PACKAGE, LOCK = "sdk/typescript/package.json", "sdk/typescript/package-lock.json"
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


def _image_command(folder: Path, code: int) -> Path:
    """A program in place of the one that builds the image. It ends with this code."""
    program = folder / "image"
    program.write_text(f'#!/bin/sh\necho "$4 $1 $2" >"$3"\nexit {code}\n')
    program.chmod(0o700)
    return program


def release(
    folder: Path, version: str = "7.8.9", check: str = "true", image: int = 0
) -> tuple[int, str]:
    """The exit code, and what is on stderr."""
    venv = Path(sys.prefix)
    done = subprocess.run(
        [
            *("make", "release", f"VENV={venv}", f"VERSION={version}", f"CHECK={check}"),
            *(f"--old-file={venv}/{stamp}.stamp" for stamp in ("dev", "release")),
        ],
        cwd=folder,
        env={**os.environ, **PERSON, "IMAGE_COMMAND": str(_image_command(folder.parent, image))},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr.strip()


def versions(text: dict[str, str]) -> set[str]:
    line = text["core/version.py"].partition('\nVERSION = "')[2]
    projects = (name for name in text if name.endswith("pyproject.toml"))
    lock = json.loads(text[LOCK])
    npm = {json.loads(text[PACKAGE])["version"], lock["version"], lock["packages"][""]["version"]}
    return {line.partition('"')[0], *(name.replace("-dev.0", ".dev0") for name in npm)} | {
        tomllib.loads(text[name])["project"]["version"] for name in projects
    }


@pytest.mark.npm
def test_a_release_is_tagged_and_the_next_version_begins(clone: Path) -> None:
    assert release(clone)[0] == 0

    assert_files_of_the_release(clone / "dist" / "7.8.9", git("rev-parse", "HEAD^", folder=clone))
    tagged = git("rev-list", "-1", "v7.8.9", folder=clone)
    files = (
        "core/version.py",
        "pyproject.toml",
        "sdk/python/pyproject.toml",
        PACKAGE,
        LOCK,
        "CHANGELOG.md",
    )
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


def assert_files_of_the_release(folder: Path, commit: str) -> None:
    wheel, package = "voucher_topup-7.8.9-py3-none-any.whl", "voucher-topup-7.8.9.tgz"
    images = {
        "voucher-7.8.9.image.tar.gz": "service",
        "voucher-simulator-7.8.9.image.tar.gz": "simulator",
    }
    files = {"notes.md", "components.cdx.json", wheel, package, *images}
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    sums = {line.split("  ")[1]: line.split("  ")[0] for line in lines}
    assert {file.name for file in folder.iterdir()} == {*files, "SHA256SUMS"}
    assert sums == {name: sha256((folder / name).read_bytes()).hexdigest() for name in files}
    for image, target in images.items():
        built = gzip.decompress((folder / image).read_bytes()).decode()
        assert built == f"{target} 7.8.9 {commit}\n"
    with zipfile.ZipFile(folder / wheel) as archive:
        assert {"voucher_topup/core.py", "voucher_topup/advice.json"} <= {*archive.namelist()}
    with tarfile.open(folder / package) as tar:
        assert {"package/dist/esm/index.js", "package/dist/cjs/index.d.ts"} <= {*tar.getnames()}


def test_a_release_without_its_image_changes_nothing(clone: Path) -> None:
    before = state(clone)
    assert release(clone, image=3)[0] == 2
    assert state(clone) == before


def state(clone: Path) -> list[str]:
    """The commit, the tags and the changed files of the clone."""
    commands = (["rev-parse", "HEAD"], ["tag"], ["status", "--porcelain", "--untracked-files=no"])
    return [git(*command, folder=clone) for command in commands]


def change_the_readme(clone: Path) -> None:
    (clone / "README.md").write_text("changed")


def tag_the_version(clone: Path) -> None:
    git("tag", "v7.8.9", folder=clone)


def remove_the_news(clone: Path) -> None:
    git("rm", "--quiet", "changelog.d/+*", folder=clone)
    git("commit", "--quiet", "--message", "Remove the news", folder=clone)


def lose_the_requirements(clone: Path) -> None:
    git("rm", "--quiet", "requirements/run.txt", folder=clone)
    git("commit", "--quiet", "--message", "Lose the requirements", folder=clone)


def nothing(clone: Path) -> None: ...


@pytest.mark.parametrize(
    ("prepare", "version", "check", "message"),
    [
        (nothing, "7.8", "touch checked", "Name a version, such as VERSION=1.2.0."),
        (change_the_readme, "7.8.9", "touch checked", "Commit or remove the changes first."),
        (tag_the_version, "7.8.9", "touch checked", "v7.8.9 exists already."),
        (remove_the_news, "7.8.9", "touch checked", "changelog.d"),
        (nothing, "7.8.9", "false", "Error 1"),
        (nothing, "7.8.9", "touch left-behind", "Commit or remove the changes first."),
        (lose_the_requirements, "7.8.9", "true", "requirements/run.txt"),
    ],
)
def test_a_release_that_cannot_be_made_changes_nothing(
    clone: Path, prepare: Callable[[Path], None], version: str, check: str, message: str
) -> None:
    prepare(clone)
    before = state(clone)

    code, shown = release(clone, version, check)

    assert (code, message in shown) == (2, True), shown
    assert state(clone) == before
    assert not (clone / "checked").exists()
