"""Files of prices in lists and of exchange rates as spreadsheets and people really write them: read
as their author saw them, refused, or doubted, as CSV and as a workbook alike."""

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from datetime import date

import pytest

from catalogue.models import PriceList
from core.inputs import InputProblem
from figures.models import ExchangeRate
from operators.imports import price_list_file, rate_file
from operators.imports.table_imports import TableKind, check_table
from tests.catalogue.test_files_of_spreadsheets import KINDS, wrong
from tests.factories import make_product
from tests.spreadsheets import row, rows, sheet, text, workbook

pytestmark = pytest.mark.django_db

Cells = list[str]
PRICES = ["7001", "Gold", "product", "7002", "Card", "fixed", "9.50", "", "USD", "", ""]
RATES = ["EUR", "USD", "2026-01-05", "1.10"]
HEADS: dict[TableKind, tuple[Sequence[str], Cells, str]] = {
    price_list_file.KIND: (price_list_file.COLUMNS, PRICES, "price"),
    rate_file.KIND: (rate_file.COLUMNS, RATES, "rate"),
}
HIDDEN = ' hidden="1"'
FORMULA = "<c><f>A1</f>{}</c>"
NUMBER = "<c><v>{}</v></c>"


@pytest.fixture(autouse=True)
def stored() -> None:
    PriceList.objects.create(pk=7001, name="Gold", currency="USD")
    product = make_product(id=7002, price="10.00")
    type(product).objects.filter(pk=product.pk).update(name="Card")
    ExchangeRate.objects.create(currency="EUR", into="USD", day=date(2026, 1, 1), rate=1)


def as_csv(*lines: Sequence[str], separator: str = ",") -> bytes:
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=separator).writerows(lines)
    return file.getvalue().encode()


def with_number(names: Sequence[str], cells: Cells, number: str) -> Cells:
    """The row with another number in its column of prices or rates."""
    place = names.index("price" if "price" in names else "rate")
    return [*cells[:place], number, *cells[place + 1 :]]


