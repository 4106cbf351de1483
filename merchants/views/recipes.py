"""What each answer of the API means for a program, as the docs tell it.

Every code and reason of the closed lists has its line; a test fails where one is missing.
"""

from dataclasses import dataclass
from pathlib import Path

from config.api.errors import ErrorCode, RefusalReason

SNIPPETS = Path(__file__).resolve().parents[1] / "snippets"
# File: what it is called on the page.
RETRY_SNIPPETS = {"buy.sh": "curl", "buy.py": "Python", "buy.mjs": "JavaScript"}
SNIPPET_NAMES = ["first_calls.sh", *RETRY_SNIPPETS, "wait_for_topup.py"]


@dataclass(frozen=True)
class Advice:
    """What to do about an answer, and whether the wallet was debited."""

    charged: str
    act: str


NO, UNKNOWN, ONCE = "no", "unknown", "yes, once"

CODES: dict[ErrorCode, Advice] = {
    ErrorCode.MISSING_TOKEN: Advice(NO, "Send the Authorization header with every request."),
    ErrorCode.INVALID_TOKEN: Advice(
        NO, "Use a live key: this one is mistyped, revoked, or its overlap is over."
    ),
    ErrorCode.CLIENT_DISABLED: Advice(
        NO, "Stop. The client or the account is switched off; ask your owner, then support."
    ),
    ErrorCode.IP_NOT_ALLOWED: Advice(
        NO, "Call from an address on the client's allowlist, or add this one to it."
    ),
    ErrorCode.RATE_LIMITED: Advice(
        NO, "Wait error.retry_after_seconds, then send the same request with the same key."
    ),
    ErrorCode.CLIENT_WITHOUT_WALLET: Advice(NO, "Stop. Contact support: there is no wallet."),
    ErrorCode.IDEMPOTENCY_KEY_REQUIRED: Advice(
        NO, "Mend the program: each purchase carries an Idempotency-Key, best a new UUID."
    ),
    ErrorCode.IDEMPOTENCY_KEY_TOO_LONG: Advice(
        NO, "Mend the program: the key has at most 128 bytes."
    ),
    ErrorCode.IDEMPOTENCY_KEY_REUSED: Advice(
        "no, not by this request",
        "Mend the program: this key belongs to a purchase with other content. Find out which one"
        " you meant before you send anything.",
    ),
    ErrorCode.REQUEST_IN_PROGRESS: Advice(
        UNKNOWN, "Wait some seconds, then send the same request with the same key."
    ),
    ErrorCode.REQUEST_ABANDONED: Advice(
        ONCE, "Do not buy again. Read GET /orders/{error.reference}: that is your order."
    ),
    ErrorCode.VALIDATION_FAILED: Advice(
        NO, "Mend the request; error.fields says where. Then the same key may be used."
    ),
    ErrorCode.VARIATION_MISMATCH: Advice(
        NO, "Mend the request: take product and variation from one entry of GET /products."
    ),
    ErrorCode.PRODUCT_NOT_FOUND: Advice(
        NO, "Take the product out of your shop: it is unknown, or switched off."
    ),
    ErrorCode.PRODUCT_REFERENCE_NOT_FOUND: Advice(
        NO, "Link error.merchant_reference to a shelf on the References page, or mend it."
    ),
    ErrorCode.PRODUCT_REFERENCE_AMBIGUOUS: Advice(
        NO, "Name the product once, and with your reference leave variation_id out."
    ),
    ErrorCode.ORDER_NOT_FOUND: Advice(
        NO, "Ask with the client that bought: another client's order is not found either."
    ),
    ErrorCode.ORDER_REFUSED: Advice(
        NO, "See error.reason below. Without a reason: do not repeat it by program; ask support."
    ),
    ErrorCode.SERVER_ERROR: Advice(
        UNKNOWN, "Wait, then send the same request with the same key until there is an answer."
    ),
}

REASONS: dict[RefusalReason, Advice] = {
    RefusalReason.PRODUCT_INACTIVE: Advice(
        NO, "Do not retry: it is switched off. Stop offering it."
    ),
    RefusalReason.QUANTITY_STEP: Advice(
        NO, "Send another quantity: a multiple of the product's quantity_step."
    ),
    RefusalReason.PRICE_UNAVAILABLE: Advice(NO, "Do not retry: it has no price. Contact support."),
    RefusalReason.CLIENT_WITHOUT_WALLET: Advice(NO, "Do not retry. Contact support."),
    RefusalReason.INSUFFICIENT_STOCK: Advice(NO, "Try again later, with the same key."),
    RefusalReason.INSUFFICIENT_BALANCE: Advice(
        NO, "Pay in, then send the same request with the same key."
    ),
}


def snippet(name: str) -> str:
    """The text of a file in merchants/snippets. Only of a name in SNIPPET_NAMES."""
    if name not in SNIPPET_NAMES:
        raise KeyError(name)
    return (SNIPPETS / name).read_text()
