"""The steps of a release. The working tree is the current directory."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

BIN = Path(sys.executable).parent
NUMBERS = re.compile(r"(\d+)\.(\d+)\.(\d+)")
# The files that contain the version, in one line each.
VERSION_FILES = (Path("core/version.py"), Path("pyproject.toml"))
VERSION_LINE = re.compile(r'^(version = )".*"$', re.MULTILINE | re.IGNORECASE)
CHANGELOG = Path("CHANGELOG.md")
UPGRADE_FROM = Path("tests/upgrade_from.txt")
DIST = Path("dist")


class ReleaseError(Exception):
    """Stops the release. The message says in one line what is wrong and what to do."""


def make_release(*, version: str, check: str) -> str:
    """Commits and tags the version, and returns a sentence that names its files.

    Nothing is left behind when it fails. Raises ReleaseError.
    """
    _refuse_bad_start(version)
    if subprocess.run(shlex.split(check), check=False).returncode:
        raise ReleaseError(f"`{check}` failed. Nothing was released.")
    if _changes():
        raise ReleaseError(f"`{check}` changed files. Commit or remove the changes first.")
    start = _git("rev-parse", "HEAD")
    try:
        return _make(version)
    except (subprocess.CalledProcessError, OSError) as error:
        _git("reset", "--quiet", "--hard", start)
        shown = getattr(error, "stderr", None) or error
        raise ReleaseError(f"Nothing was released: {shown}") from None


def _refuse_bad_start(version: str) -> None:
    if not NUMBERS.fullmatch(version):
        raise ReleaseError(f"{version!r} is not a version such as 1.2.0.")
    if _changes():
        raise ReleaseError("There are changes that are not committed. Commit or remove them first.")
    if _git("tag", "--list", f"v{version}"):
        raise ReleaseError(f"v{version} exists already.")
    latest = max((_numbers(tag) for tag in _git("tag", "--list", "v*").split()), default=(0, 0, 0))
    if _numbers(version) <= latest:
        raise ReleaseError(f"{version} is not newer than {'.'.join(map(str, latest))}.")
    if not any(Path("changelog.d").glob("+*.md")):
        raise ReleaseError("changelog.d has no fragment: there is nothing to release.")


def _make(version: str) -> str:
    folder = DIST / version
    folder.mkdir(parents=True, exist_ok=True)
    notes = folder / "notes.md"
    notes.write_text(_towncrier("--draft", version))
    _towncrier("--yes", version)
    _write_version(version)
    _write_components(folder / "components.cdx.json")
    _git("commit", "--quiet", "--all", "--message", f"Release {version}")
    released = _git("rev-parse", "HEAD")
    # Until the next release, upgrades are tested from this one, and its migrations are frozen.
    UPGRADE_FROM.write_text(f"{released}\n")
    _write_version(f"{_next(version)}.dev0")
    _git("commit", "--quiet", "--all", "--message", f"Begin {_next(version)}")
    # Last, because it cannot fail half-way. `--cleanup` keeps the headings, which begin with #.
    tag = ("tag", "--annotate", f"v{version}", released, f"--file={notes}")
    _git(*tag, "--cleanup=whitespace")
    return f"Tagged v{version}. The notes and the list of components are in {folder}."


def _write_version(version: str) -> None:
    for path in VERSION_FILES:
        path.write_text(VERSION_LINE.sub(rf'\g<1>"{version}"', path.read_text(), count=1))


def _write_components(path: Path) -> None:
    """Writes a CycloneDX list of what requirements/run.txt installs."""
    _run(
        str(BIN / "cyclonedx-py"),
        "requirements",
        "--pyproject=pyproject.toml",
        "--mc-type=application",
        "--output-reproducible",
        f"--output-file={path}",
        "requirements/run.txt",
    )


def _towncrier(how: str, version: str) -> str:
    """Collects the fragments: `--draft` returns the text, `--yes` writes it to the changelog."""
    return _run(str(BIN / "towncrier"), "build", how, "--version", version)


def _next(version: str) -> str:
    major, minor, patch = _numbers(version)
    return f"{major}.{minor}.{patch + 1}"


def _numbers(version: str) -> tuple[int, ...]:
    found = NUMBERS.search(version)
    return tuple(int(number) for number in found.groups()) if found else (0, 0, 0)


def _changes() -> str:
    return _git("status", "--porcelain")


def _git(*arguments: str) -> str:
    return _run("git", *arguments).strip()


def _run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
