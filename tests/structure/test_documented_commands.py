"""The commands in the documents are those that `make run` uses (embedded/commands.py)."""

import re
import shlex
from pathlib import Path

from embedded.commands import services
from embedded.environment import PROJECT

DOCUMENTS = [PROJECT / "README.md", *PROJECT.glob("docs/**/*.md")]
PRODUCTION = PROJECT / "docs" / "operate" / "install.md"
PROGRAMS = {"granian", "celery"}
MANAGED = [["manage.py", "run_bot"], ["manage.py", "run_metrics"]]


def documented(document: Path) -> list[list[str]]:
    """The commands in the document's blocks that start a process of the service."""
    blocks = re.findall(r"^```(?:sh)?\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    commands = [shlex.split(line, comments=True) for line in lines if "'" not in line]
    return [words for words in commands if _starts_a_process(words)]


def _starts_a_process(words: list[str]) -> bool:
    return bool(words) and (words[0] in PROGRAMS or words[:2] in MANAGED)


def used() -> list[list[str]]:
    """The commands of `make run`, without the interpreter in front of the program."""
    found = []
    for service in services(host="0.0.0.0", port=8000, var=Path("/var/lib/voucher")):
        words = [str(word) for word in service.command]
        start = words.index("-m") + 1 if "-m" in words else words.index("manage.py")
        found.append(words[start:])
    return found


def test_production_starts_what_make_run_starts() -> None:
    assert sorted(documented(PRODUCTION)) == sorted(used())


def test_no_document_starts_a_process_another_way() -> None:
    commands = [(file.name, words) for file in DOCUMENTS for words in documented(file)]
    known = used()
    assert commands
    assert [(name, words) for name, words in commands if words not in known] == []
