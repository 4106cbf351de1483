"""Registers all pages of the back office, as config/urls_pages.py and the system checks need them.

No other pages are registered, so the secrets of second factors have none.
"""

from operators.catalogue import batches, codes, price_lists, products, top_up_products
from operators.desk import queue
from operators.history import audit_trail_page
from operators.imports import pages as imports
from operators.merchants import accounts, members
from operators.money import approvals, closes, ledger, transfers
from operators.orders import cases, idempotency_records, lost_purchases, orders, requests
from operators.sales import margins, reports
from operators.staff import staff
from operators.telegram import pages as telegram
from operators.upkeep import reconcile_runs
from operators.warnings import pages as warnings

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
    "ledger",
    "lost_purchases",
    "margins",
    "members",
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
