"""Files of the permitted size that take long: each is wrong in its last line, or too large."""

import io
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice

from catalogue.imports import code_file
from core.files.cells import MOST_ODD_VALUES
from merchants.api_access import references
from operators.imports import price_list_file, rate_file
from operators.imports.table_imports import MOST_ROWS
from tests import spreadsheets

Line = Sequence[str]
ODD, NUMBER = "\u00c4", "1.25E-5"
# How many rows an importer reads at most, the names, a row, and the last one.
IMPORTERS: dict[str, tuple[int, Line, Callable[[int], Line], Line]] = {
    "codes": (
        1_000_000,
        code_file.COLUMNS.known,
        lambda n: (f"C{n:09}", f"S{n:09}", f"{n:09}"),
        ("C000000001", "", ""),
    ),
    "catalogue": (
        60_000,
        ("kind", "id", "product", "name"),
        lambda n: ("variation", f"{n + 1}", "1", f"N{n}"),
        ("variation", "1", "1", "N"),
    ),
    "references": (
        20_000,
        references.COLUMNS,
        lambda n: ("7002", "", f"R{n}"),
        ("7002", "", ""),
    ),
    "prices in lists": (
        MOST_ROWS,
        price_list_file.COLUMNS,
        lambda n: ("7001", "", "product", f"{7002 + n}", "", "fixed", "9", "", "USD", "", ""),
        ("7001", "", "product", "7002", "", "fixed", "9", "", "USD", "", ""),
    ),
    "exchange rates": (
        MOST_ROWS,
        rate_file.COLUMNS,
        lambda n: ("EUR", "USD", f"{2000 + n // 336}-{n // 28 % 12 + 1:02}-{n % 28 + 1:02}", "1"),
        ("EUR", "USD", "x", "1"),
    ),
}


def lines_of(importer: str, share: float, *, odd: bool) -> Iterator[Line]:
    """The names and the rows. As many `odd` values as allowed have a letter with an accent."""
    rows, names, make, last = IMPORTERS[importer]
    yield names
    last_row = int(rows * share)
    for number in range(last_row):
        line = list(make(number))
        if odd and last_row - number <= MOST_ODD_VALUES * share:
            line[0 if importer == "codes" else -1] += ODD
        yield line
    yield last


def as_csv(lines: Iterable[Line]) -> bytes:
    return "".join(f"{','.join(line)}\n" for line in lines).encode()


def as_cells(lines: Iterable[Line]) -> bytes:
    return _book(_rows(lines, "row", '<c t="inlineStr"><is><t>{}</t></is></c>'))


def with_prefix(lines: Iterable[Line]) -> bytes:
    return _book(_rows(lines, "x:row", '<x:c t="str"><x:v>{}</x:v></x:c>'))


def with_table(lines: Iterable[Line]) -> bytes:
    """As Excel writes it."""
    every = list(lines)
    places = (
        [str(n * len(line) + place) for place in range(len(line))] for n, line in enumerate(every)
    )
    texts = (f"<si><t>{text}</t></si>" for text in chain.from_iterable(every))
    return _book(_rows(places, "row", '<c t="s"><v>{}</v></c>'), texts)


def with_numbers(importer: str, share: float, prefix: str) -> bytes:
    """Each cell is a number; some of them must be converted. The last row is an error."""
    rows, names, _make, _last = IMPORTERS[importer]
    tag, cell = f"{prefix}row", f'<{prefix}c s="1"><{prefix}v>{{}}</{prefix}v></{prefix}c>'
    head = _rows([names], "row", '<c t="inlineStr"><is><t>{}</t></is></c>')
    odd = int(MOST_ODD_VALUES * share) // len(names)
    numbers = ([NUMBER if n < odd else f"9{n:013}"] * len(names) for n in range(int(rows * share)))
    error = f'<{tag}><{prefix}c t="e"><{prefix}v>#N/A</{prefix}v></{prefix}c></{tag}>'
    return _book(chain(head, _rows(numbers, tag, cell), [error]))


def of_empty_rows(share: float) -> bytes:
    return _book(repeat_rows("<row/>", int(1_048_000 * share)))


def of_unused_texts(share: float) -> bytes:
    return _book([], repeat_rows("<si><t>A text</t></si>", int(6_740_000 * share)))


def repeat_rows(row: str, number: int) -> Iterator[str]:
    return (row * 1000 for _ in range(number // 1000 + 1))


def _rows(lines: Iterable[Line], tag: str, cell: str) -> Iterator[str]:
    before, after = cell.split("{}")
    for line in lines:
        cells = f"{after}{before}".join(line)
        yield f"<{tag}>{before}{cells}{after}</{tag}>"


def _book(rows: Iterable[str], texts: Iterable[str] = ()) -> bytes:
    """A workbook with these rows and this table of texts."""
    frame = spreadsheets.workbook(spreadsheets.sheet("ROWS"), texts=["TEXTS"], formats=["0"])
    file, filled = io.BytesIO(), {"ROWS": rows, "TEXTS": texts}
    with zipfile.ZipFile(io.BytesIO(frame)) as old, zipfile.ZipFile(file, "w", 8) as new:
        for name in old.namelist():
            part = old.read(name).decode()
            mark = next((one for one in filled if one in part), "")
            before, _mark, after = part.partition(mark) if mark else (part, "", "")
            with new.open(name, "w") as written:
                written.write(before.encode())
                pieces = iter(filled.get(mark, ()))
                while some := "".join(islice(pieces, 1000)):
                    written.write(some.encode())
                written.write(after.encode())
    return file.getvalue()
