"""Files as spreadsheets and people really write them: each kind is read as its author saw it, or
it is refused, or it raises a doubt. Nothing changes its meaning without a word."""

from io import BytesIO
from pathlib import Path

import pytest

from accounts.models import Account
from catalogue.imports.code_file import COLUMNS
from catalogue.imports.code_import import check_codes, import_codes
from catalogue.models import Product
from core.files.doubts import Doubtful, doubt_id
from core.files.tables import open_table
from core.inputs import InputProblem
from merchants.api_access.references import check_references
from operators.imports.catalogue_file import check_catalogue
from operators.imports.catalogue_table import parse_table
from tests.factories import make_account, make_product
from tests.spreadsheets import archive, edit_parts, row, rows, sheet, text, workbook

pytestmark = pytest.mark.django_db

HEAD = row(1, text("code"), text("pin_code"))
FORMULA = '<c r="B3"><f>B2&amp;"9"</f><v/></c>'
HIDDEN = ' hidden="1"'


def styled(value: str, place: str = "") -> str:
    """A cell with a text in the style 1."""
    return text(value, place).replace("<c", '<c s="1"', 1)


# What must be said of each file of codes. An empty text: nothing, the file is right.
CODES: dict[str, tuple[bytes, str]] = {
    "clean": (b"code\nYDUP-AAAA-1\n00123456789\n", ""),
    "variation selector": ("code\nABCD\ufe0f1\n".encode(), "VARIATION SELECTOR-16 (U+FE0F)"),
    "Hangul filler": ("code\nABCD\u31641\n".encode(), "line 2: code contains HANGUL FILLER"),
    "Braille blank": ("code\nA\nBR\u2800Y\n".encode(), "line 3: code contains BRAILLE PATTERN"),
    "zero width space": ("code\nA\u200bB\n".encode(), "ZERO WIDTH SPACE (U+200B)"),
    "tag letter": ("code\nA\U000e0041B\n".encode(), "TAG LATIN CAPITAL LETTER A"),
    "right-to-left mark": ("code\n\u200fAB\n".encode(), "RIGHT-TO-LEFT MARK"),
    "replaced letter": ("code\nA\ufffdB\n".encode(), "line 2: not UTF-8"),
    "Cyrillic": ("code\n\u0410BCD-1\nABCD-1\n".encode(), "(Cyrillic) may look like Latin ones"),
    "only Cyrillic": ("code\n\u0410\u0412\u0421-1\n".encode(), "(Cyrillic)"),
    "wide digit": ("code\nABC\uff11\n".encode(), "or digits of another script (Fullwidth)"),
    "Arabic digits": ("code\nAB\u0663\u0664\n".encode(), "another script (Arabic-indic)"),
    "Roman number": ("code\nAB-\u2163\n".encode(), "another script (Roman)"),
    "Greek": ("code\n\u0391BC-1\n".encode(), "the first in line 2"),
    "error words": (b"code\nA\n#N/A\n#REF!\n", "line 3: code is an error of a spreadsheet: #N/A"),
    "German error word": (b"code\n#NV\n", "is an error of a spreadsheet: #NV"),
    "LibreOffice error": (b"code\nErr:502\n", "is an error of a spreadsheet: Err:502"),
    "hashes": (b"code\n########\n", "line 2: code is an error of a spreadsheet: ########"),
    "error as PIN": (b"code,pin_code\nA,#DIV/0!\n", "pin_code is an error"),
    "NULL as PIN": (b"code,pin_code\nA,NULL\nB,NULL\n", "pin_code: the word NULL may stand for"),
    "French error": (b"code,pin_code\nA,#VALEUR!\nB,#NOM?\n", "the word #VALEUR may stand"),
    "Spanish error": ("code\n#¡REF!\n#¿NOMBRE?\n".encode(), "code: the word #¡REF may stand"),
    "Russian error": ("code\n#\u041d/\u0414\n".encode(), "code: the word #\u041d may stand"),
    "Polish error": (b"code\n#N/D\n", "code: the word #N may stand"),
    "number sign and digits": (b"code\n#1234!\n", ""),
    "NULL in brackets": (b"code,pin_code\nA,[NULL]\nB,<null>\n", "pin_code: the word [NULL may"),
    "NULL in braces": (b"code,pin_code\nA,{null}\nB,<N/A>\n", "pin_code: the word {null may"),
    "NULL of a dump": (b"code,pin_code\nA,\\N\n", "pin_code: the word \\N may stand for nothing"),
    "none as serial": (b"code,serial_number\nA,none\n", "serial_number: the word none"),
    "dash as PIN": (b"code,pin_code\nA,-\n", "pin_code: the word - may stand for nothing"),
    "total row": (b"code\nA\nB\nTotal: 2\n", "code: the word Total may stand for nothing"),
    "other separator": (b"code\nA1;S1;P1\nA2;S2;P2\n", "semicolons, tabs or vertical bars"),
    "bars": (b"code\nA1|S1|P1\n", "semicolons, tabs or vertical bars"),
    "exponent": (b"code\n1.23457E+15\nAB\n", "rounded number"),
    "exponent without plus": (b"code\n1.23457E15\nAB\n", "rounded number"),
    "exponent with comma": (b'code\n"1,23457e15"\nAB\n', "rounded number"),
    "formula without value": (
        workbook(sheet(HEAD + row(2, text("A")) + row(3, text("B", "A3"), FORMULA))),
        "line 3: column B has a formula without a value",
    ),
    "formula with value": (
        workbook(sheet(HEAD + row(2, '<c r="A2" t="str"><f>B2&amp;"9"</f><v>A-9</v></c>'))),
        "Cells have formulas: 1, the first in line 2",
    ),
    "space row": (workbook(sheet(rows(["code"], ["A"], [" "], ["\xa0"], ["B"]))), ""),
    "space row as text": ("code\nA\n \n\xa0\nB\n".encode(), ""),
    "empty inline row": (workbook(sheet(rows(["code"], ["A"], [""]))), ""),
    "hidden row": (
        workbook(sheet(HEAD + row(2, text("A")) + row(3, text("B"), more=HIDDEN))),
        "Hidden or filtered rows have values, and are read: 1, the first in line 3.",
    ),
    "flat row": (
        workbook(sheet(HEAD + row(2, text("A"), more=' ht="0" customHeight="1"'))),
        "Hidden or filtered rows",
    ),
    "all rows hidden": (
        workbook(sheet(HEAD, before='<sheetFormatPr zeroHeight="1"/>')),
        "contains no codes",
    ),
    "hidden column": (
        workbook(
            sheet(
                HEAD + row(2, text("A"), text("1")),
                before='<cols><col min="2" max="2" hidden="1"/></cols>',
            )
        ),
        "The hidden column B has values, and is read: 2.",
    ),
    "hidden first sheet": (
        workbook(sheet(rows(["code"], ["A"])), sheet(""), states={"One": "hidden"}),
        "The first sheet that can be seen, Two, is empty",
    ),
    "hidden first sheet, second with codes": (
        workbook(
            sheet(rows(["code"], ["A"])),
            sheet(rows(["code"], ["B"])),
            states={"One": "veryHidden"},
        ),
        "The hidden sheet One has values, and is not read.",
    ),
    "late second sheet": (
        workbook(sheet(rows(["code"], ["A"])), sheet(row(200, text("code", "ZZ200")))),
        "The sheet Two has values, too, and is not read.",
    ),
    "second sheet with a formula only": (
        workbook(sheet(rows(["code"], ["A"])), sheet(row(9, "<c><f>A1</f></c>"))),
        "The sheet Two has values, too",
    ),
    "empty second sheet": (workbook(sheet(rows(["code"], ["A"])), sheet("")), ""),
    "no visible sheet": (
        workbook(sheet(rows(["code"], ["A"])), states={"One": "hidden"}),
        "The workbook has no sheet that can be seen",
    ),
    "merged cells": (
        workbook(
            sheet(
                HEAD + row(2, text("A")), after='<mergeCells><mergeCell ref="B2:B3"/></mergeCells>'
            )
        ),
        "Cells are merged",
    ),
    "blank header": (
        workbook(
            sheet(
                row(1, text("code", "A1"), text("pin_code", "C1"))
                + row(2, text("A", "A2"), text("note", "B2"))
            )
        ),
        "line 2: column B has a value, but no name in the first line",
    ),
    "blank header as text": (
        b"code,,pin_code\nA,note,1\n",
        "line 2: column B has a value, but no name in the first line",
    ),
    "blank header without values": (b"code,,pin_code\nA,,1\n", ""),
    "far column": (
        workbook(
            sheet(
                row(1, text("code", "A1"), text("pin_code", "XFD1"))
                + row(2, text("A", "A2"), text("1", "XFD2"))
            )
        ),
        "",
    ),
    "trailing comma in the header": (b"code,serial_number,\nABC1,S1,\n", ""),
    "trailing comma in rows": (b"code,serial_number\r\nA,S1,,\r\n,\r\n,\r\n", ""),
    "more cells than names": (b"code\nA,B\n", "line 2: 2 columns instead of 1"),
    "more cells than names in a workbook": (
        workbook(sheet(rows(["code"], ["A", "B"]))),
        "line 2: 2 columns instead of 1",
    ),
    "name twice": (b"code,Code\nA,B\n", "It has the name code twice"),
    "unknown name": (b"code,pin cod\nA,B\n", "column B is unknown: is pin_code meant?"),
    "no names": (b"SECRET-1\nSECRET-2\n", "The name of column A is unknown. Names are: code"),
    "separator line": (b"sep=;\ncode;pin_code\nA;1\n", ""),
    "quoted separator line": (b'"sep=|"\r\ncode|pin_code\r\nA|1\r\n', ""),
    "carriage returns": (b"code\rABCD1\rABCD2\r", ""),
    "UTF-16": ("code\tpin_code\r\nA\t1\r\n".encode("utf-16"), ""),
    "UTF-16 with carriage returns": ("code\r\u220a1\r\u22ea2\r".encode("utf-16"), ""),
    "UTF-16 without mark": ("code\nA\n".encode("utf-16-le"), "The file is not a text"),
    "Latin-1": ("code\nGr\xf6\xdfe\n".encode("latin-1"), "line 2: not UTF-8: save the file as CSV"),
    "old or encrypted": (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504),
        "the old format XLS, or one with a password",
    ),
    "OpenDocument": (
        archive("mimetype", "application/vnd.oasis.opendocument.spreadsheet"),
        "an OpenDocument spreadsheet. Save it as XLSX",
    ),
    "web page": (b"<html><body><table>", "a web page (HTML)"),
    "gzip": (b"\x1f\x8b\x08\x00", "a compressed archive"),
    "PDF": (b"%PDF-1.7", "The file is a PDF"),
    "Word": (archive("word/document.xml"), "The file is a document"),
    "binary workbook": (archive("xl/workbook.bin"), "a binary workbook (XLSB)"),
    "strict": (workbook(sheet(rows(["code"], ["A"])), is_strict=True), ""),
    "curly quotes": ("code\n\u201cABC1\u201d\n".encode(), "begin or end with a quotation mark"),
    "number formula": (b"code\n=00123\n", "another mark of a spreadsheet: 1"),
    "other formula": (b'code\n"=TEXT(1,""000"")"\n', "another mark of a spreadsheet: 1"),
    "open quote": (b"code\nA'\n", "begin or end with a quotation mark"),
    "date": (
        workbook(sheet(HEAD + row(2, '<c s="1"><v>45000</v></c>')), formats=["yyyy-mm-dd"]),
        "line 2: column A has a date",
    ),
    "percentage": (
        workbook(sheet(HEAD + row(2, '<c s="1"><v>0.5</v></c>')), formats=["0.0%"]),
        "line 2: column A has a percentage",
    ),
    "number": (workbook(sheet(HEAD + row(2, "<c><v>123</v></c>"))), "stores as numbers"),
    "number with zeros before it": (
        workbook(sheet(HEAD + row(2, '<c s="1"><v>123</v></c>')), formats=["000000"]),
        "stores as numbers",
    ),
    "line break in a code": (b'code\n"A\nB"\n', "line 3: code contains characters that cannot"),
    "line break in a cell": (
        workbook(sheet(rows(["code"], ["A\nB"]))),
        "line 2: code contains characters that cannot",
    ),
    "error cell": (
        workbook(sheet(HEAD + row(2, '<c t="e"><v>#N/A</v></c>'))),
        "line 2: column A has an error of the spreadsheet",
    ),
    "other length": (
        "\n".join(["code", *(f"CODE-{n}" for n in range(1000, 1098)), "CODE-1", "CODE-2"]).encode(),
        "2 of 100 do not have 9 characters, the first in line 100",
    ),
    "other length of one in ten": (
        "\n".join(["code", *(f"CODE-{n}" for n in range(1000, 1009)), "CODE-1"]).encode(),
        "1 of 10 do not have 9 characters, the first in line 11",
    ),
    "other length of one in three": (
        b"code\nCODE-1000\nCODE-1001\nCODE-1\n",
        "1 of 3 do not have 9 characters, the first in line 4",
    ),
    "other length of one in two": (b"code\nCODE-1000\nCODE-1\n", ""),
    "other lengths of two in ten": (
        "\n".join(["code", *(f"CODE-{n}" for n in range(1000, 1008)), "CODE-1", "C-2"]).encode(),
        "",
    ),
    "other alphabet": (
        "\n".join(["code", *(f"CODE-{n}" for n in range(1000, 1049)), "code-9999"]).encode(),
        "1 of 50 contain small letters, the first in line 51",
    ),
    "missing PINs": (
        "\n".join(["code,pin_code", *(f"C{n},{n}" for n in range(1000, 1039)), "C9999,"]).encode(),
        "1 of 40 have no value",
    ),
}


