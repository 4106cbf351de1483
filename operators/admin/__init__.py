"""The back office for staff: one module for each area of work.

Importing this package, as config/urls_pages.py does, registers all its pages. No other pages are
registered, so the secrets of second factors have none.
"""

from operators.admin import (
    accounts,
    audit_trail,
    catalogue,
    codes,
    desk,
    idempotency_records,
    imports,
    members,
    money,
    orders,
    reconcile_runs,
    requests,
    staff,
    telegram,
    top_up_products,
)

__all__ = [
    "accounts",
    "audit_trail",
    "catalogue",
    "codes",
    "desk",
    "idempotency_records",
    "imports",
    "members",
    "money",
    "orders",
    "reconcile_runs",
    "requests",
    "staff",
    "telegram",
    "top_up_products",
]
