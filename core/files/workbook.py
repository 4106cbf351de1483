"""Reading workbooks (XLSX) as rows of text, in bounded memory and time.

Each kind of file has its own limits (`Columns` in core/files/tables.py).
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import chain, repeat
from typing import BinaryIO

from core.files.doubts import Doubts
from core.files.kinds import refuse_other_archives
from core.files.number_formats import MAX_LENGTH, NumberFormat
from core.files.sheet_rows import Sheet, SheetRow, is_true
from core.files.sheet_texts import Texts
from core.files.workbook_sentences import (
    HIDDEN_SHEET,
    NO_SHEET,
    OTHER_SHEET,
    TOO_LARGE,
    TOO_LARGE_UNPACKED,
)
from core.files.xml_parts import Limits, Parts, refusing_broken_files
from core.inputs import InputProblem

MAX_BYTES = 64 * 1024 * 1024
MAX_STYLES = 65_536  # as in every spreadsheet; as many fonts, fills and number formats
STYLES = ("numFmts", "fonts", "fills", "borders", "cellStyleXfs", "cellXfs", "cellStyles", "dxfs")
WHITE, BLACK = "FFFFFF", "000000"
# Themes and palettes begin with these. 65 is the background of a window.
THEME = {"0": WHITE, "1": BLACK}
PALETTE = {**dict.fromkeys(("1", "9", "65"), WHITE), **dict.fromkeys(("0", "8"), BLACK)}
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
            self._formats = self._read_styles(styles) if styles else []
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
        reader = Texts(texts, self._most)
        for _size in self._parts.read(part, reader):
            pass
        return texts

    def _read_styles(self, part: str) -> list[NumberFormat]:
        """The format of each style."""
        codes: dict[int, str] = {}
        fonts: list[str] = []  # their colours
        fills: list[str] = []
        known: dict[tuple[int, bool], NumberFormat] = {}
        formats: list[NumberFormat] = []
        inside, is_solid = "", False

        def start(kind: str, values: dict[str, str]) -> None:
            nonlocal inside, is_solid
            match inside, kind:
                case _, "numFmt":
                    codes[int(values["numFmtId"])] = values.get("formatCode", "")[: MAX_LENGTH + 1]
                case _, section if section in STYLES:
                    inside = section
                case "fonts", "font":
                    fonts.append("")
                case "fonts", "color":
                    fonts[-1] = _colour(values)
                case "fills", "fill":
                    fills.append(WHITE)
                case "fills", "patternFill":
                    pattern = values.get("patternType", "none")
                    fills[-1], is_solid = WHITE if pattern == "none" else "", pattern == "solid"
                case "fills", "gradientFill":
                    fills[-1] = ""
                case "fills", "fgColor" if is_solid:
                    fills[-1] = _colour(values)
                case "cellXfs", "xf":
                    number = int(values.get("numFmtId", 0))
                    font = _item(fonts, values.get("fontId", "0"))
                    is_unseen = font != "" and font == _item(fills, values.get("fillId", "0"))
                    if (number, is_unseen) not in known:
                        code = codes.get(number)
                        known[number, is_unseen] = NumberFormat(number, code, is_unseen=is_unseen)
                    formats.append(known[number, is_unseen])
            if max(map(len, (codes, fonts, fills, formats))) > MAX_STYLES:
                raise InputProblem(TOO_LARGE_UNPACKED)

        self._parts.read_starts(part, start)
        return formats

    def _has_values(self, part: str) -> bool:
        reader = Sheet(self._texts, [], Doubts(), self._most)
        for _size in self._parts.read(part, reader):
            if any(texts or problems for _line, texts, problems in reader.take()):
                return True
        return False


def _item(colours: list[str], place: str) -> str:
    return colours[int(place)] if 0 <= int(place) < len(colours) else ""


def _colour(values: dict[str, str]) -> str:
    """A text that is the same for the same colour; empty for an automatic one."""
    if "rgb" in values:
        colour = values["rgb"][-6:].upper()
    elif "theme" in values:
        colour = THEME.get(values["theme"], f"theme {values['theme'][:9]}")
    elif "indexed" in values:
        colour = PALETTE.get(values["indexed"], f"indexed {values['indexed'][:9]}")
    else:
        return ""
    tint = float(values.get("tint", 0))
    return f"{colour} {tint:.3f}" if tint else colour
