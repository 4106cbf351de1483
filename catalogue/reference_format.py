"""The format of a merchant reference (contract, "Voucher purchase body")."""

from unicodedata import category

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

MAX_REFERENCE_LENGTH = 64
# For the OpenAPI document. Dialects of regular expressions differ in how they name Unicode letters,
# so this pattern leaves out what ASCII excludes, and accepts every other character.
ASCII_PATTERN = (
    r"^[^\x00-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]"
    r"[^\x00-\x1f\x21\x22\x24-\x2c\x3b-\x40\x5b-\x5e\x60\x7b-\x7f]*$"
)
_SIGNS = frozenset(" ._-/:#")


def is_reference(text: str) -> bool:
    """Whether `text` is a valid merchant reference."""
    return not broken_rules(text)


def broken_rules(text: str) -> list[str]:
    """A sentence for each rule that `text` breaks; none for a valid reference."""
    if not text:
        return [_("A reference needs at least one character.")]
    broken = []
    if len(text) > MAX_REFERENCE_LENGTH:
        broken.append(
            _("A reference has at most %(most)s characters; this one has %(number)s.")
            % {"most": MAX_REFERENCE_LENGTH, "number": len(text)}
        )
    if not _is_letter_or_digit(text[0]):
        broken.append(
            _("A reference starts with a letter or digit, not with %(character)s.")
            % {"character": _show(text[0])}
        )
    strange = next(
        (n for n, c in enumerate(text[1:], 2) if c not in _SIGNS and not _is_letter_or_digit(c)),
        None,
    )
    if strange is not None:
        broken.append(
            _(
                "A reference contains only letters, digits, spaces and . _ - / : #, but character"
                " %(number)s is %(character)s."
            )
            % {"number": strange, "character": _show(text[strange - 1])}
        )
    return broken


def validate_reference(text: str) -> None:
    """Raises ValidationError with a sentence for each rule that `text` breaks."""
    broken = broken_rules(text)
    if broken:
        raise ValidationError(broken)


def _is_letter_or_digit(character: str) -> bool:
    """Whether Unicode calls it a letter or a decimal digit. `isalnum` accepts ², ½ and Ⅷ, too."""
    kind = category(character)
    return kind[0] == "L" or kind == "Nd"


def _show(character: str) -> str:
    return character if character.isprintable() and character != " " else f"U+{ord(character):04X}"
