"""The table of texts of a workbook, that cells refer to."""

import re
from sys import getsizeof

from core.files.workbook_sentences import TOO_LARGE_UNPACKED
from core.files.xml_parts import Elements, End, Limits, Start
from core.inputs import InputProblem

MAX_ROW_LENGTH = 1_000_000  # characters
ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
# Texts as most programs write them, without anything that XML reads in another way.
PLAIN = r"[^<&\]\x00-\x08\x0b-\x1f\ufffe\uffff]*+"
ITEM = rf'<t(?: xml:space="preserve")?>({PLAIN})</t>'
PLAIN_TEXT = re.compile(f"<si>{ITEM}</si>")
# A possessive repetition of the group (`*+`) would be shorter. Before Python 3.11.5, it may end in
# the middle of a text that does not match.
PLAIN_TEXTS = re.compile(f"(?:(?>{PLAIN_TEXT.pattern}))*")


class Texts(Elements):
    """Collects the table of texts. Hints for pronunciation (`rPh`) are not part of a text. The
    texts may take as much memory as the unpacked workbook may have bytes. A text has two elements
    here and two in its cell: of more texts than a quarter of the permitted elements, some are in no
    cell."""

    last_tag = b"</si>"

    def __init__(self, texts: list[str], most: Limits) -> None:
        starts: dict[str, Start] = {
            "t": self._start_text,
            "si": self._start_item,
            "rPh": self._start_hint,
        }
        ends: dict[str, End] = {
            "t": self._end_text,
            "si": self._end_item,
            "rPh": self._end_hint,
            "sst": self._end_items,
        }
        super().__init__(starts.get, ends.get)
        self._all, self._left, self._most = texts, most.unpacked_bytes, most.elements // 4
        self._parts: list[str] = []
        self._size = 0
        self._is_text = self._is_hint = False
        self._is_between = False

    def is_between(self) -> bool:
        return self.is_plain and self._is_between and not self._is_hint

    def read_plain(self, text: str) -> int:
        plain = PLAIN_TEXTS.match(text)
        end = plain.end() if plain else 0
        texts = PLAIN_TEXT.findall(text, 0, end)
        if end > MAX_ROW_LENGTH and max(map(len, texts), default=0) > MAX_ROW_LENGTH:
            raise InputProblem(TOO_LARGE_UNPACKED)
        self._keep([*map(unescape, texts)] if "_x" in text else texts)
        return end

    def _keep(self, texts: list[str]) -> None:
        self._left -= sum(map(getsizeof, texts))
        self._all += texts
        if self._left < 0 or len(self._all) > self._most:
            raise InputProblem(TOO_LARGE_UNPACKED)

    def _start_text(self, _values: dict[str, str]) -> None:
        self._is_text = not self._is_hint

    def _start_item(self, _values: dict[str, str]) -> None:
        self._parts, self._size, self._is_between = [], 0, False

    def _start_hint(self, _values: dict[str, str]) -> None:
        self._is_hint = True

    def _end_text(self) -> None:
        self._is_text = False

    def _end_item(self) -> None:
        self._keep([unescape("".join(self._parts))])
        self._is_between = True

    def _end_items(self) -> None:
        self._is_between = False

    def _end_hint(self) -> None:
        self._is_hint = False

    def add(self, text: str) -> None:
        if self._is_text:
            self._size += len(text)
            if self._size > MAX_ROW_LENGTH:
                raise InputProblem(TOO_LARGE_UNPACKED)
            self._parts.append(text)


def unescape(text: str) -> str:
    """A text in which _x000D_ is the character with this number, as the format prescribes."""
    return ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text
