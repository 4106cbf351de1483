"""The back office for staff: one module for each area of work.

Importing this package, as config/urls.py does, registers all its pages. No other pages are
registered, so the secrets of second factors have none.
"""

from operators.admin import (
    catalogue,
    codes,
    desk,
    members,
    merchants,
    money,
    orders,
    staff,
    system,
    telegram,
    top_up_products,
)

__all__ = [
    "catalogue",
    "codes",
    "desk",
    "members",
    "merchants",
    "money",
    "orders",
    "staff",
    "system",
    "telegram",
    "top_up_products",
]
