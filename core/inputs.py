"""Checks of what people type at a shell or provide in a file; a refusal is one line."""

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TypeVar
from unicodedata import category

from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from django.utils.translation import gettext, gettext_noop

SHOWN_PROBLEMS = 20
KEPT_PROBLEMS = 10_000  # of one file, to download; the others are counted
ID_DIGITS = 18  # every number of 18 digits fits into a bigint

# Categories of characters that show nothing: control, format, and the kinds of white space.
INVISIBLE = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})
# Characters of other categories that show nothing: fillers, joiners, variation selectors, and code
# points that Unicode keeps for more of them (Default_Ignorable_Code_Point); and the Braille blank.
FILLERS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\ufff0-\ufff8\U000e0000-\U000e0fff]"
)

BLANK = gettext_noop("Enter text that can be seen.")

Row = TypeVar("Row", bound=Model)


class InputProblem(ValueError):
    """The input cannot be used, and nothing was changed.

    The message is one line for people and never contains a secret. `problems` are the first
    problems of a file, each with its place there, and `more` counts the others. Characters that
    cannot be printed are escaped: the database stores neither NUL nor lone surrogates.
    """

    def __init__(self, message: str, *, problems: Sequence[str] = (), more: int = 0) -> None:
        super().__init__(_printable(message))
        self.problems = [_printable(one) for one in problems or [message]]
        self.more = more


def _printable(text: str) -> str:
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )


def find_row(rows: QuerySet[Row], pk: int) -> Row:
    """The row with this id. Raises InputProblem when there is none."""
    row = rows.filter(pk=pk).first()
    if row is None:
        raise InputProblem(
            gettext("There is no %(verbose_name)s %(pk)s.")
            % {"verbose_name": rows.model._meta.verbose_name, "pk": pk}
        )
    return row


def is_id(text: str) -> bool:
    """Whether the text can be the id of a row."""
    return text.isascii() and text.isdecimal() and len(text) <= ID_DIGITS


def is_blank(text: str) -> bool:
    """Whether the text shows nothing: it is empty, or has only invisible characters.

    Python's `strip` removes white space only, and leaves for example a zero width space.
    """
    return all(category(one) in INVISIBLE or FILLERS.match(one) for one in text)


def validate_not_blank(text: str) -> None:
    """Raises ValidationError if the text shows nothing."""
    if is_blank(text):
        raise ValidationError(gettext(BLANK))


def clean_text(text: str, *, what: str, max_length: int) -> str:
    """The text without surrounding whitespace. `what` names the value in messages.

    Raises InputProblem when the text is empty, is longer than `max_length` characters, or contains
    characters that cannot be printed (NUL, line breaks, lone surrogates).
    """
    text = text.strip()
    if not text:
        raise InputProblem(gettext("The %(what)s is empty.") % {"what": gettext(what)})
    if len(text) > max_length:
        raise InputProblem(
            gettext("The %(what)s is longer than %(max_length)s characters.")
            % {"what": gettext(what), "max_length": max_length}
        )
    if not text.isprintable():
        raise InputProblem(
            gettext("The %(what)s contains characters that cannot be printed.")
            % {"what": gettext(what)}
        )
    return text


def raise_problems(problems: Iterable[str], *, kept: int = SHOWN_PROBLEMS) -> None:
    """Raises InputProblem when there are problems: its sentence lists the first 20 and counts the
    rest, and it keeps the first `kept`."""
    remaining = iter(problems)
    first = list(islice(remaining, kept))
    more = sum(1 for _ in remaining)
    if first:
        unshown = len(first[SHOWN_PROBLEMS:]) + more
        sentence = "; ".join(first[:SHOWN_PROBLEMS])
        sentence += gettext("; and %(count)s more") % {"count": unshown} if unshown else ""
        raise InputProblem(sentence, problems=first, more=more)


def problems_as_text(problems: Sequence[str], more: int) -> str:
    """The problems of a file as text: one per line, then how many more there are."""
    lines = [*problems, f"and {more} more"] if more else problems
    return "".join(f"{line}\n" for line in lines)


def one_line(error: ValidationError) -> str:
    """The messages of a Django ValidationError as `field: sentence` pairs on one line."""
    if not hasattr(error, "error_dict"):
        return " ".join(error.messages)
    return " ".join(
        f"{name}: {sentence}"
        for name, sentences in error.message_dict.items()
        for sentence in sentences
    )
