"""The form of a merchant reference (contract, "Voucher purchase body")."""

import re

from django.core.exceptions import ValidationError

MAX_REFERENCE_LENGTH = 64
# `[^\W_]` is a Unicode letter or digit.
_PATTERN = re.compile(r"[^\W_](?:[^\W_]|[ ._\-/:#])*")


def is_reference(text: str) -> bool:
    """Whether `text` may name a shelf."""
    return len(text) <= MAX_REFERENCE_LENGTH and _PATTERN.fullmatch(text) is not None


def validate_reference(text: str) -> None:
    """Raises ValidationError with the rule that `text` breaks."""
    if not is_reference(text):
        raise ValidationError(
            "A reference has at most 64 characters, starts with a letter or digit, and goes on"
            " with letters, digits, spaces and . _ - / : #"
        )