def priced(number: str, format: str | int) -> bytes:
    """A catalogue with one price, as a number in this format."""
    cell = f'<c s="1"><v>{number}</v></c>'
    data = rows(["kind", "id", "price"]) + row(2, text("product"), text("1"), cell)
    return workbook(sheet(data), formats=[format])


PLACES = "kind;id;name;category;type;currency;active;price;quantity_step\n"
LINE = "product;7001;G prod;7000;voucher;USD;true;{price};1\n"
CATALOGUE: dict[str, tuple[bytes, str]] = {
    "right": ((PLACES + LINE.format(price="1.50")).encode(), ""),
    "comma that shifts": (
        (PLACES + LINE).replace(";", ",").format(price="1,50").encode(),
        "line 2: 10 columns instead of 9",
    ),
    "extra cell": ((PLACES + "category;1;G;;;;;;;x\n").encode(), "10 columns instead of 9"),
    "quoted comma": ((PLACES + LINE.format(price="1,50")).encode(), "Write 1.50: only digits"),
    "thousands": ((PLACES + LINE.format(price='"1,000"')).encode(), "may mean 1.000 or 1000"),
    "three zeros": (
        (PLACES + LINE.format(price="1.000")).encode(),
        "price: 1.000 is read as 1, but may mean 1000",
    ),
    "underscore": ((PLACES + LINE.format(price="1_000")).encode(), "1_000 is not a plain number"),
    "wide digits": ((PLACES + LINE.format(price="\uff11\uff12")).encode(), "not a plain number"),
    "exponent": ((PLACES + LINE.format(price="1.5E2")).encode(), "1.5E2 is not a plain number"),
    "thousand ids": ((PLACES + "category;1.000;G\n").encode(), "id: 1.000 is read as 1"),
    "error name": ((PLACES + "category;1;#N/A\n").encode(), "name is an error of a spreadsheet"),
    "null name": ((PLACES + "category;1;NULL\n").encode(), "name: the word NULL may stand for"),
    "invisible name": (
        (PLACES + "category;1;A\u200bB\n").encode(),
        "name: values contain ZERO WIDTH SPACE",
    ),
    "separator line": (f"sep=;\n{PLACES}category;1;G\n".encode(), ""),
    "short row": ((PLACES + "product;7001;G;7000;voucher;USD\n").encode(), ""),
    "space row": ((PLACES + "category;1;G\n ; \n").encode(), ""),
    "unknown name": (b"kind;id;prise\n", "column C is unknown: is price meant?"),
    "stock formula": (
        workbook(
            sheet(
                rows(["kind", "id", "available_stock"])
                + row(2, text("topup_product"), text("1"), "<c><f>A1</f><v/></c>")
            )
        ),
        "line 2: column C has a formula without a value",
    ),
    "hidden row": (
        workbook(
            sheet(
                rows(["kind", "id", "name"])
                + row(2, text("category"), text("1"), text("G"), more=HIDDEN)
            )
        ),
        "Hidden or filtered rows have values",
    ),
    "rounded price": (
        priced("1.2549", "0.00"),
        "Cells show another number than they have, such as one with fewer decimals: 1",
    ),
    "price as a long number": (priced("1.1000000000000001", 0), ""),
    "price as a date": (priced("45000", 14), "line 2: column C has a date"),
    "price as a percentage": (priced("0.5", 10), "line 2: column C has a percentage"),
    "id as a number": (
        workbook(sheet(rows(["kind", "id"]) + row(2, text("category"), "<c><v>7</v></c>"))),
        "",
    ),
    "id with decimals": (b"kind,id\ncategory,7.5\n", ""),
    "column under no name": (b"kind,id,\ncategory,7,x\n", "3 columns instead of 2"),
    "name with an apostrophe": (b"kind,id,name\ncategory,7,'n Sync\n", ""),
    "total as a name": (b"kind,id,name\ncategory,7,Total\n", "the word Total may stand for"),
    "German heading": (b"Art;Id;Name\n", "The name art is unknown"),
}


