"""Widths of columns that several apps have, each defined once.

A limit that one app owns is defined in that app's models.
"""

from django.core.validators import RegexValidator

NAME_LENGTH = 200  # of an account, a client, a product
ACTOR_LENGTH = 200  # such as `admin:` and a username
NOTE_LENGTH = 500
ORDER_REFERENCE_LENGTH = 26  # a ULID

# An amount of money: at most 20 digits, 4 of them decimals.
MONEY_DIGITS, MONEY_DECIMALS = 20, 4

CURRENCY_LENGTH = 3
CURRENCY_CODE = rf"^[A-Z]{{{CURRENCY_LENGTH}}}$"  # as PostgreSQL matches it
# In Python `$` also matches before a newline at the end.
validate_currency = RegexValidator(
    rf"^[A-Z]{{{CURRENCY_LENGTH}}}\Z", "Use three capital letters, such as USD."
)
