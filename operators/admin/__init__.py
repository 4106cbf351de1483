"""The back office for staff, one module per area of work."""

from operators.admin import (
    catalogue,
    codes,
    desk,
    merchants,
    money,
    orders,
    packages,
    staff,
    system,
)

__all__ = [
    "catalogue",
    "codes",
    "desk",
    "merchants",
    "money",
    "orders",
    "packages",
    "staff",
    "system",
]