# A number, its format, and whether the number that is shown is the one that is read.
FORMATS: list[tuple[str, str | int, bool]] = [
    ("1.25", 4, True),
    ("1.255", 4, False),
    ("1.5", 3, False),
    ("1.5", 1, False),
    ("5", 1, True),
    *(("1.255", number, False) for number in (2, 7, 8, *range(37, 45))),
    *(("1", number, True) for number in (3, 5, 6, *range(37, 45))),
    ("1.25", 44, True),
    ("1234", 11, False),
    ("0.5", 12, False),
    ("1.25", "#,##0.00 \u20ac", True),
    ("1.255", "#,##0.00 \u20ac", False),
    ("1.255", "$#,##0.00", False),
    ("1.255", "#,##0.00\\ [$z\u0142-415]", False),
    ("1.25", "#,##0.00\\ [$z\u0142-415]", True),
    ("1.255", '_-* #,##0.00\\ "\u20ac"_-;\\-* #,##0.00\\ "\u20ac"_-;_-* "-"??\\ "\u20ac"_-', False),
    ("0", '#,##0.00;-#,##0.00;"-"', True),
    ("-1.25", "0.00;[Red]-0.0", False),
    ("1.25", "0.00;[Red]-0.0", True),
    ("1.25", "[>100]0.00;0.0", False),
    ("1234.5", "#\\ ##0.00", True),
    ("12345", '000"-"00', False),
    ("5", '"1"0', False),
    ("5", '"free"', False),
    ("5", ";;;", False),
    ("5000", "0,", False),
    ("5000000", "0.00,,", False),
    ("1.25", "0.00E+00", True),
    ("1.2549", "0.####", True),
    ("1.2549", 'General" \u20ac"', True),
    ("1.2549", "@", True),
    ("1.25", "0.00" + " " * 252, False),
]


