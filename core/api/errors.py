"""The error codes and refusal reasons of the contract, and the exception that carries them.

Plain Python, without Django. Every layer may raise `ApiError`; `core.api.exceptions` renders it.
"""

from enum import StrEnum
from http import HTTPStatus
from typing import Any


class ErrorCode(StrEnum):
    """Contract, "Errors": each code with its HTTP status and its default message."""

    status: HTTPStatus
    default_message: str

    def __new__(cls, code: str, status: HTTPStatus, message: str) -> "ErrorCode":
        member = str.__new__(cls, code)
        member._value_ = code
        member.status = status
        member.default_message = message
        return member

    MISSING_TOKEN = (
        "missing_token",
        HTTPStatus.UNAUTHORIZED,
        "Send your API key as `Authorization: Bearer <API_KEY>`.",
    )
    INVALID_TOKEN = (
        "invalid_token",
        HTTPStatus.UNAUTHORIZED,
        "The API key is not valid: it is unknown, expired or revoked.",
    )
    CLIENT_DISABLED = (
        "client_disabled",
        HTTPStatus.FORBIDDEN,
        "This client or its account is disabled.",
    )
    IP_NOT_ALLOWED = (
        "ip_not_allowed",
        HTTPStatus.FORBIDDEN,
        "Your address is not on this client's allowlist.",
    )
    RATE_LIMITED = (
        "rate_limited",
        HTTPStatus.TOO_MANY_REQUESTS,
        "Too many requests; wait `retry_after_seconds` seconds and try again.",
    )
    CLIENT_WITHOUT_WALLET = (
        "client_without_wallet",
        HTTPStatus.CONFLICT,
        "This API key is not attached to an account with a wallet.",
    )
    IDEMPOTENCY_KEY_REQUIRED = (
        "idempotency_key_required",
        HTTPStatus.BAD_REQUEST,
        "Send an `Idempotency-Key` header: a new value for each independent purchase, such as your"
        " own order number or a UUID. A key with characters beyond ASCII counts as missing.",
    )
    IDEMPOTENCY_KEY_TOO_LONG = (
        "idempotency_key_too_long",
        HTTPStatus.BAD_REQUEST,
        "The `Idempotency-Key` is too long; a UUID is short enough.",
    )
    IDEMPOTENCY_KEY_REUSED = (
        "idempotency_key_reused",
        HTTPStatus.CONFLICT,
        "This `Idempotency-Key` was already used for a different request.",
    )
    REQUEST_IN_PROGRESS = (
        "request_in_progress",
        HTTPStatus.CONFLICT,
        "A request with this `Idempotency-Key` is still running; wait and send the same again.",
    )
    REQUEST_ABANDONED = (
        "request_abandoned",
        HTTPStatus.CONFLICT,
        "A request with this `Idempotency-Key` did not finish, but its order was created;"
        " read it with GET and do not buy again.",
    )
    VALIDATION_FAILED = (
        "validation_failed",
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "The request is not valid; `fields` says what to change.",
    )
    VARIATION_MISMATCH = (
        "variation_mismatch",
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "The variation does not belong to this product.",
    )
    PRODUCT_NOT_FOUND = ("product_not_found", HTTPStatus.NOT_FOUND, "There is no such product.")
    PRODUCT_REFERENCE_NOT_FOUND = (
        "product_reference_not_found",
        HTTPStatus.NOT_FOUND,
        "This merchant reference is not linked to a product.",
    )
    PRODUCT_REFERENCE_AMBIGUOUS = (
        "product_reference_ambiguous",
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "Name the product once, by `product_id` or by `merchant_reference`, with a `variation_id`"
        " that matches it.",
    )
    ORDER_NOT_FOUND = ("order_not_found", HTTPStatus.NOT_FOUND, "There is no such order.")
    ORDER_REFUSED = (
        "order_refused",
        HTTPStatus.CONFLICT,
        "The order was refused and nothing was charged.",
    )
    SERVER_ERROR = (
        "server_error",
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "Something failed on our side. For a purchase the outcome is unknown:"
        " send the same request with the same `Idempotency-Key`.",
    )


class RefusalReason(StrEnum):
    """Contract, "Reasons under order_refused", in the order in which a purchase checks them.

    The API returns the message in English. Pages translate it.
    """

    message: str

    def __new__(cls, reason: str, message: str) -> "RefusalReason":
        member = str.__new__(cls, reason)
        member._value_ = reason
        member.message = message
        return member

    PRODUCT_INACTIVE = (
        "product_inactive",
        "This product, variation or category is switched off.",
    )
    QUANTITY_STEP = ("quantity_step", "The quantity must be a multiple of the quantity_step.")
    PRICE_UNAVAILABLE = ("price_unavailable", "There is no sale price; please contact support.")
    CLIENT_WITHOUT_WALLET = (
        "client_without_wallet",
        "This API key is not attached to an account with a wallet.",
    )
    INSUFFICIENT_STOCK = ("insufficient_stock", "There is not enough stock now; try again later.")
    INSUFFICIENT_BALANCE = (
        "insufficient_balance",
        "The wallet balance is too low; add money and send the same request again.",
    )


class ApiError(Exception):
    """A failure with an error code, rendered as `{success: false, error: {code, message, ...}}`.

    `extra` holds the other members of the error object: `fields`, `reason`, `reference`,
    `merchant_reference` or `retry_after_seconds` (contract, "Error object").
    """

    def __init__(self, code: ErrorCode, message: str | None = None, **extra: Any) -> None:
        super().__init__(code.value)
        self.code = code
        self.message = message or code.default_message
        self.extra = extra


class ValidationFailed(ApiError):
    """`validation_failed` (422). `fields` maps each field name to its list of messages."""

    def __init__(self, fields: dict[str, list[str]]) -> None:
        super().__init__(ErrorCode.VALIDATION_FAILED, fields=fields)


class OrderRefused(ApiError):
    """`order_refused` (409) with its reason. The wallet was not debited."""

    def __init__(self, reason: RefusalReason, message: str = "") -> None:
        super().__init__(ErrorCode.ORDER_REFUSED, message or reason.message, reason=reason.value)
        self.reason = reason


_REASONS = {reason.value: reason for reason in RefusalReason}


def order_refused(word: str) -> OrderRefused:
    """The OrderRefused for the word that an SQL function refused with, which is the reason.

    Raises KeyError when the contract has no such reason.
    """
    return OrderRefused(_REASONS[word])
