"""A catalogue file as a table, for people who work in a spreadsheet: CSV, or a workbook (XLSX).

A row is a category, product, variation or top-up product, as its column `kind` says. The table has
the same content as the JSON file. An import leaves the values of a missing column as they are, and
those to the right of the last value of a row. Another empty cell removes the value, but a value
that must not be empty stays as it is.
"""

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from io import StringIO
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from catalogue.imports.catalogue_import import VariationRow, at_place, name_problems
from core.files import table_files
from core.files.cells import LIKE_NUMBER, NumberText, plain_text
from core.files.doubts import Doubts
from core.files.kinds import UTF_8_MARK, is_archive, refuse_other_kinds
from core.files.table_files import MAX_CELL
from core.files.tables import STARTS_BYTES, WRONG_LINE, Columns, read_bytes
from core.inputs import KEPT_PROBLEMS, InputProblem, raise_problems
from core.numbers import other_reading, read_number

# The list of each kind of row in the JSON file, and the columns that it has.
LISTS = {
    "category": "categories",
    "product": "products",
    "variation": "variations",
    "topup_product": "topup_products",
}
KINDS = {
    "category": ("id", "name", "active"),
    "product": (
        *("id", "name", "category", "type", "currency", "active"),
        *("price", "quantity_step"),
    ),
    "variation": ("id", "product", "name", "active", "price", "quantity_step"),
    "topup_product": (
        *("id", "name", "category", "currency", "active", "price", "available_stock"),
        *("published", "external_provider", "announce", "fields"),
    ),
}
COLUMNS = (
    *("kind", "id", "product", "name", "category", "type", "currency", "active", "price"),
    *("quantity_step", "published", "external_provider", "announce", "fields"),
    "available_stock",
)
NUMBERS = {"id", "product", "category", "quantity_step", "available_stock"}
FLAGS = {"active", "published", "announce"}
MAX_LINE_LENGTH = 2 * 1024 * 1024  # characters: the fields of a top-up product are long
COLUMNS_OF_TABLE = Columns(
    known=COLUMNS,
    required=("kind", "id"),
    names=frozenset({"name"}),
    exact=frozenset({"name"}),
    raw=frozenset({"fields"}),
    line_length=MAX_LINE_LENGTH,
    short_rows=True,
)
MAY_BE_EMPTY = {"category", "type", "price", "external_provider", "available_stock"}

# What is wrong with a table. Imports store it in English, and pages translate it.
WRONG_CELL = gettext_noop("line %(line)s, %(problem)s")
UNKNOWN_KIND = gettext_noop("the kind is not one of %(kinds)s")
NO_PRODUCT = gettext_noop("the file has no product with this id")
NO_VALUE = gettext_noop("a %(kind)s has none")
NOT_JSON = gettext_noop("this is not JSON")
NOT_UTF_8 = gettext_noop("%(name)s is not UTF-8.")
WRONG_CATALOGUE_TABLES = (WRONG_CELL, UNKNOWN_KIND, NO_PRODUCT, NO_VALUE, NOT_JSON, NOT_UTF_8)
# A doubt about numbers. It is stored and translated, too.
TWO_NUMBERS = gettext_noop(
    "%(name)s: %(text)s is read as %(one)s, but may mean %(other)s. Such values: %(count)s, the"
    " first in line %(line)s."
)

# The last of KEPT_PROBLEMS. No page shows it, and downloaded problems are in English.
NOT_READ = "there are too many problems, and the file was not read from here on"

# An apostrophe keeps a spreadsheet from taking a text for a formula, or 007 for 7. The reader of
# tables removes one (core/files/cells.py), also where a name has its own.
TEXTS = {"name", "external_provider"}
TO_PROTECT = re.compile(r"'*[=+\-@\t\r\"]|'+[0-9]")
PLACE = re.compile(r"((?:categories|products|topup_products)\[\d+\](?:\.variations\[\d+\])?)(\.?)")