def test_a_number_that_is_shown_otherwise_is_doubted() -> None:
    wrong_formats = [
        (number, format, said)
        for number, format, is_shown in FORMATS
        if is_shown != (not (said := said_of_catalogue(priced(number, format))))
    ]
    assert wrong_formats == []


# A format, and the numbers and texts of which nothing can be seen in it.
UNSEEN: list[tuple[str | int, str]] = [
    (";;;", "5 -5 0 A"),
    (";;", "5 -5 0"),
    ("0;-0;;@", "0"),
    ('0;-0;"";@', "0"),
    ('#,##0;-#,##0;"-"', ""),
    ('0;;"x;y"', "-5"),
    ("#,###", "0"),
    ("#", "0"),
    ("0", ""),
    ("General", ""),
    (0, ""),
    (3, ""),
    ("@", ""),
    ("General;General;General;General", ""),
    ('0;0;0;"text"', "A"),
    (" ", "5 -5 0"),
    ('_-;\\ ;* ;"  "', "5 -5 0 A"),
    ('[=0]"";0', "0"),
    ("0" + " " * 255, ""),
    ("0;0;0;" + "@" * 10, ""),
    ("0;0;0;@;", ""),
]


def test_a_value_that_its_format_hides_is_doubted() -> None:
    wrong_formats = []
    for format, hidden in UNSEEN:
        for value in ("5", "-5", "0", "A"):
            cell = styled("A") if value == "A" else f'<c s="1"><v>{value}</v></c>'
            data = rows(["kind", "id", "name"]) + row(2, text("category"), text("1"), cell)
            said = said_of_catalogue(workbook(sheet(data), formats=[format]))
            if ("that cannot be seen" in said) != (value in hidden.split()):
                wrong_formats.append((format, value, said))
            if "another number" in said and "that cannot be seen" in said:
                wrong_formats.append((format, value, said))
    assert wrong_formats == []


