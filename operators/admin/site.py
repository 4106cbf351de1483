"""Registers all pages of the back office, as config/urls_pages.py and the system checks need them.

No other pages are registered, so the secrets of second factors have none.
"""

from operators.admin import (
    cases,
    idempotency_records,
    lost_purchases,
    margins,
    orders,
    reports,
    requests,
    staff,
    warnings,
)
from operators.admin.catalogue import batches, codes, price_lists, products, top_up_products
from operators.admin.merchants import accounts, approvals, closes, members, money, transfers
from operators.desk import queue
from operators.history import audit_trail_page
from operators.imports import pages as imports
from operators.telegram import pages as telegram
from operators.upkeep import reconcile_runs

__all__ = [
    "accounts",
    "approvals",
    "audit_trail_page",
    "batches",
    "cases",
    "closes",
    "codes",
    "idempotency_records",
    "imports",
    "lost_purchases",
    "margins",
    "members",
    "money",
    "orders",
    "price_lists",
    "products",
    "queue",
    "reconcile_runs",
    "reports",
    "requests",
    "staff",
    "telegram",
    "top_up_products",
    "transfers",
    "warnings",
]
