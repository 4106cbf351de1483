"""Pages of a PDF: lines and tables from top to bottom, a footer, and the number of each page.

The text is in DejaVu Sans, which has Latin, Greek, Cyrillic, Arabic, Hebrew and more. For
letters that it lacks, such as Chinese ones, programs that show a PDF use a font of their own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from itertools import groupby
from pathlib import Path

from django.utils.translation import gettext
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

FONT = "DejaVuSans"
OTHER_FONT = "STSong-Light"
WIDTH, HEIGHT = A4
MARGIN, LINE, SIZE, SMALL = 45, 13, 8, 7
RIGHT = WIDTH - MARGIN
BLACK, GREY, RULE = (0.1, 0.1, 0.12), (0.4, 0.42, 0.45), (0.75, 0.77, 0.8)
LOGO_WIDTH, LOGO_HEIGHT = 150, 45
FOOTER_LINES = 3
FILLED_AND_STROKED = 2  # as PDF names it: a bold text without a bold font


@dataclass(frozen=True)
class Column:
    """A column of a table, from `left` to `right`. Numbers end at its right."""

    heading: str
    left: float
    right: float
    is_number: bool = False


@dataclass(frozen=True)
class Row:
    """The cells of a row, and a second line below them, as wide as the table."""

    cells: Sequence[str]
    below: str = ""
    is_bold: bool = False


@cache
def _register_fonts() -> None:
    pdfmetrics.registerFont(TTFont(FONT, Path(__file__).parent / "fonts" / "DejaVuSans.ttf"))
    pdfmetrics.registerFont(UnicodeCIDFont(OTHER_FONT))


class Paper:
    """An A4 document. `y` is where the next line ends.

    title: at the top of each page but the first. footer: lines at the bottom of each page.
    """

    def __init__(self, title: str, footer: str = "") -> None:
        _register_fonts()
        self._buffer = BytesIO()
        self._canvas = Canvas(self._buffer, pagesize=A4)
        self._canvas.setTitle(title)
        self._title, self._pages = fitting(title, RIGHT - MARGIN), 0
        self._footer = wrapped(footer, RIGHT - MARGIN - 80, SMALL)[:FOOTER_LINES]
        self._bottom = MARGIN + 10 + 9 * max(1, len(self._footer))
        self._heading: Sequence[Column] = ()
        self._turn()

    def write(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = SIZE,
        colour: tuple[float, float, float] = BLACK,
        is_bold: bool = False,
    ) -> None:
        """Writes from left to right, each letter in a font that has it."""
        self._canvas.setFillColorRGB(*colour)
        self._canvas.setStrokeColorRGB(*colour)
        self._canvas.setLineWidth(size / 30)
        mode = FILLED_AND_STROKED if is_bold else None
        for font, letters in groupby(text, _font_of):
            run = "".join(letters)
            self._canvas.setFont(font, size)
            self._canvas.drawString(x, y, run, mode=mode)
            x += float(pdfmetrics.stringWidth(run, font, size))

    def block(
        self,
        x: float,
        y: float,
        lines: Iterable[str],
        width: float,
        *,
        size: float = SIZE,
        is_bold: bool = False,
        most: int = 20,
    ) -> float:
        """Lines below each other, wrapped to the width. Returns where they end.

        Lines after the first `most` are left out.
        """
        parts = [part for line in lines for part in wrapped(line, width, size)]
        for part in parts[:most]:
            y -= size + 3
            self.write(x, y, part, size=size, is_bold=is_bold)
        return y

    def picture(self, picture: bytes) -> None:
        """A picture at the top left of the page."""
        image = ImageReader(BytesIO(picture))
        width, height = image.getSize()
        scale = min(LOGO_WIDTH / width, LOGO_HEIGHT / height)
        place = (MARGIN, HEIGHT - MARGIN - height * scale)
        self._canvas.drawImage(image, *place, width * scale, height * scale, mask="auto")

    def line(self, text: str, size: float = SIZE + 1, *, is_bold: bool = False) -> None:
        """A line of text, or several if it is long."""
        for part in wrapped(text, RIGHT - MARGIN, size):
            self.advance(size + 5)
            self.write(MARGIN, self.y, part, size=size, is_bold=is_bold)

    def table(self, columns: Sequence[Column], rows: Iterable[Row]) -> None:
        """Rows under their headings, which each page repeats."""
        self.advance(LINE)
        self._heading = columns
        self.advance(2 * LINE + SIZE)  # no heading without a row
        self.y += LINE + SIZE
        self._write_heading()
        for row in rows:
            self.advance(2 * LINE if row.below else LINE)
            y = self.y + LINE if row.below else self.y
            self._write_cells(columns, row.cells, y, is_bold=row.is_bold)
            if row.below:
                text = fitting(row.below, RIGHT - columns[1].left)
                self.write(columns[1].left, self.y + 2, text, size=SMALL, colour=GREY)
            self._rule(self.y - 4)
        self._heading = ()

    def _write_heading(self) -> None:
        self._write_cells(
            self._heading, [one.heading for one in self._heading], self.y, colour=GREY
        )
        self._rule(self.y - 4, strong=True)

    def _write_cells(
        self,
        columns: Sequence[Column],
        cells: Sequence[str],
        y: float,
        *,
        colour: tuple[float, float, float] = BLACK,
        is_bold: bool = False,
    ) -> None:
        for column, cell in zip(columns, cells, strict=True):
            text = fitting(cell, column.right - column.left)
            width = width_of(text, SIZE)
            x = column.right - width if column.is_number else column.left
            self.write(x, y, text, colour=colour, is_bold=is_bold)

    def _rule(self, y: float, *, strong: bool = False) -> None:
        self._canvas.setStrokeColorRGB(*(GREY if strong else RULE))
        self._canvas.setLineWidth(0.6 if strong else 0.3)
        self._canvas.line(MARGIN, y, RIGHT, y)

    def advance(self, by: float) -> None:
        """Moves down, to the next page if this one is full."""
        self.y -= by
        if self.y < self._bottom:
            self._turn()
            if self._heading:
                self._write_heading()
            self.y -= by

    def _turn(self) -> None:
        """Begins a page. How many there are is known at the end: `finish` writes the footers."""
        if self._pages:
            self._canvas.showPage()
        self._pages += 1
        self._canvas.doForm(f"footer-{self._pages}")
        self.y = HEIGHT - MARGIN
        if self._pages > 1:
            self.write(MARGIN, self.y, self._title, colour=GREY)
            self.y -= 2 * LINE

    def finish(self) -> bytes:
        """The file."""
        self._canvas.showPage()
        for number in range(1, self._pages + 1):
            self._canvas.beginForm(f"footer-{number}", 0, 0, WIDTH, self._bottom)
            self._rule(self._bottom - 10)
            y = self._bottom - 10
            for line in self._footer:
                y -= SMALL + 2
                self.write(MARGIN, y, line, size=SMALL, colour=GREY)
            pages = gettext("Page %(number)s of %(pages)s") % {
                "number": number,
                "pages": self._pages,
            }
            width = width_of(pages, SIZE)
            self.write(RIGHT - width, self._bottom - 19, pages, colour=GREY)
            self._canvas.endForm()
        self._canvas.save()
        return self._buffer.getvalue()


@cache
def _font_of(letter: str) -> str:
    return FONT if ord(letter) in pdfmetrics.getFont(FONT).face.charToGlyph else OTHER_FONT


def width_of(text: str, size: float) -> float:
    """How wide the text is, each letter in its font."""
    _register_fonts()
    runs = ((font, "".join(letters)) for font, letters in groupby(text, _font_of))
    return sum(float(pdfmetrics.stringWidth(run, font, size)) for font, run in runs)


def wrapped(text: str, width: float, size: float) -> list[str]:
    """The text in lines of this width. A word that is wider continues on the next line."""
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split():
            if line and width_of(f"{line} {word}", size) > width:
                lines.append(line)
                line = ""
            line = f"{line} {word}" if line else word
            while width_of(line, size) > width:
                end = _letters_in(line, width, size)
                lines.append(line[:end])
                line = line[end:]
        if line:
            lines.append(line)
    return lines


def fitting(text: str, width: float) -> str:
    """The text, with its end cut off if it is wider."""
    if width_of(text, SIZE) <= width:
        return text
    return f"{text[: _letters_in(text, width - width_of('…', SIZE), SIZE)]}…"


def _letters_in(text: str, width: float, size: float) -> int:
    """How many letters fit, at least one."""
    for number, letter in enumerate(text):
        width -= width_of(letter, size)
        if width < 0:
            return max(number, 1)
    return len(text)