class TableContent(dict[str, Any]):
    """The content of a table, like that of a JSON file. `lines` has the line of each place in that
    file, such as `products[3]`. `problems` are about what the content leaves out. `doubts` must be
    confirmed; `sheet` is the name of the sheet of a workbook."""

    lines: Mapping[str, int]
    problems: Sequence[str]
    doubts: Sequence[str]
    sheet: str


def is_table(content: bytes, name: str) -> bool:
    """Whether a catalogue file is a table, not JSON. Raises InputProblem if it is neither."""
    if is_archive(content):
        return True
    refuse_other_kinds(content[:STARTS_BYTES], content)
    is_json = content.removeprefix(UTF_8_MARK).lstrip().startswith((b"{", b"["))
    return not is_json and not name.lower().endswith(".json")


def parse_table(content: bytes) -> TableContent:
    """The content of a table. Raises InputProblem if it cannot be read at all."""
    table = read_bytes(content, COLUMNS_OF_TABLE)
    file = TableContent(categories=[], products=[], topup_products=[])
    lines: dict[str, int] = {}
    problems: list[str] = []
    variations: list[tuple[int, dict[str, Any]]] = []
    for line, cells, wrong_cells in table.rows:
        _refuse_many(problems, line)
        problems += [WRONG_LINE % {"line": line, "problem": one} for one in wrong_cells.values()]
        if "" in wrong_cells:
            continue
        while cells and not cells[-1]:  # in a spreadsheet, a short row looks like empty cells
            cells.pop()
        found = dict(zip(table.names, cells, strict=False))
        kind = found.pop("kind", "").strip().lower()
        if kind not in KINDS:
            problem = UNKNOWN_KIND % {"kinds": ", ".join(KINDS)}
            problems.append(WRONG_LINE % {"line": line, "problem": problem})
            continue
        row, wrong = _read(kind, found)
        problems += [WRONG_CELL % {"line": line, "problem": one} for one in wrong]
        _doubt_numbers(table.doubts, line, found)
        if kind == "variation":
            variations.append((line, row))
        else:
            place = LISTS[kind]
            lines[f"{place}[{len(file[place])}]"] = line
            file[place].append(row)
    for line, wrong in _nest(file["products"], variations, lines):
        _refuse_many(problems, line)
        problems += [WRONG_CELL % {"line": line, "problem": one} for one in wrong]
    file.lines, file.problems = lines, problems
    file.doubts, file.sheet = table.doubts.sentences(), table.sheet
    return file


def _refuse_many(problems: list[str], line: int) -> None:
    """Raises InputProblem if there are too many problems to read on in this line."""
    if len(problems) >= KEPT_PROBLEMS:
        last = WRONG_LINE % {"line": line, "problem": NOT_READ}
        raise_problems([*problems[: KEPT_PROBLEMS - 1], last], kept=KEPT_PROBLEMS)


def _nest(
    products: list[dict[str, Any]],
    variations: list[tuple[int, dict[str, Any]]],
    lines: dict[str, int],
) -> Iterator[tuple[int, list[str]]]:
    """Puts each variation into its product; yields the line and the problems of each whose product
    is not in the file."""
    places = {row.get("id"): place for place, row in enumerate(products)}
    for line, row in variations:
        place = places.get(row.pop("product", None))
        if place is None:
            checked = VariationRow(data=row)
            checked.is_valid()
            yield line, [at_place("product", NO_PRODUCT), *name_problems(checked.errors)]
            continue
        siblings = products[place].setdefault("variations", [])
        lines[f"products[{place}].variations[{len(siblings)}]"] = line
        siblings.append(row)


@contextmanager
def naming_lines(content: Any) -> Iterator[None]:
    """Makes an InputProblem of the block name lines of the table, not places of a JSON file."""
    try:
        yield
    except InputProblem as problem:
        if not isinstance(content, TableContent):
            raise
        lines = content.lines

        def name(found: re.Match[str]) -> str:
            return f"line {lines.get(found[1], '?')}" + (", " if found[2] else "")

        problems = [PLACE.sub(name, one) for one in problem.problems]
        raise InputProblem(
            PLACE.sub(name, str(problem)), problems=problems, more=problem.more
        ) from None


