"""The same table is read alike from each kind of file, and from each way to write it."""

import csv
import io
import random
import time
import zipfile
from dataclasses import replace
from itertools import chain, product
from typing import Any
from xml.sax.saxutils import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalogue.imports.code_file import COLUMNS as CODES
from core.files import sheet_rows, sheet_texts, workbook, xml_parts
from core.files import tables as tables_of_files
from core.files.sheet_rows import column_name
from core.files.tables import Columns, Table, read_bytes
from core.inputs import InputProblem
from tests import spreadsheets

NAMES = ("code", "serial_number", "pin_code", "note")
COLUMNS = Columns(
    known=NAMES,
    required=("code",),
    keys=frozenset(NAMES[:3]),
    names=frozenset({"note"}),
    most=CODES.most,
)
MARKS = [
    "",
    "'x",
    '="00123"',
    '"x"',
    "a;b",
    "a,b",
    "a|b",
    "NULL",
    "#N/A",
    " x ",
    "_x0041_",
    "\u200b",
]
part = st.one_of(
    st.sampled_from(MARKS),
    st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=8),
)
tables = st.lists(st.lists(part, min_size=4, max_size=4), min_size=1, max_size=6)


def read(content: bytes) -> tuple[list[Any], list[str]]:
    """The cells and the problems of each row, and the doubts, without lines."""
    table: Table = read_bytes(content, COLUMNS)
    rows = [(cells, sorted(problems.values())) for _line, cells, problems in table.rows]
    return rows, sorted(doubt.partition("the first")[0] for doubt in table.doubts.sentences())


def as_text(
    rows: list[list[str]], delimiter: str, newline: str, encoding: str, quoting: Any
) -> bytes:
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=delimiter, lineterminator=newline, quoting=quoting)
    writer.writerows(rows)
    return file.getvalue().encode(encoding)


def escaped(text: str) -> str:
    """A text as XLSX stores it."""
    return text.replace("_x", "_x005F_x")


def as_workbook(rows: list[list[str]], kind: str, *, places: bool, is_strict: bool) -> bytes:
    texts: list[str] = []

    def cell(text: str, place: str) -> str:
        where = f' r="{place}"' if places else ""
        xml = f'<t xml:space="preserve">{escape(escaped(text))}</t>'
        if kind == "shared":
            texts.append(f"<si>{xml}</si>")
            return f'<c{where} t="s"><v>{len(texts) - 1}</v></c>'
        if kind == "rich":
            parts = "".join(
                f'<r><rPr><b/></rPr><t xml:space="preserve">{escape(one)}</t></r>'
                for one in escaped(text)
            )
            texts.append(f'<si>{parts}<rPh sb="0" eb="1"><t>hint</t></rPh></si>')
            return f'<c{where} t="s"><v>{len(texts) - 1}</v></c>'
        return f'<c{where} t="inlineStr"><is>{xml}</is></c>'

    lines = "".join(
        f"<row{f' r={chr(34)}{line}{chr(34)}' if places else ''}>"
        + "".join(cell(text, f"{column_name(place)}{line}") for place, text in enumerate(row))
        + "</row>"
        for line, row in enumerate(rows, start=1)
    )
    wrong = '<dimension ref="A1:A1"/>'
    return spreadsheets.workbook(
        spreadsheets.sheet(lines, before=wrong), texts=texts, is_strict=is_strict
    )


@settings(deadline=None)
@given(tables, st.randoms(use_true_random=False))
def test_a_table_is_read_alike_from_each_kind_of_file(
    table: list[list[str]], chance: random.Random
) -> None:
    rows = [list(NAMES), *table]
    kind = chance.choice(["shared", "inline", "rich"])
    places, is_strict = chance.random() < 0.5, chance.random() < 0.5
    expected = read(as_workbook(rows, kind, places=places, is_strict=is_strict))
    assert read(as_workbook(rows, "inline", places=True, is_strict=False)) == expected
    for delimiter in ",;\t":
        newline = chance.choice(["\n", "\r\n", "\r"])
        encoding = chance.choice(["utf-8", "utf-8-sig", "utf-16"])
        quoting = chance.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
        assert read(as_text(rows, delimiter, newline, encoding, quoting)) == expected


