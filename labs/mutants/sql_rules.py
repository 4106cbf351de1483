"""Mutants of the files in `sql/` folders, made by rules that remove or weaken one guard each.

    drop       one operand of an AND or OR, or the whole condition of a WHERE, ON or JOIN
    never      the condition of an IF or WHEN: the branch never runs
    edge       < becomes <=, >= becomes >, and so on
    unlocked   no FOR UPDATE, FOR NO KEY UPDATE or FOR SHARE
    skip       no PERFORM, no INSERT whose result nobody uses
    column     one column less in (a, b) IS DISTINCT FROM (c, d)
    event      a trigger that fires for one event less
    trigger    no trigger

Keywords are those in capitals, as in all our SQL.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from labs.mutants.mutant import PROJECT, Mutant, numbered

TOKEN = re.compile(r"--[^\n]*|\s+|'(?:[^']|'')*'|\$\$|\w+|<>|<=|>=|:=|=>|\|\||::|.", re.DOTALL)
TRIGGER = re.compile(
    r"CREATE (?:OR REPLACE |CONSTRAINT )?TRIGGER (\w+)\s+"
    r"(?:BEFORE|AFTER) ([\w\s,]+?) ON (\w+)[^;]*;"
)
EDGES = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
ENDS = {
    "WHERE": {"GROUP", "ORDER", "LIMIT", "OFFSET", "FOR", "RETURNING", "UNION", "LOOP", ";"},
    "ON": {"JOIN", "LEFT", "CROSS", "FULL", "WHERE", "GROUP", "ORDER", "UNION", ";"},
    "IF": {"THEN"},
    "ELSIF": {"THEN"},
    "WHEN": {"THEN", "EXECUTE", ";"},
    "SELECT": {"FROM", "INTO", ",", ";", "$$"},
    ",": {"FROM", "INTO", "WHERE", "RETURNING", ",", ";", "$$"},
}
# Settings of the planner make a statement fast, not right.
PLANNER = "enable_seqscan"
# No test can hit the microsecond at which a clock reaches a limit.
CLOCK = re.compile(r"now\(\)|_timestamp\(\)")


@dataclass(frozen=True)
class Token:
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Change:
    """Replaces text[start:end] by `new`."""

    rule: str
    start: int
    end: int
    new: str
    shown: str = ""  # instead of the replaced text


def sql_mutants(root: Path = PROJECT) -> list[Mutant]:
    """Every mutant of every installed SQL file."""
    return [mutant for path in _files(root) for mutant in _mutants_of(path, root)]


def _files(root: Path) -> list[Path]:
    return sorted([*root.glob("*/sql/*.sql"), *root.glob("operators/*/sql/*.sql")])


def _mutants_of(path: Path, root: Path) -> list[Mutant]:
    """The mutants of one file. A file that runs only once has none: see constraints.py. Nor has one
    of indexes and storage, which change no result."""
    text, file = path.read_text(), str(path.relative_to(root))
    if "ADD CONSTRAINT" in text or "CREATE INDEX" in text:
        return []
    return numbered(
        Mutant(
            name=f"{file}: {_defined_at(text, change.start)}: {change.rule} {_quote(text, change)}",
            file=file,
            text=text[: change.start] + change.new + text[change.end :],
            before=text,
        )
        for change in sorted(set(_changes(text)), key=_position)
    )


def _position(change: Change) -> tuple[int, int, str]:
    return change.start, change.end, change.shown


def _defined_at(text: str, position: int) -> str:
    """The name of the function or trigger that is defined around a position."""
    until = text.index("\n", position)
    return str(re.findall(r"CREATE.*(?:FUNCTION|TRIGGER) (\w+)", text[:until])[-1])


def _quote(text: str, change: Change) -> str:
    return " ".join((change.shown or text[change.start : change.end]).split())[:90].rstrip()


def _line(text: str, position: int) -> str:
    return text[text.rindex("\n", 0, position) + 1 : text.index("\n", position)].strip()


def _changes(text: str) -> Iterator[Change]:
    tokens = [
        Token(found.group(), found.start(), found.end())
        for found in TOKEN.finditer(text)
        if not found.group().isspace() and not found.group().startswith("--")
    ]
    for index, token in enumerate(tokens):
        if token.text in ENDS and _opens_condition(tokens, index):
            yield from _of_condition(text, tokens, index)
    yield from _locks(text)
    yield from _statements(text)
    yield from _columns(text, tokens)
    yield from _triggers(text)


def _opens_condition(tokens: list[Token], index: int) -> bool:
    word, before = tokens[index].text, [token.text for token in tokens[max(index - 3, 0) : index]]
    if word == "ON":
        return "JOIN" in before and tokens[index + 1].text != "true"
    return not before or before[-1] not in ("END", "TRIGGER", "INDEX")


def _of_condition(text: str, tokens: list[Token], index: int) -> Iterator[Change]:
    """Changes of the condition that the keyword at `index` opens."""
    word = tokens[index].text
    condition = _until(tokens, index + 1, ENDS[word])
    if not condition:
        return
    yield from _operands(text, condition)
    if word in ("SELECT", ","):
        return
    for token in condition:
        line = _line(text, token.start)
        if token.text in EDGES and not CLOCK.search(line):
            yield Change("edge", token.start, token.end, EDGES[token.text], line)
    start, end = condition[0].start, condition[-1].end
    if word in ("IF", "ELSIF") or tokens[index - 1].text in ("CASE", "CONTINUE"):
        yield Change("never", start, end, "false")
    elif word in ("WHERE", "ON") and not _split(condition, "OR") and not _split(condition, "AND"):
        yield Change("drop", start, end, "true")


def _until(tokens: list[Token], start: int, ends: set[str]) -> list[Token]:
    """The tokens from `start` to the first end at the same depth of parentheses."""
    depth = 0
    for index in range(start, len(tokens)):
        word = tokens[index].text
        if depth == 0 and (word in ends or word == ")"):
            return tokens[start:index]
        depth += (word == "(") - (word == ")")
    return []


def _operands(text: str, condition: list[Token]) -> Iterator[Change]:
    """Drops each operand of AND and OR, here and inside parentheses."""
    parts = _split(condition, "OR") or _split(condition, "AND")
    for number, part in enumerate(parts):
        shown = text[part[0].start : part[-1].end]
        if number == 0:
            yield Change("drop", part[0].start, parts[1][0].start, "", shown)
        else:
            yield Change("drop", parts[number - 1][-1].end, part[-1].end, "", shown)
        yield from _operands(text, part)
    if not parts:
        for index, token in enumerate(condition):
            inside = _until(condition, index + 1, set()) if token.text == "(" else []
            if inside and inside[0].text != "SELECT":
                yield from _operands(text, inside)


def _split(condition: list[Token], word: str) -> list[list[Token]]:
    """The operands of `word` at depth 0, or nothing if it is not there. Knows BETWEEN ... AND."""
    parts: list[list[Token]] = [[]]
    depth, between = 0, False
    for token in condition:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.text == word and not between:
            parts.append([])
            continue
        if depth == 0 and token.text in ("BETWEEN", "AND"):
            between = token.text == "BETWEEN"
        parts[-1].append(token)
    return parts if len(parts) > 1 else []


def _locks(text: str) -> Iterator[Change]:
    lock = r"\s+FOR (?:NO KEY UPDATE|KEY SHARE|UPDATE|SHARE)(?: OF \w+)?(?: NOWAIT| SKIP LOCKED)?"
    for found in re.finditer(lock + r"(?=\s*[;)])", text):
        yield Change("unlocked", found.start(), found.end(), "")


def _statements(text: str) -> Iterator[Change]:
    for found in re.finditer(r"(?<=\n)[ ]*(?:PERFORM|INSERT)\b[^;]*;", text):
        if PLANNER not in found.group() and "RETURNING" not in found.group():
            yield Change("skip", found.start(), found.end(), "NULL;")


def _columns(text: str, tokens: list[Token]) -> Iterator[Change]:
    words = [token.text for token in tokens]
    for index in range(1, len(tokens) - 3):
        around = words[index - 1], *words[index : index + 4]
        if around != (")", "IS", "DISTINCT", "FROM", "("):
            continue
        opening = _opening(words, index - 1)
        left = _until(tokens, opening + 1, set())
        right = _until(tokens, index + 4, set())
        rows = [_listed(left), _listed(right)]
        for number in range(len(rows[0])):
            kept = [", ".join(row[:number] + row[number + 1 :]) for row in rows]
            yield Change(
                "column", left[0].start, right[-1].end,
                f"{kept[0]}) IS DISTINCT FROM ({kept[1]}", rows[0][number],
            )  # fmt: skip


def _opening(words: list[str], closing: int) -> int:
    depth = 0
    for index in range(closing, -1, -1):
        depth += (words[index] == ")") - (words[index] == "(")
        if depth == 0:
            return index
    raise ValueError("unbalanced parentheses")


def _listed(tokens: list[Token]) -> list[str]:
    return "".join(token.text for token in tokens).split(",")


def _triggers(text: str) -> Iterator[Change]:
    """No trigger, and a trigger for one event less."""
    for found in TRIGGER.finditer(text):
        name, events, table = found.group(1, 2, 3)
        gone = f"DROP TRIGGER IF EXISTS {name} ON {table};"
        yield Change("trigger", found.start(), found.end(), gone, f"on {table}")
        kinds = events.split(" OR ")
        for kind in kinds:
            for fewer, shown in _fewer(kinds, kind):
                yield Change("event", found.start(2), found.end(2), fewer, shown)


def _fewer(kinds: list[str], kind: str) -> Iterator[tuple[str, str]]:
    """The events without this one, and for UPDATE OF a, b without each column."""
    others = [other for other in kinds if other != kind]
    if others:
        yield " OR ".join(others), kind
    before, of, listed = kind.partition(" OF ")
    columns = [column.strip() for column in listed.split(",")]
    if of and len(columns) > 1:
        for column in columns:
            rest = ", ".join(other for other in columns if other != column)
            yield " OR ".join([*others, f"{before} OF {rest}"]), f"{before} OF {column}"
