"""Numbers that people write in files, in forms and at a shell: one parser for all of them."""

import re
from decimal import Decimal

from django.utils.translation import gettext_noop

from core.inputs import InputProblem
from core.texts import with_separators

PLAIN = re.compile(r"-?([0-9]+(\.[0-9]+)?|\.[0-9]+)")
# Three digits after a point: in many languages, the point is between thousands.
POINT_OF_THOUSANDS = re.compile(r"-?[1-9][0-9]{0,2}\.[0-9]{3}")
# A comma that is between thousands in some languages, and before the decimals in others.
COMMA_OF_THOUSANDS = re.compile(r"-?[1-9][0-9]{0,2},[0-9]{3}")
WITH_COMMA = re.compile(r"-?[0-9]+,[0-9]+")
# Marks between thousands, and others before the decimals, as in `1.250,50` and `1,250,000`.
WITH_THOUSANDS = re.compile(
    r"(?P<whole>-?[1-9][0-9]{0,2}(?P<mark>[ \u00a0\u202f'\u2019.,])[0-9]{3}((?P=mark)[0-9]{3})*)"
    r"((?!(?P=mark))[.,](?P<decimals>[0-9]+))?"
)
CURRENCY = re.compile(r"\A([A-Z]{3}|[€$£¥])\s*|\s*([A-Z]{3}|[€$£¥])\Z")  # before or after it
MOST_DIGITS = 40
SHOWN = 40  # characters

# What is wrong with a number. Imports store it in English, and pages translate it.
NOT_PLAIN = gettext_noop(
    "%(text)s is not a plain number. Write only digits, and a point before the decimals, such as"
    " 1234.50"
)
THOUSANDS = gettext_noop(
    "%(text)s is not a plain number. Write %(plain)s: only digits, and a point before the decimals"
)
TWO_READINGS = gettext_noop(
    "%(text)s may mean %(one)s or %(other)s. Write a point before the decimals, and nothing between"
    " thousands"
)
ONE_OR_THOUSAND = gettext_noop("%(text)s may mean %(one)s or %(other)s. Write one of these")
# The same of a number in a form, which shows it with the mark of the reader's language.
NOT_TYPED = gettext_noop(
    "%(text)s is not a plain number. Write only digits and a decimal separator, such as %(plain)s"
)
TYPED_OTHERWISE = gettext_noop(
    "%(text)s is not a plain number. Write %(plain)s: only digits and a decimal separator"
)
LONG_NUMBER = gettext_noop("This number has more than %(most)s digits")
WRONG_NUMBERS = (
    *(NOT_PLAIN, THOUSANDS, TWO_READINGS, ONE_OR_THOUSAND, LONG_NUMBER),
    *(NOT_TYPED, TYPED_OTHERWISE),
)


def read_number(text: str) -> Decimal:
    """The number, if the text is one plain decimal number. Raises InputProblem, which shows the
    plain number that was meant, or both readings of a comma."""
    plain = text.strip()
    if len(plain) > MOST_DIGITS:
        raise InputProblem(LONG_NUMBER % {"most": MOST_DIGITS})
    if PLAIN.fullmatch(plain):
        return Decimal(plain)
    bare = CURRENCY.sub("", plain)
    if COMMA_OF_THOUSANDS.fullmatch(bare):
        readings = {"one": bare.replace(",", "."), "other": bare.replace(",", "")}
        raise InputProblem(TWO_READINGS % {"text": plain, **readings})
    if meant := _with_point(bare):
        raise InputProblem(THOUSANDS % {"text": plain, "plain": meant})
    raise InputProblem(NOT_PLAIN % {"text": plain[:SHOWN]})


def _with_point(text: str) -> str:
    """The plain number that the text means, whatever its marks; empty if it is none, or may mean
    two."""
    if PLAIN.fullmatch(text):
        return text
    if COMMA_OF_THOUSANDS.fullmatch(text):
        return ""
    if WITH_COMMA.fullmatch(text):
        return text.replace(",", ".")
    if found := WITH_THOUSANDS.fullmatch(text):
        whole = found["whole"].replace(found["mark"], "")
        return f"{whole}.{found['decimals']}" if found["decimals"] else whole
    return ""


def other_reading(text: str) -> str:
    """The number that the text means where a point is between thousands; empty if it means one
    number everywhere. `1.000` is one, or one thousand."""
    plain = text.strip()
    return plain.replace(".", "") if POINT_OF_THOUSANDS.fullmatch(plain) else ""


def read_clear_number(text: str) -> Decimal:
    """The number, if the text means one number everywhere. Raises InputProblem."""
    return _only_reading(text, text.strip())


def read_typed_number(text: str) -> Decimal:
    """The number that a person typed in a form, with a point or a comma before the decimals:
    `9,50`, `1.250,50`. Raises InputProblem if it may mean two numbers, such as `1,250`."""
    plain = text.strip()
    bare = CURRENCY.sub("", plain)
    if COMMA_OF_THOUSANDS.fullmatch(bare) or POINT_OF_THOUSANDS.fullmatch(bare):
        return _only_reading(bare.replace(",", "."), plain)
    number = _with_point(plain)
    if number or len(plain) > MOST_DIGITS:
        return read_clear_number(number or plain)
    meant = _with_point(bare)
    template = TYPED_OTHERWISE if meant else NOT_TYPED
    raise InputProblem(template % {"text": plain, "plain": with_separators(meant or "1234.50")})


def _only_reading(text: str, shown: str) -> Decimal:
    number = read_number(text)
    if other := other_reading(text):
        values = {"text": shown, "one": with_separators(clear_text(number)), "other": other}
        raise InputProblem(ONE_OR_THOUSAND % values)
    return number


def clear_text(number: Decimal) -> str:
    """The number as a text that means one number everywhere: never with three decimals."""
    whole, _, decimals = f"{number:f}".partition(".")
    exact = decimals.rstrip("0")
    if len(exact) == 3:
        exact += "0"
    return f"{whole}.{exact}" if exact else whole
