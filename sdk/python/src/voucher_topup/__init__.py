"""Buys voucher codes and game top-ups exactly once, even if messages are lost.

client = Client(base_url, api_key, SQLiteJournal("purchases.db"))
client.resume()
outcome = client.buy("order-4711", voucher(1, product_id=10))
"""

from voucher_topup.advice import Advice, advice
from voucher_topup.aio import AsyncClient
from voucher_topup.client import Client, top_up, voucher
from voucher_topup.core import Rules
from voucher_topup.flows import ApiError, Catalogue, ReferenceNotFound, Unavailable
from voucher_topup.journal import (
    Entry,
    Journal,
    MemoryJournal,
    NotInJournal,
    OrderNumberTaken,
    PostgresJournal,
    SQLiteJournal,
)
from voucher_topup.models import (
    Bought,
    Code,
    Order,
    OrderStatus,
    Outcome,
    Refused,
    TopUpOrder,
    Unknown,
    VoucherOrder,
)
from voucher_topup.reconciling import Reconciliation
from voucher_topup.wire import ErrorCode, Failure, RefusalReason

__all__ = [
    "Advice",
    "ApiError",
    "AsyncClient",
    "Bought",
    "Catalogue",
    "Client",
    "Code",
    "Entry",
    "ErrorCode",
    "Failure",
    "Journal",
    "MemoryJournal",
    "NotInJournal",
    "Order",
    "OrderNumberTaken",
    "OrderStatus",
    "Outcome",
    "PostgresJournal",
    "Reconciliation",
    "ReferenceNotFound",
    "RefusalReason",
    "Refused",
    "Rules",
    "SQLiteJournal",
    "TopUpOrder",
    "Unavailable",
    "Unknown",
    "VoucherOrder",
    "advice",
    "top_up",
    "voucher",
]