def solid(colour: str) -> str:
    colours = f'<fgColor {colour}/><bgColor rgb="FF123456"/>'
    return f'<patternFill patternType="solid">{colours}</patternFill>'


WHITE, NO_FILL = 'rgb="FFFFFFFF"', '<patternFill patternType="none"/>'
# The colour of letters, a fill, and whether nothing can be seen.
COLOURS: list[tuple[str, str, bool]] = [
    *((WHITE, fill, True) for fill in ("", NO_FILL, "<patternFill/>", solid(WHITE))),
    *((WHITE, solid(white), True) for white in ('theme="0"', 'indexed="9"', 'rgb="ffffff"')),
    *((white, "", True) for white in ('theme="0"', 'indexed="1"', 'theme="0" tint="0"')),
    *((WHITE, solid(blue), False) for blue in ('rgb="FF0000FF"', 'theme="4"', 'indexed="12"')),
    (WHITE, '<patternFill patternType="gray125"/>', False),
    (
        WHITE,
        '<gradientFill><stop position="0"><color rgb="FFFFFFFF"/></stop></gradientFill>',
        False,
    ),
    ('theme="0" tint="-0.15"', "", False),
    ('theme="0" tint="-0.15"', solid('theme="0" tint="-0.15"'), True),
    ('theme="4"', solid('theme="4"'), True),
    ('theme="4"', solid('theme="4" tint="0.4"'), False),
    ('rgb="FF000000"', solid('theme="1"'), True),
    ('rgb="FF000000"', "", False),
    ('auto="1"', solid('rgb="FF000000"'), False),
    ('auto="1"', "", False),
]


