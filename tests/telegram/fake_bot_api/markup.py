"""The HTML of the Bot API: its tags, and the text and entities they produce."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

TYPES = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "tg-spoiler": "spoiler",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
    "a": "text_link",
}
NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}


class BadMarkup(Exception):
    """The Bot API would refuse this HTML. The message is the end of its error description."""


@dataclass
class _Open:
    tag: str
    start: int
    extra: dict[str, Any] = field(default_factory=dict)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.text = ""
        self.entities: list[dict[str, Any]] = []
        self._open: list[_Open] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TYPES:
            raise BadMarkup(f'Unsupported start tag "{tag}"')
        extra = {"url": dict(attrs).get("href")} if tag == "a" else {}
        self._open.append(_Open(tag, units(self.text), extra))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        raise BadMarkup(f'Unsupported start tag "{tag}/"')

    def handle_endtag(self, tag: str) -> None:
        if not self._open:
            raise BadMarkup(f'Unexpected end tag "{tag}"')
        opened = self._open.pop()
        if opened.tag != tag:
            raise BadMarkup(f'Unmatched end tag, expected "</{opened.tag}>", found "</{tag}>"')
        length = units(self.text) - opened.start
        if length:
            entity = {"type": TYPES[tag], "offset": opened.start, "length": length}
            self.entities.append(entity | opened.extra)

    def handle_data(self, data: str) -> None:
        if "<" in data:
            raise BadMarkup("Unclosed start tag")
        self.text += data

    def handle_entityref(self, name: str) -> None:
        self.text += NAMED.get(name, f"&{name};")

    def handle_charref(self, name: str) -> None:
        code = int(name[1:], 16) if name[0] in "xX" else int(name)
        self.text += chr(code)

    def handle_comment(self, data: str) -> None:
        raise BadMarkup('Unsupported start tag "!--"')

    def handle_decl(self, decl: str) -> None:
        raise BadMarkup('Unsupported start tag "!"')

    def finish(self) -> None:
        rest = self.rawdata
        self.close()
        if "<" in rest:
            raise BadMarkup("Unclosed start tag")
        if self._open:
            raise BadMarkup(
                f'Can\'t find end tag corresponding to start tag "{self._open[-1].tag}"'
            )


def read_html(source: str) -> tuple[str, list[dict[str, Any]]]:
    """Text and entities, with offsets in UTF-16 units. Raises BadMarkup."""
    reader = _Reader()
    reader.feed(source)
    reader.finish()
    entities = sorted(reader.entities, key=lambda one: (one["offset"], -one["length"]))
    return reader.text, entities


def units(text: str) -> int:
    """Length in UTF-16 code units, the unit of the Bot API."""
    return len(text.encode("utf-16-le")) // 2