def test_formulas_with_values_are_their_values() -> None:
    data = spreadsheets.row(1, spreadsheets.text("code")) + spreadsheets.row(
        2, '<c r="A2" t="str"><f>"A"&amp;"B"</f><v>AB</v></c>'
    )
    rows, doubts = read(spreadsheets.workbook(spreadsheets.sheet(data)))
    assert rows == [(["AB"], [])]
    assert len(doubts) == 1


ROW_STARTS = [
    '<row r="%d">',
    *('<row r="%d" spans="1:2" x:y="1" xmlns:x="z">', '<row r="%d" hidden="1">', "<row>"),
    *('<row r="%d" ht="0">', '<row r="%d" ht="1" ht="1">', '<row r="%d" a="&amp;">', "<x:row>"),
]
CELLS = [
    *('<c r="A%d" t="s"><v>0</v></c>', '<c r="B%d" t="inlineStr"><is><t>b</t></is></c>'),
    *('<c r="A%d" s="1"><v>1.5</v></c>', '<c r="B%d" t="s"><v>1</v></c>', '<c r="B%d"/>', "<c/>"),
    *('<c r="A%d" t="e"><v>#N/A</v></c>', '<c r="B%d" t="inlineStr"><v>1</v></c>', "<c>\n</c>"),
    *('<c r="A%d" t="s"><is><t>b</t></is></c>', '<c r="D%d" t="zz"><v>1</v></c>', "<v>1</v>"),
    *('<c r="A%d" t="s"><v>-1</v></c>', '<c r="A%d" t="s"><v>99</v></c>', "<c><v>1</v></c>"),
    *('<c r="A%d" t="str"><f>1</f><v/></c>', '<c t="s" r="A%d"><v> 1 </v></c>', "<rPh>", "</c>"),
    *('<c r="A%d" t="str"><v>&#49;</v></c>', '<c r="A1" t="s"><v>0</v></c>', "</rPh>", "<c>"),
    *('<c r="A%d" s="1"><v>12</v></c>', '<c s="0"><v>012</v></c>', '<c s="9"><v>12</v></c>'),
    *('<c s="1"><v>-12</v></c>', '<c s="2"><v>12</v></c>', "<c><v>1234567890123456</v></c>"),
    '<c r="A%d" t="inlineStr"><is><t xml:space="preserve"> _x0041_\u00e9</t></is></c>',
    '<c r="A%d" t="inlineStr"><is><r><t>y</t></r><rPh><t>z</t></rPh></is></c>',
    '<c r="A%d" t="inlineStr"><is><t>\r\n]]&gt;</t></is></c>',
]
TEXTS = [
    *(
        "<si><t>a</t></si>" * 10 + f"<si><t>{odd}</t></si>"
        for odd in ("a &amp; b", "]", "x" * 20_000)
    ),
    *("<si><t>one</t></si>", "<si><r><t>o</t></r><rPh><t>x</t></rPh></si>", "<si/>"),
    *("<!-- <si><t>0</t></si> --><si><t>one</t></si>", "<si><t> _x0042_</t></si>", "<si>\n</si>"),
    "<other><![CDATA[</si>]]></other><si><t>one</t></si>",
]
HIDDEN = ["", "<cols><col min='1' max='1' hidden='1'/></cols>"]
AROUND = [
    *("%s", "<!-- %s -->", "<![CDATA[%s]]>", "<?x %s?>", "<other>%s</other>", "\n%s\n"),
    *("</sheetData>%s<sheetData>", "<c><v>%s</v></c>", "<rPh>%s</rPh>", "<t>%s</t>"),
]
PLAIN = f'<row r="%d"><c r="A%d" t="s"><v>1</v></c>{CELLS[1]}</row>'


