"""Advice for each error code and reason: for the docs pages, and for the client libraries.

A test fails if a code or reason has no advice. The pages translate it.
"""

from dataclasses import dataclass

from core.api.errors import ErrorCode, RefusalReason
from core.texts import gettext_noop


@dataclass(frozen=True)
class Advice:
    """Advice after a response: what to do, and whether the wallet was debited."""

    charged: str
    act: str


NO, UNKNOWN, ONCE = gettext_noop("no"), gettext_noop("unknown"), gettext_noop("yes, once")
# Such a response says nothing about an earlier attempt.
NOT_BY_THIS = gettext_noop("no, not by this request")

CODES: dict[ErrorCode, Advice] = {
    ErrorCode.MISSING_TOKEN: Advice(
        NOT_BY_THIS, gettext_noop("Send the Authorization header with every request.")
    ),
    ErrorCode.INVALID_TOKEN: Advice(
        NOT_BY_THIS,
        gettext_noop(
            "Use another API key of the same client: this one is mistyped or revoked, or was"
            " replaced"
            " and has expired."
        ),
    ),
    ErrorCode.CLIENT_DISABLED: Advice(
        NOT_BY_THIS,
        gettext_noop(
            "Stop: the client or the account is switched off. Ask an owner, then support."
        ),
    ),
    ErrorCode.IP_NOT_ALLOWED: Advice(
        NOT_BY_THIS,
        gettext_noop("Call from an address on the client's allowlist, or add your address to it."),
    ),
    ErrorCode.RATE_LIMITED: Advice(
        NOT_BY_THIS,
        gettext_noop(
            "Wait error.retry_after_seconds seconds, then send the same request with the same"
            " idempotency key."
        ),
    ),
    ErrorCode.CLIENT_WITHOUT_WALLET: Advice(
        NO, gettext_noop("Stop: the account has no wallet. Contact support.")
    ),
    ErrorCode.IDEMPOTENCY_KEY_REQUIRED: Advice(
        NOT_BY_THIS,
        gettext_noop(
            "Fix the program: send one Idempotency-Key with each purchase, in ASCII characters"
            " without a comma, such as your own order number or a UUID."
        ),
    ),
    ErrorCode.IDEMPOTENCY_KEY_TOO_LONG: Advice(
        NOT_BY_THIS, gettext_noop("Fix the program: an idempotency key has at most 128 bytes.")
    ),
    ErrorCode.IDEMPOTENCY_KEY_REUSED: Advice(
        NOT_BY_THIS,
        gettext_noop(
            "Fix the program: this idempotency key belongs to a purchase with other content. Find"
            " out"
            " which purchase you meant before you send another request."
        ),
    ),
    ErrorCode.REQUEST_IN_PROGRESS: Advice(
        UNKNOWN,
        gettext_noop(
            "Wait a few seconds, then send the same request with the same idempotency key. Repeat"
            " this: you may get this response for some minutes."
        ),
    ),
    ErrorCode.REQUEST_ABANDONED: Advice(
        ONCE,
        gettext_noop(
            "Do not buy again. Read the order with GET /orders/{error.reference}. If it is not"
            " found, a restore of the service's database lost it: keep the codes that you received,"
            " and contact support with the reference."
        ),
    ),
    ErrorCode.VALIDATION_FAILED: Advice(
        NO,
        gettext_noop("Fix the request: error.fields says where. You may keep the idempotency key."),
    ),
    ErrorCode.VARIATION_MISMATCH: Advice(
        NO,
        gettext_noop("Fix the request: take product and variation from one item of GET /products."),
    ),
    ErrorCode.PRODUCT_NOT_FOUND: Advice(
        NO, gettext_noop("Stop offering the product: it is unknown or switched off.")
    ),
    ErrorCode.PRODUCT_REFERENCE_NOT_FOUND: Advice(
        NO,
        gettext_noop(
            "Fix the reference, or link error.merchant_reference to a product or variation on the"
            " References page."
        ),
    ),
    ErrorCode.PRODUCT_REFERENCE_AMBIGUOUS: Advice(
        NO,
        gettext_noop(
            "Send product_id or merchant_reference, not both. If you send merchant_reference, omit"
            " variation_id."
        ),
    ),
    ErrorCode.ORDER_NOT_FOUND: Advice(
        NO,
        gettext_noop(
            "Check the reference, and use an API key of the client that bought the order. Other"
            " clients cannot read it."
        ),
    ),
    ErrorCode.ORDER_REFUSED: Advice(
        NO,
        gettext_noop(
            "See error.reason in the next table. Without a reason, do not retry automatically:"
            " contact"
            " support."
        ),
    ),
    ErrorCode.SERVER_ERROR: Advice(
        UNKNOWN,
        gettext_noop(
            "Wait, then send the same request with the same idempotency key. Repeat until the"
            " response"
            " is not a 5xx, for at most one day."
        ),
    ),
}

REASONS: dict[RefusalReason, Advice] = {
    RefusalReason.PRODUCT_INACTIVE: Advice(
        NO, gettext_noop("Do not retry: the product is switched off. Stop offering it.")
    ),
    RefusalReason.QUANTITY_STEP: Advice(
        NO, gettext_noop("Send another quantity: a multiple of the product's quantity_step.")
    ),
    RefusalReason.PRICE_UNAVAILABLE: Advice(
        NO,
        gettext_noop(
            "If the product has variations, send the variation_id of one. Otherwise do not retry:"
            " the product has no price. Contact support."
        ),
    ),
    RefusalReason.CLIENT_WITHOUT_WALLET: Advice(
        NO, gettext_noop("Do not retry: the account has no wallet. Contact support.")
    ),
    RefusalReason.INSUFFICIENT_STOCK: Advice(
        NO,
        gettext_noop(
            "If the product has variations, send the variation_id of one that has codes. Otherwise"
            " send the same request later, with the same idempotency key."
        ),
    ),
    RefusalReason.INSUFFICIENT_BALANCE: Advice(
        NO,
        gettext_noop(
            "If error.message names the spending limit, ask an owner to raise it; otherwise add"
            " money to the wallet. Then send the same request with the same idempotency key."
        ),
    ),
}
