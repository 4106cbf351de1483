"""Limits of columns that several apps have: lengths, digits of money, currency codes.

A limit that only one app uses is defined in the models of that app.
"""

from django.core.validators import RegexValidator

from core.texts import lazy

NAME_LENGTH = 200  # of an account, a client, a product
ACTOR_LENGTH = 200  # such as `admin:` and a username
NOTE_LENGTH = 500
ORDER_REFERENCE_LENGTH = 26  # a ULID
BOOKING_REFERENCE_LENGTH = 100

# An amount of money: at most 20 digits, 4 of them decimals.
MONEY_DIGITS, MONEY_DECIMALS = 20, 4

CURRENCY_LENGTH = 3
CURRENCY_CODE = rf"^[A-Z]{{{CURRENCY_LENGTH}}}$"  # for PostgreSQL
# For Python, whose `$` also matches before a final newline.
validate_currency = RegexValidator(
    rf"^[A-Z]{{{CURRENCY_LENGTH}}}\Z", lazy("Use three capital letters, such as USD.")
)
