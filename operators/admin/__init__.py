"""The back office for staff, one module per area of work.

Importing this package registers every page; config/urls.py does. Nothing else is registered: the
secrets of second factors, for one, have no page.
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