# What must be said if this text is in the place of the price or the rate.
NUMBERS = {
    "9.5": "",
    " 9.50 ": "",
    '="9.50"': "",
    "'9.50": "",
    '"9.50"': "",
    "1.5E2": "1.5E2 is not a plain number",
    "1_000": "1_000 is not a plain number",
    "\uff11\uff12": "is not a plain number",
    "1,50": "Write 1.50: only digits",
    "1,000": "may mean 1.000 or 1000",
    "1.234,50": "is not a plain number",
    "5.000": "{name}: 5.000 is read as 5, but may mean 5000",
    "9.50 USD": "is not a plain number",
    **dict.fromkeys(["(9.50)", "9.50-", "+9.50", "1/2", "9.5.0"], "is not a plain number"),
    **dict.fromkeys(["NaN", "inf", "0x9", "1 234.50", "1\u00a0234"], "is not a plain number"),
    **dict.fromkeys(["\u221219", "\u0661\u0662", "9\u00b2"], "is not a plain number"),
    "10%": "10% is not a plain number",
    "#N/A": "{name} is an error of a spreadsheet: #N/A",
    "########": "{name} is an error of a spreadsheet: ########",
    "NULL": "NULL is not a plain number",
    "-": "- is not a plain number",
    "9\u200b.50": "{name} contains ZERO WIDTH SPACE",
    "9.50\ufe0f": "{name} contains VARIATION SELECTOR-16",
    "": "line 2, {name}: ",
    "0": "line 2, {name}: a ",
    "-1": "line 2, {name}: a ",
    "9999999999999999": "line 2, {name}: a ",
    "1.00000000001": "line 2, {name}: a ",
}
Build = Callable[[Sequence[str], Cells], bytes]
# Whole files, and what must be said of them.
FILES: dict[str, tuple[Build, str]] = {
    "separator line": (lambda names, cells: b"sep=;\n" + as_csv(names, cells, separator=";"), ""),
    "carriage returns": (lambda n, c: as_csv(n, c).replace(b"\r\n", b"\r"), ""),
    "UTF-16": (lambda n, c: as_csv(n, c).decode().encode("utf-16"), ""),
    "tabs": (lambda n, c: as_csv(n, c, separator="\t"), ""),
    "trailing commas": (lambda n, c: as_csv([*n, "", ""], [*c, "", ""], [""] * 9), ""),
    "columns in another order": (lambda n, c: as_csv([*n][::-1], c[::-1]), ""),
    "empty rows": (
        lambda n, c: workbook(sheet(rows(n, c) + row(3, text(" ")) + row(4, text("\xa0")))),
        "",
    ),
    "extra cell": (lambda n, c: as_csv(n, [*c, "x"]), "columns instead of"),
    "comma that shifts": (
        lambda n, c: as_csv(n, [*with_number(n, c, "1"), "50"]),
        "columns instead of",
    ),
    "short row": (lambda n, c: as_csv(n, c[:2]), "line 2, "),
    "value under no name": (
        lambda n, c: workbook(sheet(rows([*n, "", ""], [*c, "", "note"]))),
        "columns instead of",
    ),
    "blank name in between": (
        lambda n, c: workbook(sheet(rows([n[0], "", *n[1:]], [c[0], "note", *c[1:]]))),
        "column B has a value, but no name",
    ),
    "name twice": (lambda n, c: as_csv([*n, n[0]], [*c, c[0]]), "twice"),
    "unknown name": (lambda n, c: as_csv([*n[:-1], "colour"], c), "colour is unknown"),
    "missing name": (lambda n, c: as_csv(n[:-1], c[:-1]), "It has no heading"),
    "row twice": (lambda n, c: as_csv(n, c, c), "line 3: repeats line 2"),
    "no rows": (lambda n, _c: as_csv(n), "no rows below the names"),
    "total row": (lambda n, c: as_csv(n, c, ["Total: 1", *[""] * (len(n) - 1)]), "line 3, "),
    "far column": (
        lambda n, c: workbook(
            sheet(
                row(1, *map(text, n[:-1]), text(n[-1], "XFD1"))
                + row(2, *map(text, c[:-1]), text(c[-1], "XFD2"))
            )
        ),
        "",
    ),
    "hidden row": (
        lambda n, c: workbook(sheet(rows(n) + row(2, *map(text, c), more=HIDDEN))),
        "Hidden or filtered rows have values",
    ),
    "hidden column": (
        lambda n, c: workbook(
            sheet(rows(n, c), before='<cols><col min="3" max="3" hidden="1"/></cols>')
        ),
        "The hidden column C has values",
    ),
    "hidden first sheet": (
        lambda n, c: workbook(sheet(rows(n, c)), sheet(rows(n, c)), states={"One": "hidden"}),
        "The hidden sheet One has values, and is not read.",
    ),
    "late second sheet": (
        lambda n, c: workbook(sheet(rows(n, c)), sheet(row(200, text("x", "ZZ200")))),
        "The sheet Two has values, too",
    ),
    "merged cells": (
        lambda n, c: workbook(
            sheet(rows(n, c), after='<mergeCells><mergeCell ref="A2:A3"/></mergeCells>')
        ),
        "Cells are merged",
    ),
    "strict": (lambda n, c: workbook(sheet(rows(n, c)), is_strict=True), ""),
}
# A cell of a workbook in the place of the price or the rate, its format, and what must be said.
CELLS: dict[str, tuple[str, str, str]] = {
    "number": (NUMBER.format("9.5"), "", ""),
    "number like thousands": (NUMBER.format("5.000"), "", ""),
    "formula without a value": (FORMULA.format(""), "", "has a formula without a value"),
    "formula with a value": (FORMULA.format("<v>9.5</v>"), "", "Cells have formulas: 1"),
    "error": ('<c t="e"><v>#REF!</v></c>', "", "has an error of the spreadsheet"),
    "percentage": ('<c s="1"><v>0.5</v></c>', "0%", "has a percentage"),
    "date": ('<c s="1"><v>46000</v></c>', "yyyy-mm-dd", "has a date"),
    "rounded": ('<c s="1"><v>9.4949</v></c>', "0.00", "Cells show another number"),
}


