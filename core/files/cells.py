"""The texts of single cells: what spreadsheets write around them, and what nobody can see."""

import re
import unicodedata
from functools import lru_cache

from core.inputs import FILLERS

# A text formula (="00123"), and quotation marks around quotation marks ("""00123""" in CSV).
TEXT_FORMULA = re.compile(r'="((?:[^"]|"")*)"')
QUOTED = re.compile(r'"([^"]*)"')
MONTH = "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
# Texts that a spreadsheet takes for a number, a date or a time.
LIKE_NUMBER = re.compile(
    rf"([.,]?[0-9][0-9\s.,:/%+\-\u20ac$\u00a3e]*((am|pm|{MONTH}[a-z]*)[0-9\s.,:/\-]*)?"
    rf"|{MONTH}[a-z]*[\s.,/\-]+[0-9][0-9\s.,/\-]*)",
    re.IGNORECASE,
)
# An apostrophe keeps a spreadsheet from taking a text for a number or a formula. A name such as
# 'n Sync keeps its own.
PROTECTED = re.compile(rf"'+([=+\-@\t\r\"'0-9]|[.,][0-9]|{MONTH}[a-z]*[\s.,/\-]+[0-9])", re.I)
QUOTES = (
    "'\"`\u00b4\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2039\u203a\u00ab\u00bb\uff02\uff07"
)
MARKS = frozenset(QUOTES)
NOT_ASCII = re.compile("[^\x00-\x7f]")
ERROR_WORDS = re.compile(
    r"#(N/A|REF!|VALUE!|DIV/0!|NUM!|NAME\?|NULL!|SPILL!|CALC!|FIELD!|BLOCKED!|CONNECT!|BUSY!"
    r"|GETTING_DATA|NV|BEZUG!|WERT!|ZAHL!|ÜBERLAUF!)|Err:[0-9]{3}|#+",
    re.IGNORECASE,
)
NOTHING_WORDS = re.compile(
    r"null|nil|none|nan|n/a|n\.a\.|undefined|unknown|empty|blank|keine?|tbd|[-\u2013\u2014?._]+"
    r"|[(<[{]?(null|none|nan|n/a|blank|empty)[)>\]}]?|\\n"
    r"|#[¡¿]?[^\W\d]\S*[!?]|#[^\W\d]/[^\W\d]"  # an error in another language: #VALEUR!, #N/D
    r"|((grand|sub)[ -]?)?total\b.*|sum(me)?(:.*)?|gesamt\b.*",
    re.IGNORECASE,
)

MOST_ODD_VALUES = 100_000  # of a file, because each takes a few microseconds
WORD_END = re.compile(r"(?<=\w)\W")
# What a spreadsheet makes of a long number, and of a whole one.
ROUNDED = re.compile(r"\d[.,]\d+[Ee][+-]?\d+|\d[Ee]\+\d+|\d+\.0")


class NumberText(str):
    """The text of a cell that is a number."""

    __slots__ = ()


class DateText(str):
    """The text of a cell that is a day or a time: 2026-12-31, or 2026-12-31 18:30:00."""

    __slots__ = ()


def plain_text(text: str, *, is_name: bool = False) -> str:
    """The text that a mark of a spreadsheet protects: `="00123"`, `'00123` and `"00123"` are the
    text 00123. One mark is removed. In a name, an apostrophe before a letter is part of it."""
    if text[:1].isalnum():
        return text
    plain = text.strip()
    if found := TEXT_FORMULA.fullmatch(plain):
        return found[1].replace('""', '"').strip()
    if text.startswith("'") and (not is_name or PROTECTED.match(text)):
        return text[1:]
    if found := QUOTED.fullmatch(plain):
        return found[1].strip()
    return text


def is_marked(text: str) -> bool:
    """Whether the text begins or ends with a quotation mark, or begins like a formula."""
    return text[-1:] in MARKS or text[:1] in MARKS or text[:1] == "="


def without_marks(text: str) -> str:
    """The text without quotation marks and marks of spreadsheets around it. Only for comparing."""
    text = text.strip(QUOTES)
    return text[1:].strip(QUOTES) if text[:1] == "=" and text[1:2] in QUOTES else text


def first_word(text: str) -> str:
    """Its first word: what follows may be part of a code."""
    return WORD_END.split(text, maxsplit=1)[0]


def first_invisible(text: str, *, spaces: bool) -> str:
    """The first character that shows nothing, or that cannot be printed; empty if there is none.
    With `spaces`, also a space that is not the plain one."""
    if text.isprintable() and not FILLERS.search(text):
        return ""
    for one in dict.fromkeys(text):
        if one == " " or (one.isspace() and not spaces):
            continue
        if FILLERS.match(one) or not one.isprintable():
            return one
    return ""


def name_of(character: str) -> str:
    """The Unicode name and number of a character."""
    number = f"U+{ord(character):04X}"
    name = unicodedata.name(character, "")
    return f"{name} ({number})" if name else number


def foreign_scripts(text: str) -> list[str]:
    """The scripts of its letters and digits besides Latin, such as `Cyrillic`."""
    names = {_script(one) for one in set(NOT_ASCII.findall(text)) if one.isalnum()}
    return sorted(names - {"Latin", "Feminine", "Masculine", "Micro"})


@lru_cache(100_000)
def _script(letter: str) -> str:
    return unicodedata.name(letter, "?").partition(" ")[0].capitalize()
