"""Workbooks (XLSX) made part by part, as different programs write them."""

import warnings
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO
from xml.sax.saxutils import escape, quoteattr

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
STRICT = {
    MAIN: "http://purl.oclc.org/ooxml/spreadsheetml/main",
    OFFICE: "http://purl.oclc.org/ooxml/officeDocument/relationships",
}
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'


def text(value: str, place: str = "") -> str:
    """A cell with a text of its own."""
    where = f' r="{place}"' if place else ""
    return f'<c{where} t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'


def row(line: int, *cells: str, more: str = "") -> str:
    """A row of cells; `more` are attributes."""
    return f'<row r="{line}"{more}>{"".join(cells)}</row>'


def rows(*lines: Sequence[str]) -> str:
    """Rows of texts, from the first line."""
    return "".join(row(line, *map(text, cells)) for line, cells in enumerate(lines, start=1))


def sheet(data: str, *, before: str = "", after: str = "") -> str:
    """A sheet with these rows, and what is before and after them."""
    return f'<worksheet xmlns="{MAIN}">{before}<sheetData>{data}</sheetData>{after}</worksheet>'


def workbook(
    *sheets: str,
    names: Sequence[str] = ("One", "Two", "Three"),
    states: Mapping[str, str] | None = None,
    texts: Iterable[str] = (),
    formats: Sequence[str | int] = (),
    is_strict: bool = False,
    begins_1904: bool = False,
) -> bytes:
    """A workbook of sheets. `states` are those of sheets, by name; `texts` are elements of the
    table of texts; `formats` are number formats, from the style 1: codes, or numbers of those that
    every spreadsheet knows."""
    parts = {
        "_rels/.rels": _relations([("officeDocument", "xl/workbook.xml")]),
        "xl/sharedStrings.xml": f'<sst xmlns="{MAIN}">{"".join(texts)}</sst>',
        "xl/styles.xml": _styles(formats),
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}">'
        + f'<workbookPr date1904="{int(begins_1904)}"/><sheets>'
        + "".join(
            f'<sheet name={quoteattr(name)} sheetId="{number}" r:id="rId{number}"'
            f' state="{(states or {}).get(name, "visible")}"/>'
            for number, (name, _sheet) in enumerate(zip(names, sheets, strict=False), start=1)
        )
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": _relations(
            [
                *(("worksheet", f"worksheets/sheet{n}.xml") for n in range(1, len(sheets) + 1)),
                ("sharedStrings", "sharedStrings.xml"),
                ("styles", "styles.xml"),
            ]
        ),
    }
    parts |= {f"xl/worksheets/sheet{n}.xml": one for n, one in enumerate(sheets, start=1)}
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            xml = part
            for plain, strict in STRICT.items() if is_strict else ():
                xml = xml.replace(plain, strict)
            archive.writestr(name, XML + xml)
    return content.getvalue()


def edit_parts(
    book: bytes,
    *changes: tuple[str, str],
    names: Callable[[str], str] = str,
    more: Sequence[tuple[str, str]] = (),
    encoding: str = "utf-8",
) -> bytes:
    """The workbook with these texts replaced in all its parts, and with `more` parts. `names`
    renames parts; a part with an empty name is left out."""
    content, wanted = BytesIO(), {old for old, _new in changes}
    with zipfile.ZipFile(BytesIO(book)) as old, zipfile.ZipFile(content, "w") as new:
        parts = [(name, old.read(name).decode()) for name in old.namelist()]
        for name, part in [*parts, *more]:
            xml = part
            for before, after in changes:
                wanted -= {before} if before in xml else set()
                xml = xml.replace(before, after)
            if names(name):
                with warnings.catch_warnings(action="ignore"):  # of a name that is there twice
                    new.writestr(names(name), xml.encode(encoding))
    assert not wanted
    return content.getvalue()


def archive(first: str, content: str = "") -> bytes:
    """A ZIP archive that is no workbook."""
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr(first, content)
    return file.getvalue()


def _relations(targets: Sequence[tuple[str, str]]) -> str:
    return (
        f'<Relationships xmlns="{PACKAGE}">'
        + "".join(
            f'<Relationship Id="rId{number}" Type="{OFFICE}/{kind}" Target="{target}"/>'
            for number, (kind, target) in enumerate(targets, start=1)
        )
        + "</Relationships>"
    )


def _styles(formats: Sequence[str | int]) -> str:
    numbers = [
        one if isinstance(one, int) else number for number, one in enumerate(formats, start=164)
    ]
    own = "".join(
        f'<numFmt numFmtId="{number}" formatCode={quoteattr(one)}/>'
        for number, one in zip(numbers, formats, strict=True)
        if isinstance(one, str)
    )
    styles = "".join(f'<xf numFmtId="{number}"/>' for number in numbers)
    return (
        f'<styleSheet xmlns="{MAIN}"><numFmts>{own}</numFmts>'
        f'<cellXfs><xf numFmtId="0"/>{styles}</cellXfs></styleSheet>'
    )