def coloured(colour: str, fill: str, cell: str) -> bytes:
    """A catalogue with this cell, whose style 1 has this colour and fill."""
    data = rows(["kind", "id", "name"]) + row(2, text("category"), text("1"), cell)
    fonts = f'<fonts><font><sz val="11"/></font><font><b/><color {colour}/></font></fonts>'
    fills = f"<fills><fill>{NO_FILL}</fill><fill>{fill}</fill></fills>"
    borders = f"<borders><border><left><color {WHITE}/></left></border></borders>"
    other = '<cellStyleXfs><xf fontId="1"/></cellStyleXfs><cellXfs><xf numFmtId="0"/>'
    return edit_parts(
        workbook(sheet(data), formats=[1]),
        ('<cellXfs><xf numFmtId="0"/>', fonts + fills + borders + other),
        ('<xf numFmtId="1"/>', '<xf numFmtId="1" fontId="1" fillId="1"/>'),
        ("</cellXfs>", f"</cellXfs><dxfs><dxf><font><color {WHITE}/></font></dxf></dxfs>"),
    )


def test_letters_in_the_colour_of_their_cell_are_doubted() -> None:
    cells = (styled("A"), '<c s="1"><v>5</v></c>', '<x:c s="01" t="b"><x:v>1</x:v></x:c>')
    wrong_colours = [
        (colour, fill, cell, said)
        for colour, fill, is_unseen in COLOURS
        for cell in cells
        if ("that cannot be seen" in (said := said_of_catalogue(coloured(colour, fill, cell))))
        != is_unseen
    ]
    assert wrong_colours == []


def test_a_zero_that_its_sheet_hides_is_doubted() -> None:
    cells = "<c><v>0</v></c>"
    data = rows(["kind", "id", "name"]) + row(2, text("category"), text("1"), cells)
    view = '<sheetViews><sheetView showZeros="0"/></sheetViews>'
    assert "1, the first in C2" in said_of_catalogue(workbook(sheet(data, before=view)))
    assert said_of_catalogue(workbook(sheet(data))) == ""


def test_a_cell_without_a_style_has_the_first_one() -> None:
    data = rows(["kind", "id", "price"]) + row(2, text("product"), text("1"), "<c><v>1.25</v></c>")
    first = ('<cellXfs><xf numFmtId="0"/>', '<cellXfs><xf numFmtId="1"/>')
    said = said_of_catalogue(edit_parts(workbook(sheet(data)), first))
    assert "Cells show another number" in said


