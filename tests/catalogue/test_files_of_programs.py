"""Files as programs write them, and break them: each importer reads them as their author saw them,
refuses them, or doubts them."""

from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import uuid4
from zipfile import ZIP_BZIP2, ZipFile

import pytest
from django.core.management import CommandError

from catalogue.imports import code_file
from catalogue.models import PriceList, Product
from figures.models import ExchangeRate
from merchants.api_access import references
from operators.imports import jobs, price_list_file, rate_file
from operators.imports.models import ImportKind
from tests.catalogue.test_files_of_prices_and_rates import PRICES, RATES, as_book, as_csv, said
from tests.catalogue.test_files_of_spreadsheets import (
    HIDDEN,
    said_of_catalogue,
    said_of_codes,
    said_of_references,
    wrong,
)
from tests.commands import run
from tests.factories import make_account, make_product, own_shelf
from tests.operators.back_office import make_staff
from tests.spreadsheets import edit_parts, row, rows, sheet, text, workbook

pytestmark = pytest.mark.django_db

Names = Sequence[str]
Build = Callable[[Names, list[str]], bytes]
# The names, a row, and what a check of a file says.
Importer = tuple[Names, list[str], Callable[[bytes], str]]
BROKEN = "cannot be read"
SHEET = "xl/worksheets/sheet1.xml"


def edit(*changes: tuple[str, str], **more: Any) -> Build:
    """Builds the usual workbook with these changes."""
    return lambda names, cells: edit_parts(as_book(names, cells), *changes, **more)


def around(**more: str) -> Build:
    """Builds the usual workbook with this before or after its rows."""
    return lambda names, cells: workbook(sheet(rows(names, cells), **more))


def first(cell: str, formats: Sequence[str | int] = ("0",), texts: Sequence[str] = ()) -> Build:
    """Builds a workbook whose row begins with this cell; {} is its usual text."""

    def build(names: Names, cells: list[str]) -> bytes:
        begin = cell.replace("{}", cells[0])
        data = rows(names) + row(2, begin, *map(text, cells[1:]))
        filled = [one.replace("{}", cells[0]) for one in texts]
        return workbook(sheet(data), formats=formats, texts=filled)

    return build


def below(*lines: str) -> Build:
    """Builds the usual workbook with more rows below; {} is the first text of the row."""
    return lambda names, cells: workbook(
        sheet(rows(names, cells) + "".join(lines).replace("{}", cells[0]))
    )


def as_text(change: Callable[[str], str], encoding: str = "utf-8") -> Build:
    """Builds CSV, changed as a whole."""
    return lambda names, cells: change(as_csv(names, cells).decode()).encode(encoding)


def pack(change: Callable[[bytes], bytes], method: int = 0) -> Build:
    """Builds the usual workbook, packed by another method, and with other bytes."""

    def build(names: Names, cells: list[str]) -> bytes:
        file = BytesIO()
        with ZipFile(BytesIO(as_book(names, cells))) as old, ZipFile(file, "w", method) as new:
            for name in old.namelist():
                new.writestr(name, old.read(name))
        return change(file.getvalue())

    return build


def two_sheets(state: str) -> Build:
    """Builds a workbook with a second sheet in this state."""
    return lambda names, cells: workbook(
        sheet(rows(names, cells)), sheet(rows(names, cells)), states={"Two": state}
    )