@pytest.mark.parametrize("piece", [110, 150, 10_000])
def test_plain_rows_are_read_as_the_parser_reads_them(
    monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    """Most rows are read without the XML parser. Whatever is in them and around them, nothing else
    is read."""
    monkeypatch.setattr(xml_parts, "PIECE", piece)
    header = spreadsheets.rows(["code", "serial_number"])
    books = {}
    for around, start, cell, text, hidden in chain(
        product(AROUND, ROW_STARTS[:1], CELLS[:1], TEXTS[:1], HIDDEN[:1]),
        product(AROUND[:1], ROW_STARTS, CELLS[:1], TEXTS[:1], HIDDEN[:1]),
        product(AROUND[:1], ROW_STARTS[:1], CELLS, TEXTS[:1], HIDDEN),
        product(AROUND[:1], ROW_STARTS[:1], CELLS[:1], TEXTS, HIDDEN[:1]),
    ):
        row = start + cell + CELLS[1] + ("</x:row>" if "x:row" in start else "</row>")
        rows = row.replace("%d", "2") + PLAIN.replace("%d", "3")
        data = header + around.replace("%s", rows) + PLAIN.replace("%d", "4")
        one = spreadsheets.sheet(data, before=hidden)
        books[data, text, hidden] = spreadsheets.workbook(
            one, texts=[text, "<si><t>two</t></si>"], formats=["0", "0.00E+00"]
        )
    found = {which: result_of(book) for which, book in books.items()}
    for kind in (sheet_rows.Sheet, sheet_texts.Texts):
        monkeypatch.setattr(kind, "is_between", lambda _self: False)
    assert found == {which: result_of(book) for which, book in books.items()}
    assert sum(not isinstance(one, str) for one in found.values()) > len(found) / 2


def test_nothing_is_read_after_the_end_of_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of the part and what follows may be in two pieces, wherever they are cut."""
    monkeypatch.setattr(xml_parts, "PIECE", piece := 150)
    rows = spreadsheets.rows(["code"], ["A"]) + PLAIN.replace("%d", "3")
    item = "<si><t>one</t></si>"
    for gap in range(piece):
        late_row = spreadsheets.sheet(rows) + " " * (2 * piece + gap) + PLAIN.replace("%d", "4")
        late_text = item + item + "</sst>" + " " * (2 * piece + gap) + item
        for sheet, texts in ((late_row, [item, item]), (spreadsheets.sheet(rows), [late_text])):
            said = result_of(spreadsheets.workbook(sheet, texts=texts))
            assert "cannot be read" in str(said), (gap, said)


def result_of(book: bytes) -> object:
    try:
        table = read_bytes(book, COLUMNS)
        return list(table.rows), table.doubts.sentences()
    except InputProblem as problem:
        return str(problem)


def many_empty_cells() -> bytes:
    """A small workbook of 70 sheets with a row of 1,040,000 empty cells each."""
    cells = spreadsheets.sheet("<row r='1'>" + "<c/>" * 1_040_000 + "</row>")
    book = io.BytesIO(
        spreadsheets.workbook(*[spreadsheets.sheet("")] * 70, names=[str(n) for n in range(70)])
    )
    packed = io.BytesIO()
    with zipfile.ZipFile(book) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for one in old.namelist():
            new.writestr(one, cells if "sheets/" in one and "_rels" not in one else old.read(one))
    return packed.getvalue()


def many_short_rows() -> bytes:
    data = spreadsheets.rows(["code"]) + "<row/>" * 5_000_000
    return spreadsheets.workbook(spreadsheets.sheet(data))


@pytest.mark.parametrize(
    "data",
    [
        '<row a="' + "x" * 20_000_000 + '"/>',
        "".join(f"<a{n}/>" for n in range(100_000)),
        "<a>" * 100_000 + "</a>" * 100_000,
    ],
    ids=["a long tag", "many names", "deep"],
)
def test_long_tags_many_names_and_deep_elements_are_refused(data: str) -> None:
    """The parser reads an unfinished tag again with each piece, and remembers every name and each
    open element: 200 kB of these took 1.7 GB."""
    book = spreadsheets.workbook(spreadsheets.sheet(spreadsheets.rows(["code"]) + data))
    started = time.process_time()
    with pytest.raises(InputProblem, match="cannot be read"):
        read(book)
    assert time.process_time() - started < 20


def test_cells_that_share_a_long_text_are_counted() -> None:
    """Each of a million rows was as long as the longest text, which the file has once."""
    columns = replace(COLUMNS, most=COLUMNS.most._replace(unpacked_bytes=30_000_000))
    long = "<si><t>" + " " * 500_000 + "A</t></si>"
    for cells, rows in ((1, 100), (3, 1)):
        data = spreadsheets.rows(["code"])
        data += ("<row>" + "<c t='s'><v>0</v></c>" * cells + "</row>") * rows
        book = spreadsheets.workbook(spreadsheets.sheet(data), texts=[long])
        with pytest.raises(InputProblem, match="too large"):
            list(read_bytes(book, columns).rows)


@pytest.mark.parametrize("item", ["<si><t>{}</t></si>", "<si><r><t>{}</t></r></si>"])
def test_the_texts_of_a_workbook_take_bounded_memory(item: str) -> None:
    """6,700,000 texts that no cell uses took 643 MB; one wide letter makes a text four times as
    large."""
    few_bytes = replace(COLUMNS, most=COLUMNS.most._replace(unpacked_bytes=1_000_000))
    few_elements = replace(COLUMNS, most=COLUMNS.most._replace(elements=80_000))

    def is_read(texts: list[str], columns: Columns) -> bool:
        items = [item.format(text) for text in texts]
        book = spreadsheets.workbook(
            spreadsheets.sheet(spreadsheets.rows(["code"], ["A"])), texts=items
        )
        try:
            return len(list(read_bytes(book, columns).rows)) == 1
        except InputProblem as problem:
            assert "too large when it is unpacked" in str(problem)  # noqa: PT017
            return False

    many, long = [f"T{number:04}" for number in range(22_000)], ["A" * 90_000] * 9
    assert is_read(many[:15_000], few_bytes)
    assert not is_read(many, few_bytes)
    assert is_read(long, few_bytes)
    assert not is_read([f"{text}\U0001f600" for text in long], few_bytes)
    assert is_read(many[:19_000], few_elements)
    assert not is_read(many, few_elements)


def test_an_escape_in_a_large_table_of_texts_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml_parts, "PIECE", 150)
    texts = ["<si><t>a</t></si>"] * 20 + ["<si><t>_x0041_B</t></si>"]
    data = spreadsheets.rows(["code"]) + "<row><c t='s'><v>20</v></c></row>"
    rows, _doubts = read(spreadsheets.workbook(spreadsheets.sheet(data), texts=texts))
    assert rows == [(["AB"], [])]


def test_a_text_that_cells_refer_to_must_be_short() -> None:
    for length, is_short in ((999_999, True), (1_000_001, False)):
        item = f"<si><r><t>{'A' * (length - 9)}</t></r><r><t>{'B' * 9}</t></r></si>"
        book = spreadsheets.workbook(
            spreadsheets.sheet(spreadsheets.rows(["code"], ["A"])), texts=[item]
        )
        said = result_of(book)
        assert ("too large when it is unpacked" not in str(said)) == is_short


@pytest.mark.parametrize(
    ("place", "style"),
    [
        ("numFmts", '<numFmt numFmtId="{}" formatCode="0"/>'),
        *(("fonts", "<font/>"), ("fills", "<fill/>"), ("cellXfs", '<xf numFmtId="{}"/>')),
    ],
)
def test_a_workbook_has_as_many_styles_as_spreadsheets_allow(
    monkeypatch: pytest.MonkeyPatch, place: str, style: str
) -> None:
    monkeypatch.setattr(workbook, "MAX_STYLES", 5)
    book = spreadsheets.workbook(spreadsheets.sheet(spreadsheets.rows(["code"], ["A"])))

    def with_styles(count: int) -> bytes:
        styles = "".join(style.format(number) for number in range(count))
        part = f"<{place}>{styles}</{place}><cellXfs>"
        return spreadsheets.edit_parts(book, ("<cellXfs>", part))

    assert len(read(with_styles(4))[0]) == 1  # the workbook has one, too
    with pytest.raises(InputProblem, match="too large when it is unpacked"):
        read(with_styles(6))


def test_many_number_formats_do_not_take_long() -> None:
    styles = "".join(
        f'<numFmt numFmtId="{number}" formatCode="{"0.0;" * 60}"/>'
        for number in range(workbook.MAX_STYLES)
    )
    uses = "".join(f'<xf numFmtId="{number}"/>' for number in range(workbook.MAX_STYLES - 1))
    book = spreadsheets.edit_parts(
        spreadsheets.workbook(spreadsheets.sheet(spreadsheets.rows(["code"], ["A"]))),
        ("<cellXfs>", f"<numFmts>{styles}</numFmts><cellXfs>{uses}"),
    )
    started = time.process_time()
    assert len(read(book)[0]) == 1
    assert time.process_time() - started < 10


def test_a_text_has_as_many_lines_as_a_sheet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables_of_files, "MAX_ROWS", 5)
    assert len(read(b"code\nA\nB\nC\nD\n")[0]) == 4
    for more in (b"E", b'"', b"\n\n\nE"):
        with pytest.raises(InputProblem, match="more than 5 lines"):
            read(b"code\nA\nB\nC\nD\n" + more + b"\n")


def test_a_file_has_at_most_so_many_odd_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are looked at one by one, which takes longer than all else."""
    monkeypatch.setattr(tables_of_files, "MOST_ODD_VALUES", 3)
    assert len(read("code\nÄ\nA-1\nÖ\nNULL\n".encode())[0]) == 4
    with pytest.raises(InputProblem, match="More than 3 values have unusual characters"):
        read("code\nÄ\nA-1\nÖ\nNULL\nÜ\n".encode())


def test_a_workbook_has_at_most_so_many_numbers_to_convert(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sheet_rows, "MOST_ODD_VALUES", 3)

    def book(*numbers: str) -> bytes:
        cells = "".join(f"<row><c><v>{one}</v></c></row>" for one in numbers)
        return spreadsheets.workbook(spreadsheets.sheet(spreadsheets.rows(["code"]) + cells))

    usual = ["7", "123456789012345", "1234567.125", "0.5", "1e3", "-2"]
    rows, _doubts = read(book(*usual))
    assert [cells[0] for cells, _problems in rows] == [*usual[:4], "1000", "-2"]
    with pytest.raises(InputProblem, match="More than 3 values have unusual"):
        read(book(*usual, "0.25"))


def one_row(text: str) -> bytes:
    return spreadsheets.workbook(
        spreadsheets.sheet(spreadsheets.rows(["code"], *[[text[:999_999]]] * 3))
    )


def test_no_text_of_a_row_takes_long() -> None:
    """Each of these took minutes, because a pattern tried each part of it from each place, or
    because each letter was looked up by its name."""
    letters = "".join(map(chr, range(0x4E00, 0x9FFF)))
    slow = []
    for text in ("|" * 10**6, "-_" * 500_000, "A" + letters * 50, "\ufdfa" * 10**6, "a." * 500_000):
        content = one_row(text)
        started = time.process_time()
        rows, _doubts = read(content)
        assert len(rows) == 3
        if (seconds := time.process_time() - started) > 20:
            slow.append((text[:2], seconds))
    assert slow == []


@pytest.mark.parametrize("make", [many_empty_cells, many_short_rows])
def test_a_hostile_workbook_is_refused_in_bounded_time(make: Any) -> None:
    content = make()
    assert len(content) < 2_000_000
    started = time.process_time()
    with pytest.raises(InputProblem):
        read(content)
    assert time.process_time() - started < 20


def test_the_time_for_wide_rows_grows_with_their_elements() -> None:
    """Four times the elements take about four times as long."""
    ratios = []
    for _ in range(5):  # another program may have shared the core
        ratios.append(seconds_for_wide_rows(32) / seconds_for_wide_rows(8))
        if ratios[-1] < 8:
            return
    assert ratios == []


def seconds_for_wide_rows(count: int) -> float:
    data = spreadsheets.rows(["code"]) + ("<row>" + "<c><v>1</v></c>" * 16_000 + "</row>") * count
    table = replace(COLUMNS, most=CODES.most._replace(elements=2 * 16_000 * (count - 1)))
    book = spreadsheets.workbook(spreadsheets.sheet(data))
    started = time.process_time()
    with pytest.raises(InputProblem, match="too large"):
        list(read_bytes(book, table).rows)
    return time.process_time() - started