def said(kind: TableKind, content: bytes) -> str:
    """The problems or the doubts of a file."""
    try:
        return " ".join(check_table(kind, content)["doubts"])
    except InputProblem as problem:
        return str(problem)


def answers_of(kind: TableKind) -> Iterator[tuple[str, tuple[str, str]]]:
    names, cells, name = HEADS[kind]
    place = names.index(name)
    for number, expected in NUMBERS.items():
        changed = with_number(names, cells, number)
        for format, file in (("csv", as_csv(names, changed)), ("xlsx", as_book(names, changed))):
            yield f"{number} as {format}", (expected.format(name=name), said(kind, file))
    for case, (build, expected) in FILES.items():
        yield case, (expected, said(kind, build(names, cells)))
    for case, (cell, format, expected) in CELLS.items():
        cells_of_row = [*map(text, cells[:place]), cell, *map(text, cells[place + 1 :])]
        book = workbook(
            sheet(rows(names) + row(2, *cells_of_row)), formats=[format] if format else []
        )
        yield case, (expected, said(kind, book))
    for case, (file, expected) in KINDS.items():
        yield case, (expected, said(kind, file))


def as_book(names: Sequence[str], cells: Cells) -> bytes:
    return workbook(sheet(rows(names, cells)))


@pytest.mark.parametrize("kind", HEADS, ids=lambda kind: kind.name)
def test_each_file_has_its_right_answer(kind: TableKind) -> None:
    assert wrong(dict(answers_of(kind))) == {}


def test_each_value_of_a_price_is_looked_at() -> None:
    cases = {
        ("price_list", "7"): "there is no price list with this id",
        ("price_list", "Gold"): "there is no price list with this id",
        ("price_list_name", "Silver"): "Silver in place of Gold",
        ("price_list_name", " 'gold"): "in place of Gold",
        ("price_list_name", "'Gold "): "",
        ("about", "Product"): "",
        ("about", "products"): "about: write one of shelf, product, category,",
        ("about", "everything"): "id: everything has no id: leave it empty",
        ("id", ""): "id: write the id of a product",
        ("id", "7,002"): "id: write the id of a product",
        ("id", "7003"): "id: there is no product with this id",
        ("name", "#N/A"): "#N/A in place of Card",
        ("name", ""): "",
        ("terms", "percent"): "price: leave it empty for these terms: percent",
        ("terms", "none"): "price: leave it empty for these terms: none",
        ("terms", ""): "terms: write one of fixed, percent, regular, none",
        ("percent_off", "5"): "percent_off: leave it empty for these terms: fixed",
        ("currency", "EUR"): "currency: the price list is in USD",
        ("currency", ""): "currency: the price list is in USD",
        ("since", "now"): "since: now is not a time",
        ("since", "01.02.2031"): "since: 01.02.2031 is not a time: write it like",
        ("since", "1/2/31"): "is not a time",
        ("since", "2031-02-30"): "is not a time",
        ("since", "2001-01-01"): "no price of this target began then",
        ("until", "2001-01-01"): "the price cannot end in the past: write now",
        ("until", "now"): "this target has no price that could end now",
        ("until", "Total"): "until: Total is not a time",
    }
    names = price_list_file.COLUMNS
    answers = {
        f"{name} {text} {format}": (expected, said(price_list_file.KIND, build(names, line)))
        for (name, text), expected in cases.items()
        for line in (
            [text if one == name else cell for one, cell in zip(names, PRICES, strict=True)],
        )
        for format, build in (("csv", as_csv), ("xlsx", as_book))
    }
    assert wrong(answers) == {}