def write_workbook(content: Mapping[str, Any]) -> bytes:
    """The content of a JSON file as XLSX. Raises InputProblem if a value is too long for a cell."""
    rows = [
        [_workbook_cell(name, {"kind": kind, **row}.get(name)) for name in COLUMNS[:-1]]
        for kind, row in _rows(content)
    ]
    if any(len(str(cell)) > MAX_CELL for row in rows for cell in row):
        raise InputProblem(_("A value is too long for a cell of a workbook. Export CSV or JSON."))
    return b"".join(table_files.write_table("xlsx", COLUMNS[:-1], rows, is_imported=True))


def _workbook_cell(name: str, value: Any) -> Any:
    if name == "price" and value is not None:
        return Decimal(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    return f"'{value}" if _loses_marks(name, value) else value


def _loses_marks(name: str, value: Any) -> bool:
    """Whether an import would take a part of the text for a mark of a spreadsheet."""
    return isinstance(value, str) and plain_text(value, is_name=name == "name") != value


def write_text(content: Mapping[str, Any]) -> bytes:
    """The content of a JSON file as CSV."""
    text = StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS[:-1], lineterminator="\r\n", extrasaction="ignore")
    writer.writeheader()
    for kind, row in _rows(content):
        cells = {name: _cell(name, value) for name, value in row.items() if name != "variations"}
        writer.writerow({"kind": kind, **cells})
    return text.getvalue().encode("utf-8-sig")


def _rows(content: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for row in content["categories"]:
        yield "category", row
    for row in content["products"]:
        yield "product", row
        for variation in row["variations"]:
            yield "variation", {**variation, "product": row["id"]}
    for row in content["topup_products"]:
        yield "topup_product", row


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    text = str(value)
    is_text = isinstance(value, str) and name in TEXTS
    if TO_PROTECT.match(text) or _loses_marks(name, value):
        return f"'{text}"
    return f"'{text}" if is_text and LIKE_NUMBER.fullmatch(text) else text


def _doubt_numbers(doubts: Doubts, line: int, cells: Mapping[str, str]) -> None:
    """Adds a doubt for each number with a point that may be between thousands."""
    for name in ("price", *sorted(NUMBERS)):
        text = cells.get(name, "")
        if not isinstance(text, NumberText) and (other := other_reading(text)):
            one = f"{read_number(text).normalize():f}"
            doubts.add(TWO_NUMBERS, name=name, line=line, text=text, one=one, other=other)


def _read(kind: str, cells: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """The values of a row, and what is wrong with it."""
    row: dict[str, Any] = {}
    problems = []
    for name, text in cells.items():
        if name not in KINDS[kind]:
            if text.strip():
                problems.append(at_place(name, NO_VALUE % {"kind": kind}))
        elif text.strip():
            try:
                row[name] = _value(name, text)
            except InputProblem as problem:
                problems.append(at_place(name, str(problem)))
            except (ValueError, RecursionError):  # the latter for brackets in brackets
                problems.append(at_place(name, NOT_JSON))
        elif name in MAY_BE_EMPTY and (kind, name) != ("topup_product", "price"):
            row[name] = None
    return row, problems


def _value(name: str, text: str) -> Any:
    """The value of a cell, for the checks of the JSON file. Raises InputProblem if a price is no
    plain number, and ValueError if it is no JSON."""
    plain = text.strip()
    if name == "price":
        return str(read_number(plain))
    if name in NUMBERS:
        is_whole = plain.isascii() and plain.removesuffix(".000").isdecimal() and len(plain) < 20
        return int(read_number(plain)) if is_whole else plain
    if name in FLAGS:
        return {"true": True, "false": False}.get(plain.lower(), plain)
    if name == "fields":
        return json.loads(text)
    return text if name == "name" else plain