REFERENCE_NAMES = ["product_id", "variation_id", "merchant_reference"]
REFERENCE_HEAD = ",".join(REFERENCE_NAMES) + "\n"
LONG_NUMBERS = row(2, text("7"), text(""), "<c><v>1.2345678901234567E+19</v></c>")
REFERENCES: dict[str, tuple[bytes, str]] = {
    "long number in a workbook": (
        workbook(sheet(rows(REFERENCE_NAMES) + LONG_NUMBERS)),
        "merchant_reference: numbers have more than 15 digits",
    ),
    "long number as text": (
        workbook(sheet(rows(REFERENCE_NAMES, ["7", "", "12345678901234567890"]))),
        "",
    ),
    "number in a workbook": (
        workbook(sheet(rows(REFERENCE_NAMES) + row(2, text("7"), "<c/>", "<c><v>12</v></c>"))),
        "",
    ),
    "long number that ends with zeros": (
        f"{REFERENCE_HEAD}7,,12345678901234500000\n".encode(),
        "numbers have more than 15 digits",
    ),
    "long number": (f"{REFERENCE_HEAD}7,,12345678901234567890\n".encode(), ""),
    "rounded number": (f"{REFERENCE_HEAD}7,,1.23457E15\n".encode(), "look like rounded numbers"),
    "number with a decimal": (f"{REFERENCE_HEAD}7,,12.0\n".encode(), "look like rounded numbers"),
    "version number": (f"{REFERENCE_HEAD}7,,v1.0\n".encode(), ""),
    "NULL": (f"{REFERENCE_HEAD}7,,NULL\n".encode(), "the word NULL may stand for nothing"),
    "error word": (f"{REFERENCE_HEAD}7,,#REF!\n".encode(), "an error of a spreadsheet: #REF!"),
    "mixed scripts": (f"{REFERENCE_HEAD}7,,\u0410BC\n".encode(), "(Cyrillic) may look like"),
    "one other script": (f"{REFERENCE_HEAD}7,,\u0410\u0411\n".encode(), ""),
    "invisible": (f"{REFERENCE_HEAD}7,,A\u200bB\n".encode(), "contains ZERO WIDTH SPACE"),
    "more cells than names": (f"{REFERENCE_HEAD}7,,A,B\n".encode(), "4 columns instead of 3"),
    "short row": (f"{REFERENCE_HEAD}7\n".encode(), ""),
    "product id with decimals": (f"{REFERENCE_HEAD}7.5,,A\n".encode(), "must be whole numbers"),
    "product id in wide digits": (f"{REFERENCE_HEAD}\uff17,,A\n".encode(), "must be whole"),
    "separator line": (
        ("sep=;\n" + REFERENCE_HEAD.replace(",", ";") + "7;;A\n").encode(),
        "",
    ),
    "carriage returns": ((REFERENCE_HEAD + "7,,A\n").replace("\n", "\r").encode(), ""),
    "UTF-16": ((REFERENCE_HEAD + "7,,A\n").encode("utf-16"), ""),
    "unknown name": (b"product_id,variation_id,reference\n", "is merchant_reference meant?"),
    "formula without value": (
        workbook(sheet(rows(REFERENCE_NAMES) + row(2, text("7"), "<c/>", "<c><f>A1</f></c>"))),
        "line 2: column C has a formula without a value",
    ),
    "hidden row": (
        workbook(
            sheet(rows(REFERENCE_NAMES) + row(2, text("7"), text(""), text("A"), more=HIDDEN))
        ),
        "Hidden or filtered rows have values",
    ),
    "unknown product": (
        f"{REFERENCE_HEAD}8,,A\n".encode(),
        "line 2: the catalogue has no product 8",
    ),
}
# Files that are no table, and what is said of each, whatever is imported.
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(5000)
KINDS: dict[str, tuple[bytes, str]] = {
    "old or encrypted": (OLE, "the old format XLS, or one with a password"),
    "encrypted": (OLE + "EncryptedPackage".encode("utf-16-le"), "protected by a password"),
    "XLS": (OLE + "Workbook\0".encode("utf-16-le"), "a workbook in the old format XLS. Open it"),
    "DOC": (OLE + "WordDocument\0".encode("utf-16-le"), "a document, not a table"),
    "OpenDocument": (
        archive("mimetype", "application/vnd.oasis.opendocument.spreadsheet"),
        "an OpenDocument spreadsheet. Save it as XLSX or as CSV UTF-8: open it",
    ),
    "OpenDocument text": (
        archive("mimetype", "application/vnd.oasis.opendocument.text"),
        "a document, not a table",
    ),
    "Word": (archive("word/document.xml"), "a document, not a table"),
    "presentation": (archive("ppt/presentation.xml"), "a document, not a table"),
    "Numbers": (archive("Index/Document.iwa"), "a Numbers spreadsheet"),
    "binary workbook": (archive("xl/workbook.bin"), "a binary workbook (XLSB)"),
    "archive": (archive("codes.csv", "code\nA\n"), "a compressed archive"),
    "empty archive": (b"PK\x05\x06" + bytes(18), "a compressed archive"),
    "broken archive": (b"PK\x03\x04 no workbook", "The workbook cannot be read"),
    "tar": (b"codes.csv" + bytes(248) + b"ustar\x0000", "a compressed archive"),
    "gzip": (b"\x1f\x8b\x08\x00", "a compressed archive"),
    "zstd": (b"\x28\xb5\x2f\xfd", "a compressed archive"),
    "PDF": (b"%PDF-1.7", "The file is a PDF"),
    "RTF": (b"{\\rtf1", "a document, not a table"),
    "web page": (b"\xef\xbb\xbf <!-- x --><html><body><table>", "a web page (HTML)"),
    "web page of a spreadsheet": (b"<table><tr><td>code</td></tr></table>", "a web page (HTML)"),
    "web page as one file": (b"MIME-Version: 1.0\r\nX-Document-Type: Workbook\r\n", "a web page"),
    "XML": (b'<?xml version="1.0"?><ss:Workbook/>', "The file is XML"),
    "XML without a first line": (b"<ss:Workbook/>", "The file is XML"),
    "picture": (b"\x89PNG\r\n", "a picture"),
    "animated picture": (b"GIF89a", "a picture"),
    "program": (b"\x7fELF" + bytes(60), "not a text"),
}


def said_of_codes(content: bytes, product: Product, path: Path) -> str:
    """The problems or the doubts of a file of codes."""
    path.write_bytes(content)
    try:
        _shelf, checked = check_codes(product_id=product.pk, path=path)
    except InputProblem as problem:
        return str(problem)
    return " ".join(checked.doubts)


def said_of_catalogue(content: bytes) -> str:
    """The problems or the doubts of a catalogue file."""
    try:
        table = parse_table(content)
    except InputProblem as problem:
        return str(problem)
    return "; ".join(table.problems) or " ".join(table.doubts)


def said_of_references(content: bytes, account: Account) -> str:
    """The problems or the doubts of a file of references."""
    try:
        return " ".join(check_references(account=account, data=content).doubts)
    except InputProblem as problem:
        return str(problem)


