"""The statement of a month as PDF: balances, sums, days, and its entries if they are not too many.

The text is in DejaVu Sans, which has Latin, Greek, Cyrillic, Arabic, Hebrew and more. For
letters that it lacks, such as Chinese ones, programs that show a PDF use a font of their own.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from io import BytesIO
from pathlib import Path

from django.utils.translation import gettext
from reportlab.lib.pagesizes import A4
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

from accounts.models import Account
from core.json_output import money_text
from merchants.money.months import Month
from merchants.money.statement import with_orders
from orders.models import Order
from wallets.models import EntryKind, bank_reference_of
from wallets.selectors import StatementLine

FONT = "DejaVuSans"
OTHER_FONT = "STSong-Light"
MOST_ENTRIES = 2_000  # about 80 pages
KEY_SHOWN = 48  # characters of a line
WIDTH, HEIGHT = A4
MARGIN, LINE, SIZE = 45, 14, 8
RIGHT = WIDTH - MARGIN


@cache
def _register_fonts() -> None:
    pdfmetrics.registerFont(TTFont(FONT, Path(__file__).parent / "fonts" / "DejaVuSans.ttf"))
    pdfmetrics.registerFont(UnicodeCIDFont(OTHER_FONT))


class _Paper:
    """Pages of lines, from top to bottom, with a number on each."""

    def __init__(self, title: str) -> None:
        _register_fonts()
        self._buffer = BytesIO()
        self._canvas = Canvas(self._buffer, pagesize=A4)
        self._canvas.setTitle(title)
        self._known = pdfmetrics.getFont(FONT).face.charToGlyph
        self._number = 0
        self._heading: Sequence[tuple[float, str]] = ()
        self._turn()

    def _turn(self) -> None:
        if self._number:
            self._canvas.showPage()
        self._number += 1
        self._y = HEIGHT - MARGIN
        self._draw(
            RIGHT - 40, MARGIN / 2, gettext("Page %(number)s") % {"number": self._number}, SIZE
        )

    def _draw(self, x: float, y: float, text: str, size: float) -> None:
        """Draws from left to right, each letter in a font that has it."""
        run, font = "", FONT
        for letter in text:
            wanted = FONT if ord(letter) in self._known else OTHER_FONT
            if wanted != font and run:
                x = self._draw_run(x, y, run, font, size)
                run = ""
            run, font = run + letter, wanted
        self._draw_run(x, y, run, font, size)

    def _draw_run(self, x: float, y: float, run: str, font: str, size: float) -> float:
        self._canvas.setFont(font, size)
        self._canvas.drawString(x, y, run)
        return x + float(pdfmetrics.stringWidth(run, font, size))

    def line(self, text: str, size: float = SIZE + 1) -> None:
        """One line of text."""
        self._advance(size + 5)
        self._draw(MARGIN, self._y, text, size)

    def table(
        self, columns: Sequence[tuple[float, str]], rows: Iterable[Sequence[str]], numbers: int
    ) -> None:
        """Rows under their headings, which each page repeats. `columns` are the places of the
        cells; the last `numbers` cells end at their place."""
        self._heading, self._numbers = columns, numbers
        self._advance(2 * LINE)
        self._cells([name for _, name in columns])
        for row in rows:
            self._advance(LINE)
            self._cells(row)
        self._heading = ()
        self._advance(LINE)

    def _cells(self, row: Sequence[str]) -> None:
        for number, ((place, _), text) in enumerate(zip(self._heading, row, strict=True)):
            if number < len(row) - self._numbers:
                self._draw(place, self._y, text, SIZE)
            else:
                self._canvas.setFont(FONT, SIZE)
                self._canvas.drawRightString(place, self._y, text)

    def _advance(self, by: float) -> None:
        self._y -= by
        if self._y < MARGIN:
            self._turn()
            if self._heading:
                self._y -= LINE
                self._cells([name for _, name in self._heading])
                self._y -= LINE

    def finish(self) -> bytes:
        """The file."""
        self._canvas.save()
        return self._buffer.getvalue()


def write_pdf(account: Account, month: Month) -> bytes:
    """The statement of a closed month."""
    currency = account.currency
    paper = _Paper(
        gettext("Statement %(month)s, %(account)s") % {"month": month.name, "account": account.name}
    )
    paper.line(gettext("Statement %(month)s") % {"month": month.name}, 16)
    paper.line(account.name, 12)
    paper.line(gettext("Amounts in %(currency)s. Days and times are UTC.") % {"currency": currency})
    paper.table(
        [(MARGIN, gettext("Summary")), (RIGHT, gettext("Amount"))],
        [
            (
                gettext("Opening balance, %(first)s") % {"first": month.first},
                money_text(month.opening),
            ),
            *((label, money_text(amount)) for label, amount in month.sums),
            (
                gettext("Closing balance, before %(end)s") % {"end": month.end},
                money_text(month.closing),
            ),
        ],
        numbers=1,
    )
    paper.table(
        [
            (MARGIN, gettext("Day")),
            (250, gettext("Opening balance")),
            (390, gettext("Change")),
            (RIGHT, gettext("Closing balance")),
        ],
        [
            (
                day.day.isoformat(),
                money_text(day.opening),
                money_text(day.closing - day.opening),
                money_text(day.closing),
            )
            for day in month.days
        ],
        numbers=3,
    )
    entries = month.entries(account)
    if entries.order_by()[: MOST_ENTRIES + 1].count() > MOST_ENTRIES:
        paper.line(
            gettext("Each entry is in the CSV file of this statement: they are too many for paper.")
        )
        return paper.finish()
    paper.table(
        [
            (MARGIN, gettext("Time")),
            (150, gettext("Kind")),
            (215, gettext("Order and idempotency key, or bank reference")),
            (460, gettext("Amount")),
            (RIGHT, gettext("Balance after")),
        ],
        (row for entry, order in with_orders(entries) for row in _rows_of(entry, order)),
        numbers=2,
    )  # fmt: skip
    return paper.finish()


def _rows_of(entry: StatementLine, order: Order | None) -> Iterator[tuple[str, ...]]:
    """The row of an entry, and one for the idempotency key of its order."""
    yield (
        f"{entry.created_at:%Y-%m-%d %H:%M:%S}",
        EntryKind(entry.kind).label,
        _reference(entry),
        money_text(entry.amount),
        money_text(entry.balance_after),
    )
    if order and order.idempotency_key:
        key = order.idempotency_key
        yield ("", "", key if len(key) <= KEY_SHOWN else f"{key[:KEY_SHOWN]}…", "", "")


def _reference(entry: StatementLine) -> str:
    bank = bank_reference_of(entry.kind, entry.booking_reference)
    return (entry.order_reference or bank)[:40]