WORKBOOKS: dict[str, tuple[Build, str]] = {
    # As programs write them.
    "absolute targets": (edit(('Target="worksheets', 'Target="/xl/worksheets')), ""),
    "backslashes in targets": (edit(("worksheets/", "worksheets\\")), ""),
    "backslashes in names": (edit(names=lambda name: name.replace("/", "\\")), ""),
    "names in other letters": (edit(names=str.upper), ""),
    "a prefix of relations": (
        edit(
            ("<Relationship", "<n:Relationship"),
            ("</Relationship", "</n:Relationship"),
            ("n:Relationships xmlns=", "n:Relationships xmlns:n="),
        ),
        "",
    ),
    "a prefix of rows and cells": (
        edit(("<row", "<x:row"), ("</row", "</x:row"), ("<c ", "<x:c "), ("</c>", "</x:c>")),
        "",
    ),
    "parts in UTF-16": (edit(('encoding="UTF-8"', 'encoding="UTF-16"'), encoding="utf-16"), ""),
    "no styles": (edit(("/styles", "/other")), ""),
    "no shared texts": (edit(("/sharedStrings", "/other")), ""),
    "macros": (edit(more=[("xl/vbaProject.bin", "x")]), ""),
    "frozen panes": (
        around(before='<sheetViews><sheetView><pane ySplit="1"/></sheetView></sheetViews>'),
        "",
    ),
    "a filter that hides nothing": (around(after='<autoFilter ref="A1:C2"/>'), ""),
    "a dimension of one cell": (around(before='<dimension ref="A1"/>'), ""),
    "links and checks of cells": (
        around(after='<hyperlinks><hyperlink ref="A2"/></hyperlinks><dataValidations/>'),
        "",
    ),
    "a chart before the sheet": (
        edit(
            ("<sheets>", '<sheets><sheet name="Chart" sheetId="9" r:id="rId9"/>'),
            (
                "</Relationships>",
                '<Relationship Id="rId9" Type="x/chartsheet" Target="c.xml"/></Relationships>',
            ),
        ),
        "",
    ),
    "a very hidden sheet": (two_sheets("veryHidden"), "The hidden sheet Two has values"),
    "a second sheet": (two_sheets("visible"), "The sheet Two has values, too"),
    "rows of an open group": (
        below(row(3, more=' outlineLevel="1"'), row(4, more=' hidden="1"')),
        "",
    ),
    "a row of a closed group": (
        lambda names, cells: workbook(
            sheet(rows(names) + row(2, *map(text, cells), more=f' outlineLevel="1"{HIDDEN}'))
        ),
        "Hidden or filtered rows have values, and are read: 1, the first in line 2",
    ),
    "a column without width": (
        around(before='<cols><col min="1" max="1" width="0"/></cols>'),
        "The hidden column A has values",
    ),
    "columns narrower than a letter": (
        around(before='<cols><col min="2" max="16384" width="0.08" customWidth="1"/></cols>'),
        "The hidden column B has values, and is read: ",
    ),
    "columns without width by default": (
        around(
            before='<sheetFormatPr defaultColWidth="0"/><cols><col min="1" max="1" width="9"/>'
            "</cols>"
        ),
        "The hidden column B has values, and is read: ",
    ),
    "a low row": (
        lambda names, cells: workbook(
            sheet(rows(names) + row(2, *map(text, cells), more=' ht="0.75" customHeight="1"'))
        ),
        "Hidden or filtered rows have values, and are read: 1, the first in line 2",
    ),
    "a format that shows nothing": (
        first('<c s="1" t="inlineStr"><is><t>{}</t></is></c>', formats=[";;;"]),
        "Cells have values that cannot be seen|: 1, the first in A2. The values are read.",
    ),
    "a format that shows texts": (
        first('<c s="1" t="inlineStr"><is><t>{}</t></is></c>', formats=["0;-0;;@"]),
        "",
    ),
    "white letters": (
        edit(
            ("<cellXfs>", '<fonts><font><color rgb="FFFFFFFF"/></font></fonts><cellXfs>'),
            ('<xf numFmtId="0"/>', '<xf numFmtId="0" fontId="0"/>'),
            ("<cellXfs>", '<fills><fill><patternFill patternType="none"/></fill></fills><cellXfs>'),
        ),
        "because the letters have the colour of the cell: ",
    ),
    "merged names": (
        around(after='<mergeCells><mergeCell ref="A1:B1"/></mergeCells>'),
        "Cells are merged: 1 areas, the first A1:B1",
    ),
    "a quoted text": (first('<c s="1" t="inlineStr"><is><t>{}</t></is></c>'), ""),
    "a shared text": (first('<c t="s"><v>0</v></c>', texts=["<si><t>{}</t></si>"]), ""),
    "a text in two colours": (
        first('<c t="s"><v>0</v></c>', texts=["<si><r><t>{}</t></r><r><rPr/><t/></r></si>"]),
        "",
    ),
    "spaces around a text": (first(text("\u00a0 {} \t")), ""),
    # What nobody can know, and what is broken.
    "a date of ISO 8601": (first('<c t="d"><v>2026-01-05</v></c>'), "column A has a date"),
    "an error of a formula": (
        first('<c t="e"><f>NA()</f><v>#N/A</v></c>'),
        "column A has an error of the spreadsheet",
    ),
    "a shared formula without a value": (
        first('<c><f t="shared" si="0"/></c>'),
        "column A has a formula without a value",
    ),
    "a formula with a text": (
        first('<c t="str"><f>B9</f><v>{}</v></c>'),
        "Cells have formulas: 1, the first in line 2",
    ),
    "a number that is none": (first("<c><v>INF</v></c>"), BROKEN),
    "a number without end": (first("<c><v>1e999</v></c>"), BROKEN),
    "a style that is not there": (first('<c s="9"><v>1</v></c>'), BROKEN),
    "a kind of cell that is not there": (first('<c t="x"><v>1</v></c>'), BROKEN),
    "a shared text that is not there": (first('<c t="s"><v>7</v></c>'), BROKEN),
    "a cell twice": (below(row(3, text("x", "A3"), text("y", "A3"))), f"Below line 3|{BROKEN}"),
    "cells out of order": (below(row(3, text("x", "B3"), text("y", "A3"))), BROKEN),
    "a cell of another row": (below(row(3, text("x", "A4"))), BROKEN),
    "a cell beyond the last column": (below(row(3, text("x", "XFE3"))), BROKEN),
    "a row twice": (below(row(2, text("x"))), f"Below line 2|{BROKEN}"),
    "rows out of order": (below(row(9), row(8, text("x"))), BROKEN),
    "a row beyond the last": (below(row(1_048_577, text("x"))), "more than 1,048,576 rows"),
    "the names again": (
        lambda names, cells: workbook(sheet(rows(names, cells, [*names]))),
        "line 3: the names of the columns again",
    ),
    "a title above the names": (
        lambda names, cells: workbook(sheet(rows(["Delivery"], names, cells))),
        "The first line names the columns",
    ),
    "a summary as Numbers writes it": (
        lambda names, cells: workbook(sheet(rows(["Summary"])), sheet(rows(names, cells))),
        "The first line names the columns",
    ),
    "empty rows above the names": (
        lambda names, cells: workbook(sheet(row(3, *map(text, names)) + row(7, *map(text, cells)))),
        "",
    ),
    "a part twice": (
        edit(more=[(SHEET, sheet(""))]),
        BROKEN,
    ),
    "a part twice in other letters": (edit(more=[(SHEET.upper(), sheet(""))]), BROKEN),
    "a sheet without its part": (edit(names=lambda n: "" if n == SHEET else n), BROKEN),
    "a sheet without its relation": (edit(('r:id="rId1"', 'r:id="rId7"')), BROKEN),
    "no workbook in it": (edit(names=lambda n: "" if "workbook.xml" in n else n), BROKEN),
    "a sheet that breaks off": (edit(("</sheetData></worksheet>", "")), BROKEN),
    "a document type": (
        edit(("<worksheet", '<!DOCTYPE x [<!ENTITY y "z">]><worksheet')),
        BROKEN,
    ),
    "packed by bzip2": (pack(bytes, ZIP_BZIP2), ""),
    "cut off": (pack(lambda book: book[: len(book) // 2]), BROKEN),
    "changed bytes": (pack(lambda book: book.replace(b"</t>", b"</u>", 1)), BROKEN),
    "a password of the archive": (
        pack(
            lambda book: book.replace(
                b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01"
            )
        ),
        BROKEN,
    ),
}
TEXTS: dict[str, tuple[Build, str]] = {
    "a mark of the byte order": (as_text(str, "utf-8-sig"), ""),
    "UTF-16 of another order": (as_text("\ufeff{}".format, "utf-16-be"), ""),
    "UTF-32": (as_text(str, "utf-32"), "The file is not a text"),
    "a separator line and a mark": (as_text("sep=,\r\n{}".format, "utf-8-sig"), ""),
    "a separator line for tabs": (
        as_text(lambda csv: "sep=\t\r\n" + csv.replace(",", "\t")),
        "",
    ),
    "a separator line that is wrong": (as_text("sep=;\r\n{}".format), "The first line names"),
    "bars": (as_text(lambda csv: csv.replace(",", "|")), "The first line names the columns"),
    "quotation marks everywhere": (
        as_text(lambda csv: '"' + csv.strip().replace(",", '","').replace("\r\n", '"\r\n"') + '"'),
        "",
    ),
    "empty lines between and below": (
        as_text(lambda csv: csv.replace("\r\n", "\r\n\r\n \r\n")),
        "",
    ),
    "no end of the last line": (as_text(str.rstrip), ""),
    "a delimiter at each end": (as_text(lambda csv: csv.replace("\r\n", ",\r\n")), ""),
    "ends of lines of two kinds": (as_text(lambda csv: csv.replace("\r\n", "\n", 1)), ""),
    "a carriage return in a line": (
        as_text(lambda csv: csv + "x\rx\r\n"),
        "line 3: a value with a line break needs quotation marks",
    ),
    "an open quotation mark": (as_text(lambda csv: csv + '"x\r\ny\r\n'), "line 3|is not closed"),
    "a quotation mark inside a value": (
        as_text(lambda csv: csv + '"x"y\r\n'),
        "line 3: a quotation mark inside a value must be written twice",
    ),
    "two files in one": (
        lambda names, cells: as_csv(names, cells, names, cells),
        "line 3: the names of the columns again",
    ),
    "two files with marks in one": (
        lambda names, cells: as_csv(names, cells, ["\ufeff" + names[0], *names[1:]]),
        "line 3: |contains ZERO WIDTH NO-BREAK SPACE (U+FEFF)",
    ),
    "a NUL": (
        as_text(lambda csv: csv + "x\0y" + "," * csv[: csv.index("\r")].count(",") + "\r\n"),
        "line 3: |contains characters that cannot be printed",
    ),
    "the end of file of DOS": (as_text("{}\x1a".format), "line 3"),
    "an empty file": (lambda _names, _cells: b"\r\n \r\n", "The file is empty"),
    "only a mark of the byte order": (lambda _names, _cells: b"\xef\xbb\xbf", "The file is empty"),
    "a title above the names": (as_text("Delivery\r\n{}".format), "The first line names"),
    "Windows-1252": (as_text("{}\u20ac".format, "windows-1252"), "line 3: not UTF-8"),
}


@pytest.fixture
def importers(tmp_path: Path) -> dict[str, Importer]:
    """The names and a row of each kind of file, and what its check says."""
    product, path, account = make_product(id=7002, price="10.00"), tmp_path / "file", make_account()
    Product.objects.filter(pk=product.pk).update(name="Card")
    PriceList.objects.create(pk=7001, name="Gold", currency="USD")
    ExchangeRate.objects.create(currency="EUR", into="USD", day=date(2026, 1, 1), rate=1)
    return {
        "codes": (
            code_file.COLUMNS.known,
            ["CODE-1", "SN-1", "1234"],
            lambda content: said_of_codes(content, product, path),
        ),
        "catalogue": (["kind", "id", "name"], ["category", "7", "Games"], said_of_catalogue),
        "references": (
            references.COLUMNS,
            ["7002", "", "REF-1"],
            lambda content: said_of_references(content, account),
        ),
        "prices": (price_list_file.COLUMNS, PRICES, partial(said, price_list_file.KIND)),
        "rates": (rate_file.COLUMNS, RATES, partial(said, rate_file.KIND)),
    }


@pytest.mark.parametrize("files", [WORKBOOKS, TEXTS], ids=["workbooks", "texts"])
def test_each_importer_gives_the_right_answer(
    importers: dict[str, Importer],
    files: dict[str, tuple[Build, str]],
) -> None:
    answers = {}
    for importer, (names, cells, check) in importers.items():
        for case, (build, expected) in files.items():
            answer = check(build(names, cells))
            for number, part in enumerate(expected.split("|")):
                answers[f"{case} as {importer} {number}"] = part, answer
    assert wrong(answers) == {}


SAMPLES = ["a row of a closed group", "merged names", "a second sheet", "the names again"]
SAMPLES += ["a part twice", "a sheet without its part", "a date of ISO 8601", "UTF-32"]
SAMPLES += [
    "a format that shows nothing",
    "an open quotation mark",
    "two files in one",
    "bars",
    "an empty file",
]


def test_the_browser_and_the_shell_say_the_same(
    importers: dict[str, Importer], tmp_path: Path
) -> None:
    staff, product, path = (
        make_staff(superuser=True),
        Product.objects.get(pk=7002),
        tmp_path / "file",
    )
    commands: dict[str, tuple[ImportKind, list[object]]] = {
        "codes": (ImportKind.CODES, ["import_codes", product.pk]),
        "catalogue": (ImportKind.CATALOGUE, ["import_catalogue"]),
        "prices": (ImportKind.PRICE_LISTS, ["import_price_lists"]),
        "rates": (ImportKind.EXCHANGE_RATES, ["import_exchange_rates"]),
    }
    different = []
    for importer, (kind, command) in commands.items():
        names, cells, _check = importers[importer]
        for case in SAMPLES:
            build, expected = {**WORKBOOKS, **TEXTS}[case]
            content = build(names, cells)
            path.write_bytes(content)
            row = jobs.upload_file(
                kind=kind,
                content=content,
                file_name="file",
                shelf=own_shelf(product) if kind == ImportKind.CODES else None,
                actor=staff,
                token=uuid4(),
            )
            jobs.run_import(pk=row.pk)
            row.refresh_from_db()
            browser = row.problems or row.result["doubts"]
            try:
                shell = list(run(*command, path, "--check")["doubts"].values())
            except CommandError as refused:
                shell = [str(refused)]
            if "; ".join(browser) != "; ".join(shell):
                different.append((importer, case, expected, browser, shell))
    assert different == []
