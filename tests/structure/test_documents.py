"""What the documents point at exists: links, headings, files, and the list of decisions. Their
tables are whole."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from embedded.environment import PROJECT

PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", "deploy/*.md", "labs/*.md", "changelog.d/README.md")
    for page in PROJECT.glob(pattern)
)
DECISIONS = PROJECT / "docs" / "decisions"
# A record of a decision may name what existed on its date.
PRESENT = [page for page in PAGES if page.parent != DECISIONS]
# What a program makes is in no clone.
MADE = ("var/", "dist/", "deploy/compose/secrets/")


def text_of(page: Path) -> str:
    """The page without its blocks of code."""
    return re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def headings(page: Path) -> set[str]:
    """The anchors of the page: its headings as links name them."""
    titles = re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def broken_links(page: Path) -> Iterator[str]:
    for link in re.findall(r"\]\(([^)]+)\)", text_of(page)):
        if re.match(r"\w+://", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in headings(target)):
            yield f"{page.relative_to(PROJECT)} links to {link}"


def missing_files(page: Path) -> Iterator[str]:
    """The files and folders in code quotes that do not exist. Words of other places are ignored,
    such as paths of the API: they do not begin with a folder of the project."""
    folders = {each.name for each in PROJECT.iterdir() if each.is_dir()}
    for path in re.findall(r"`([\w.-]+(?:/[\w.-]+)+/?|[\w.-]+/)`", text_of(page)):
        ours = path.partition("/")[0] in folders and not path.startswith(MADE)
        if ours and not (PROJECT / path).exists():
            yield f"{page.relative_to(PROJECT)} names {path}"


def missing_names(page: Path) -> Iterator[str]:
    """What "`check_key` in `idempotency/services.py`" says, where the file lacks the name."""
    for name, path in re.findall(r"`(\w+)` in\s+`([\w./-]+\.\w+)`", text_of(page)):
        if not re.search(rf"\b{name}\b", (PROJECT / path).read_text()):
            yield f"{page.relative_to(PROJECT)} names {name} in {path}"


def broken_rows(text: str) -> Iterator[str]:
    """The lines that look like rows of a table and do not become rows, and those that have another
    number of cells than their header. A page drops cells that are too many."""
    lines = text.splitlines()
    outside = {number for number, line in enumerate(lines) if line.lstrip().startswith("|")}
    for token in MarkdownIt().enable("table").parse(text):
        if token.type in ("fence", "table_open") and token.map:
            start, end = token.map
            outside -= set(range(start, end))
            if token.type == "table_open":
                header, *rows = lines[start:end]
                yield from (row for row in rows if cells(row) != cells(header))
    yield from (lines[number] for number in sorted(outside))


def cells(row: str) -> int:
    """The number of cells of a row. A bar with a backslash belongs to its cell."""
    return len(re.findall(r"(?<!\\)\|", row)) - 1


def test_each_link_leads_to_a_page_and_a_heading() -> None:
    assert [broken for page in PAGES for broken in broken_links(page)] == []


def test_each_file_that_a_page_names_exists() -> None:
    assert [missing for page in PRESENT for missing in missing_files(page)] == []


def test_a_file_contains_the_name_for_which_a_page_points_at_it() -> None:
    assert [missing for page in PRESENT for missing in missing_names(page)] == []


def test_each_version_on_a_page_of_installation_is_released() -> None:
    """A page may leave the version out (`VERSION=…`)."""
    version = r"(?<![\d.])\d+\.\d+\.\d+(?!\.?\d)"
    changelog = (PROJECT / "CHANGELOG.md").read_text()
    released = re.findall(rf"^## ({version}) ", changelog, re.MULTILINE)
    operate = PROJECT / "docs" / "operate"
    pages = [*operate.glob("install*.md"), operate / "failover.md"]
    named = {(page.name, each) for page in pages for each in re.findall(version, page.read_text())}
    assert {pair for pair in named if pair[1] not in released} == set()
    assert named


def test_each_row_belongs_to_a_table_and_has_as_many_cells_as_its_header() -> None:
    broken = [
        f"{page.relative_to(PROJECT)}: {row}"
        for page in PAGES
        for row in broken_rows(page.read_text())
    ]
    assert broken == []


@pytest.mark.parametrize(
    ("rows", "broken"),
    [
        ("| 1 | 2 |\n", []),
        ("| 1 \\| one | 2 |\n", []),
        ("| 1 |\n", ["| 1 |"]),
        ("| 1 | 2 | 3 |\n", ["| 1 | 2 | 3 |"]),
        ("| 1 | 2 |\n\n| 3 | 4 |\n", ["| 3 | 4 |"]),
        ("| 1 | 2 |\n\n```\n| 3 |\n```\n", []),
    ],
)
def test_a_broken_row_is_found(rows: str, broken: list[str]) -> None:
    assert list(broken_rows(f"Text.\n\n| a | b |\n|---|---|\n{rows}")) == broken


def test_a_table_without_a_header_is_found() -> None:
    assert list(broken_rows("| a | b |\n|---|\n")) == ["| a | b |", "|---|"]


def test_the_list_of_decisions_is_complete() -> None:
    rows = re.findall(
        r"^\| \[(\d+)\]\((\S+)\) \| (.+) \| (\S+) \|$",
        (DECISIONS / "README.md").read_text(),
        re.MULTILINE,
    )
    records = []
    for record in sorted(DECISIONS.glob("[0-9]*.md")):
        found = re.match(r"# (\d+) (.+)\n\n- Date: (\S+)\n- Status: ", record.read_text())
        assert found, f"{record.name} has other headings than its neighbours"
        number, title, date = found.groups()
        records.append((number, record.name, title, date))
    assert rows == records
