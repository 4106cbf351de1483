"""Reading workbooks (XLSX) as rows of text, in bounded memory and time.

Each kind of file has its own limits (`Columns` in core/files/tables.py).
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import chain, repeat
from typing import BinaryIO

from core.files.doubts import Doubts
from core.files.kinds import refuse_other_archives
from core.files.number_formats import NumberFormat
from core.files.sheet_rows import Sheet, SheetRow, is_true
from core.files.sheet_texts import Texts
from core.files.workbook_sentences import HIDDEN_SHEET, NO_SHEET, OTHER_SHEET, TOO_LARGE
from core.files.xml_parts import Limits, Parts, refusing_broken_files
from core.inputs import InputProblem

MAX_BYTES = 64 * 1024 * 1024
# The days with the number 0.
FIRST_DAY, FIRST_DAY_OF_MAC = datetime(1899, 12, 30, tzinfo=UTC), datetime(1904, 1, 1, tzinfo=UTC)


class Workbook:
    """A workbook whose first visible sheet is read. `sheet` is the name of that sheet; `content`
    are the bytes of the file. `most` limits its bytes when it is unpacked, and the elements of all
    its parts together. Dates are mistakes, unless it `reads_dates`. `advance` is called with 0
    after each piece of a part, and may raise. Raises InputProblem, also while the rows are read."""

    def __init__(
        self,
        file: BinaryIO,
        doubts: Doubts,
        *,
        most: Limits,
        reads_dates: bool = False,
        advance: Callable[[int], object] = lambda _size: None,
    ) -> None:
        self._reads_dates, self._begins_1904 = reads_dates, False
        self.content = file.read(MAX_BYTES + 1)
        self._doubts, self._most = doubts, most
        if len(self.content) > MAX_BYTES:
            raise InputProblem(TOO_LARGE % {"size": MAX_BYTES >> 20})
        self._parts = Parts(self.content, most, advance)
        with refusing_broken_files():
            refuse_other_archives(self._parts.files, self._parts.start_of("mimetype"))
            book, targets = self._find_book()
            sheets = self._sheets(book, targets)
            visible = [one for one in sheets if not one[2]]
            if not visible:
                raise InputProblem(NO_SHEET)
            self.sheet, self._part, _hidden = visible[0]
            self.number_of_bytes = self._parts.files[self._part.lower()].file_size  # unpacked
            texts = next((part for kind, part in targets.values() if kind == "sharedStrings"), "")
            styles = next((part for kind, part in targets.values() if kind == "styles"), "")
            self._texts = self._read_texts(texts) if texts else []
            self._formats = self._read_formats(styles) if styles else []
            for name, part, hidden in sheets:
                if part != self._part and self._has_values(part):
                    doubts.add(HIDDEN_SHEET if hidden else OTHER_SHEET, name=name)

    def rows(self) -> Iterator[tuple[SheetRow, int]]:
        """Each row with a value or a mistake, and how many bytes of the sheet were read for it."""
        sheet = Sheet(self._texts, self._formats, self._doubts, self._most)
        if self._reads_dates:
            sheet.first_day = FIRST_DAY_OF_MAC if self._begins_1904 else FIRST_DAY
        with refusing_broken_files(lambda: sheet.line):
            for size in self._parts.read(self._part, sheet):
                sizes = chain([size], repeat(0))
                yield from zip(sheet.take(), sizes, strict=False)
            sheet.end()

    def _find_book(self) -> tuple[str, dict[str, tuple[str, str]]]:
        """The main part, and its relations."""
        found = self._parts.relations("")
        book = next(part for kind, part in found.values() if kind == "officeDocument")
        return book, self._parts.relations(book)

    def _sheets(
        self, book: str, targets: dict[str, tuple[str, str]]
    ) -> list[tuple[str, str, bool]]:
        """The name, the part, and whether it is hidden, of each sheet with cells."""
        sheets: list[tuple[str, str, bool]] = []

        def start(kind: str, values: dict[str, str]) -> None:
            if kind == "workbookPr":
                self._begins_1904 = is_true(values.get("date1904"))
            elif kind == "sheet":
                pk = next(text for name, text in values.items() if name.rpartition(":")[2] == "id")
                what, part = targets[pk]
                if what == "worksheet":
                    hidden = values.get("state", "visible") != "visible"
                    sheets.append((values["name"], part, hidden))

        self._parts.read_starts(book, start)
        return sheets

    def _read_texts(self, part: str) -> list[str]:
        """The table of texts that cells refer to."""
        texts: list[str] = []
        reader = Texts(texts)
        for _size in self._parts.read(part, reader):
            pass
        return texts

    def _read_formats(self, part: str) -> list[NumberFormat]:
        """The number format of each style."""
        own: dict[int, str] = {}
        by_number: dict[int, NumberFormat] = {}
        formats: list[NumberFormat] = []
        inside = False

        def start(kind: str, values: dict[str, str]) -> None:
            nonlocal inside
            if kind == "numFmt":
                own[int(values["numFmtId"])] = values.get("formatCode", "")
            elif kind in ("cellXfs", "cellStyleXfs", "dxfs"):
                inside = kind == "cellXfs"
            elif kind == "xf" and inside:
                number = int(values.get("numFmtId", 0))
                if number not in by_number:
                    by_number[number] = NumberFormat(number, own.get(number))
                formats.append(by_number[number])

        self._parts.read_starts(part, start)
        return formats

    def _has_values(self, part: str) -> bool:
        reader = Sheet(self._texts, [], Doubts(), self._most)
        for _size in self._parts.read(part, reader):
            if any(texts or problems for _line, texts, problems in reader.take()):
                return True
        return False