def test_a_percentage_has_limits() -> None:
    line = ["7001", "", "everything", "", "", "percent", "", "{}", "USD", "", ""]
    answers = {
        text: (
            expected,
            said(
                price_list_file.KIND,
                as_csv(price_list_file.COLUMNS, [cell.format(text) for cell in line]),
            ),
        )
        for text, expected in {
            "12.5": "",
            "99.99": "",
            "100": "percent_off: a percentage is above 0 and below 100",
            "0": "percent_off: a percentage is above 0",
            "12.555": "percent_off: a percentage is above 0 and below 100, with up to 2 decimals",
            "": "percent_off: a percentage is above 0",
        }.items()
    }
    assert wrong(answers) == {}
    fixed = ["7001", "", "everything", "", "", "fixed", "5", "", "USD", "", ""]
    assert "everything cannot have the same price" in said(
        price_list_file.KIND, as_csv(price_list_file.COLUMNS, fixed)
    )


def test_each_value_of_a_rate_is_looked_at() -> None:
    cases = {
        ("currency", "eur"): "currency: write three capital letters",
        ("currency", "Euro"): "currency: write three capital letters",
        ("into", "EUR"): "into: the two currencies are the same",
        ("day", "05.01.2026"): "day: 05.01.2026 is not a day: write it like 2026-12-31",
        ("day", "1/5/26"): "day: 1/5/26 is not a day",
        ("day", ""): "day:  is not a day",
        ("day", "2026-02-30"): "day: 2026-02-30 is not a day",
        ("day", "20260105"): "day: 20260105 is not a day",
        ("day", "2026-W02-1"): "is not a day",
        ("rate", "1.085"): "",  # near the rate before
        ("rate", "1.0000000001"): "",
    }
    names = rate_file.COLUMNS
    answers = {
        f"{name} {text} {format}": (expected, said(rate_file.KIND, build(names, line)))
        for (name, text), expected in cases.items()
        for line in (
            [text if one == name else cell for one, cell in zip(names, RATES, strict=True)],
        )
        for format, build in (("csv", as_csv), ("xlsx", as_book))
    }
    assert wrong(answers) == {}


DATES = {
    ("46027", "yyyy-mm-dd", False): "2026-01-05",
    ("46027", "dd.mm.yyyy", False): "2026-01-05",
    ("44565", "m/d/yy", True): "2026-01-05",
    ("46027.5", "yyyy-mm-dd hh:mm", False): "is not a day",
    ("46027", "mmm yyyy", False): "has a date",
    ("0.5", "hh:mm", False): "has a date",
    ("46027", "[h]:mm", False): "has a date",
    ("60", "yyyy-mm-dd", False): "has a date",
    ("9999999", "yyyy-mm-dd", False): "has a date",
}


def test_a_date_of_a_workbook_is_read_where_a_day_belongs() -> None:
    answers: dict[str, tuple[str, str]] = {}
    for (number, format, is_1904), expected in DATES.items():
        line = row(2, text("EUR"), text("CHF"), f'<c s="1"><v>{number}</v></c>', text("0.95"))
        book = workbook(
            sheet(rows(rate_file.COLUMNS) + line), formats=[format], begins_1904=is_1904
        )
        try:
            (change,) = check_table(rate_file.KIND, book)["changes"]
            answers[f"{number} {format}"] = (expected, change["since"])
        except InputProblem as problem:
            answers[f"{number} {format}"] = (expected, str(problem))
    assert wrong(answers) == {}


def test_a_time_of_a_workbook_that_shows_a_day_is_doubted() -> None:
    names = price_list_file.COLUMNS
    line = row(2, *map(text, PRICES[:9]), '<c s="1"><v>55153.75</v></c>')
    for format, expected in (("yyyy-mm-dd", "Cells show another number"), ("yyyy-mm-dd hh:mm", "")):
        book = workbook(sheet(rows(names) + line), formats=[format])
        result = check_table(price_list_file.KIND, book)
        assert wrong({format: (expected, " ".join(result["doubts"]))}) == {}
        assert {one["since"] for one in result["changes"]} == {"2050-12-31T18:00:00Z"}