def wrong(answers: dict[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """The cases whose answer is not the expected one: what is expected, and what was said."""
    return {
        name: (expected, said)
        for name, (expected, said) in answers.items()
        if expected not in said or (said and not expected)
    }


def test_each_file_of_codes_has_its_right_answer(tmp_path: Path) -> None:
    product = make_product()
    path = tmp_path / "codes"
    answers = {
        name: (expected, said_of_codes(content, product, path))
        for name, (content, expected) in CODES.items()
    }
    assert wrong(answers) == {}
    assert "SECRET" not in str(answers)


def test_each_catalogue_file_has_its_right_answer() -> None:
    answers = {
        name: (expected, said_of_catalogue(content))
        for name, (content, expected) in CATALOGUE.items()
    }
    assert wrong(answers) == {}


def test_each_file_of_references_has_its_right_answer() -> None:
    make_product(id=7)
    account = make_account()
    answers = {
        name: (expected, said_of_references(content, account))
        for name, (content, expected) in REFERENCES.items()
    }
    assert wrong(answers) == {}


@pytest.mark.parametrize("name", ["file.csv", "file.xls", "file.json", "file"])
def test_another_kind_of_file_is_named_in_each_importer(tmp_path: Path, name: str) -> None:
    product, account, path = make_product(), make_account(), tmp_path / name
    answers = {}
    for kind, (content, expected) in KINDS.items():
        answers[f"{kind} as codes"] = expected, said_of_codes(content, product, path)
        answers[f"{kind} as references"] = expected, said_of_references(content, account)
        with pytest.raises(InputProblem) as refused:
            check_catalogue(path=path)
        answers[f"{kind} as catalogue"] = expected, str(refused.value)
    assert wrong(answers) == {}


def test_a_catalogue_is_recognised_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.xls"
    for content in (b"kind\tid\tname\ncategory\t7\tGames\n", b'{"categories": []}'):
        path.write_bytes(content)
        check_catalogue(path=path)


def test_a_short_row_means_the_same_as_empty_cells_at_its_end() -> None:
    for short in (
        CATALOGUE["short row"][0],
        CATALOGUE["short row"][0][:-1] + b";;;\n",
        workbook(
            sheet(
                rows(
                    PLACES.strip().split(";"),
                    ["product", "7001", "G", "7000", "voucher", "USD", "", "", ""],
                )
            )
        ),
    ):
        (product,) = parse_table(short)["products"]
        assert product == {
            "id": 7001,
            "name": "G",
            "category": 7000,
            "type": "voucher",
            "currency": "USD",
        }
    (product,) = parse_table(b"kind,id,price,name\nproduct,7001,,G\n")["products"]
    assert product == {"id": 7001, "price": None, "name": "G"}


@pytest.mark.parametrize(
    "again",
    [
        "'00123456789",
        '="00123456789"',
        '"""00123456789"""',
        "\u201c00123456789\u201d",
        "\u201900123456789",
        "' 00123-456789 '",
        "\uff0200123456789\uff02",
    ],
)
def test_a_mark_of_a_spreadsheet_makes_no_other_code(tmp_path: Path, again: str) -> None:
    product = make_product()
    path = tmp_path / "codes.csv"
    path.write_text("code\n00123456789\n")
    import_codes(product_id=product.pk, path=path, imported_by="test")
    path.write_text(f"code\n{again}\n", encoding="utf-8")
    with pytest.raises(InputProblem, match="line 2 is already in stock"):
        check_codes(product_id=product.pk, path=path)


def test_each_doubt_is_confirmed_by_its_own_id(tmp_path: Path) -> None:
    product = make_product()
    path = tmp_path / "codes.csv"
    path.write_text("code,pin_code\nNULL,-\nA',1\n")
    with pytest.raises(Doubtful) as refused:
        import_codes(product_id=product.pk, path=path, imported_by="test")
    ids = [doubt_id(one) for one in refused.value.doubts]
    assert len(set(ids)) == 3
    for some in ([], ids[:2], [*ids[1:], "00000000"]):
        with pytest.raises(Doubtful):
            import_codes(product_id=product.pk, path=path, imported_by="test", confirmed=some)
    batch = import_codes(product_id=product.pk, path=path, imported_by="test", confirmed=ids)
    assert batch.number == 2


def test_a_number_has_the_zeros_that_its_format_shows() -> None:
    table = open_table(BytesIO(CODES["number with zeros before it"][0]), COLUMNS)
    assert [cells[0] for _line, cells, _problems in table.rows] == ["000123"]


def test_a_far_value_is_under_its_name() -> None:
    table = open_table(BytesIO(CODES["far column"][0]), COLUMNS)
    assert [(line, cells) for line, cells, _problems in table.rows] == [(2, ["A", "1"])]
    assert table.sheet == "One"


def test_escaped_characters_of_a_workbook_are_read() -> None:
    book = workbook(sheet(rows(["code"], ["A_x0042_C"], ["A_x005F_x0042_"])))
    table = open_table(BytesIO(book), COLUMNS)
    assert [cells for _line, cells, _problems in table.rows] == [["ABC"], ["A_x0042_"]]
