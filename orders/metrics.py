"""Counts purchases by kind and outcome (docs/operate/monitor.md)."""

from __future__ import annotations

from typing import Self

from core.api.exceptions import BEFORE_THE_API, as_api_error
from core.telemetry.metrics import Count

PURCHASES = Count(
    "voucher_purchases",
    "POST /orders after authentication, by kind (`voucher`, `top_up`, or `unknown` if the body did"
    " not say), outcome (`created`, `replayed` or the error code) and reason (of `order_refused`).",
    *("kind", "outcome", "reason"),
)
LINES_LOST = Count(
    "voucher_purchase_lines_lost",
    "Lines of the purchase log that a process could not write, for example to a full disk.",
)


class CountedPurchase:
    """Counts the purchase that its block handles. The block sets `kind`, and `replayed`.

    An exception that leaves the block is counted by the code of its response, and goes on. A
    request that never reached the API is no purchase.
    """

    kind = "unknown"
    replayed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None:
            PURCHASES.add(self.kind, "replayed" if self.replayed else "created", "")
        elif isinstance(error, Exception) and not isinstance(error, BEFORE_THE_API):
            failed = as_api_error(error)
            PURCHASES.add(self.kind, failed.code.value, failed.extra.get("reason", ""))
