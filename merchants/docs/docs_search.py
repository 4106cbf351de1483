"""The search of the public documentation: its sections, found by their words."""

from collections.abc import Iterable
from dataclasses import dataclass
from html.parser import HTMLParser
from textwrap import shorten

HEADINGS = ("h2", "h3")
BLOCKS = ("p", "li", "td", "th", "dt", "dd", "pre", "h4")
LEFT_OUT = ("nav", "form")  # the same on each page
EXCERPT = 200  # characters


@dataclass
class Section:
    """The text below a heading, or a row of a table that has an address of its own.

    tag: `h2`, `h3` or `tr`; empty for the beginning of the page.
    words: other words for the subject, from the attribute `data-words` of its tags.
    code: its programs and commands, which no excerpt shows.
    """

    page: str
    address: str
    tag: str = ""
    heading: str = ""
    text: str = ""
    words: str = ""
    code: str = ""

    @property
    def title(self) -> str:
        """The heading; at the beginning of a page, its name."""
        return self.heading.strip() or self.page

    @property
    def subject(self) -> str:
        """The title and the other words for it, in lower case."""
        return f"{self.title} {self.words}".lower()

    def excerpt(self, words: list[str]) -> str:
        """The text around the first of the words."""
        text = " ".join(self.text.split())
        place = min((text.lower().find(word) for word in words if word in text.lower()), default=0)
        start = text.rfind(" ", 0, max(place - EXCERPT // 3, 0)) + 1
        shown = shorten(text[start:], EXCERPT, placeholder=" …")
        return f"… {shown}" if start else shown


def divide(page: str, address: str, html: str) -> list[Section]:
    """The sections of a page."""
    reader = _Reader(page, address)
    reader.feed(html)
    return list({id(section): section for section in reader.sections}.values())


def find_sections(sections: Iterable[Section], query: str) -> list[tuple[Section, str]]:
    """The sections with all words of the query, each with an excerpt.

    Sections whose subject has a word come first, and those whose programs alone have one last.
    """
    words = query.lower().split()

    def have(section: Section, *more: str) -> bool:
        text = f"{section.subject} {section.text} {' '.join(more)}".lower()
        return bool(words) and all(word in text for word in words)

    found = [section for section in sections if have(section, section.code)]
    found.sort(
        key=lambda section: (
            not any(word in section.subject for word in words),
            not have(section),
        )
    )
    return [(section, section.excerpt(words)) for section in found]


class _Reader(HTMLParser):
    """Divides the HTML of a page."""

    def __init__(self, page: str, address: str) -> None:
        super().__init__()
        self.sections = [Section(page, address)]
        self._address = address
        self._heading = ""  # the tag whose text is the heading
        self._folded = False  # in the name of a listing, which is no section
        self._in_code = False
        self._outer: Section | None = None  # the section that goes on after a row
        self._left_out = 0  # the open tags of LEFT_OUT

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._left_out += tag in LEFT_OUT
        if tag in BLOCKS:
            self.sections[-1].text += " "
        name = dict(attrs).get("id")
        is_row = tag == "tr" and name
        if is_row:
            self._outer = self.sections[-1]
        self._folded |= tag == "summary"
        self._in_code |= tag == "pre"
        if is_row or (tag in HEADINGS and not self._folded):
            address = f"{self._address}#{name}" if name else self._address
            self.sections.append(Section(self.sections[0].page, address, tag))
            self._heading = "th" if is_row else tag
        self.sections[-1].words += f" {dict(attrs).get('data-words') or ''}"

    def handle_endtag(self, tag: str) -> None:
        self._left_out -= tag in LEFT_OUT
        self._folded &= tag != "summary"
        self._in_code &= tag != "pre"
        if tag == self._heading:
            self._heading = ""
        if tag == "tr" and self._outer:
            self.sections.append(self._outer)  # its text goes on
            self._outer = None

    def handle_data(self, data: str) -> None:
        if self._heading:
            self.sections[-1].heading += data
        elif self._in_code:
            self.sections[-1].code += data
        elif not self._left_out:
            self.sections[-1].text += data
