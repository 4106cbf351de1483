"""Requests and replies as bytes. Decides whether a reply is from the service."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any, Optional, Union


@dataclass(frozen=True)
class Request:
    """An HTTP request below the base URL, without the API key."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Optional[bytes] = field(default=None, repr=False)
    idempotency_key: Optional[str] = None

    @property
    def is_purchase(self) -> bool:
        return self.method == "POST"


class ErrorCode(str, Enum):
    """The codes of the API. A code that this version does not know is a member, too."""

    MISSING_TOKEN = "missing_token"  # noqa: S105
    INVALID_TOKEN = "invalid_token"  # noqa: S105
    CLIENT_DISABLED = "client_disabled"
    IP_NOT_ALLOWED = "ip_not_allowed"
    RATE_LIMITED = "rate_limited"
    CLIENT_WITHOUT_WALLET = "client_without_wallet"
    IDEMPOTENCY_KEY_REQUIRED = "idempotency_key_required"
    IDEMPOTENCY_KEY_TOO_LONG = "idempotency_key_too_long"
    IDEMPOTENCY_KEY_REUSED = "idempotency_key_reused"
    REQUEST_IN_PROGRESS = "request_in_progress"
    REQUEST_ABANDONED = "request_abandoned"
    VALIDATION_FAILED = "validation_failed"
    VARIATION_MISMATCH = "variation_mismatch"
    PRODUCT_NOT_FOUND = "product_not_found"
    PRODUCT_REFERENCE_NOT_FOUND = "product_reference_not_found"
    PRODUCT_REFERENCE_AMBIGUOUS = "product_reference_ambiguous"
    ORDER_NOT_FOUND = "order_not_found"
    ORDER_REFUSED = "order_refused"
    SERVER_ERROR = "server_error"

    @classmethod
    def _missing_(cls, value: object) -> "ErrorCode":
        return new_member(cls, value)  # type: ignore[no-any-return]


class RefusalReason(str, Enum):
    """Why an order was refused. A reason that this version does not know is a member, too."""

    INSUFFICIENT_STOCK = "insufficient_stock"
    INSUFFICIENT_BALANCE = "insufficient_balance"
    QUANTITY_STEP = "quantity_step"
    PRODUCT_INACTIVE = "product_inactive"
    PRICE_UNAVAILABLE = "price_unavailable"
    CLIENT_WITHOUT_WALLET = "client_without_wallet"

    @classmethod
    def _missing_(cls, value: object) -> "RefusalReason":
        return new_member(cls, value)  # type: ignore[no-any-return]


def new_member(cls: Any, value: object) -> Any:
    """A member of an open enum for a value that this version does not know."""
    if not isinstance(value, str):
        return None
    member = str.__new__(cls, value)
    member._name_, member._value_ = "UNKNOWN", value
    return member


@dataclass(frozen=True)
class Failure:
    """An error of the service: `{success: false, error}`."""

    code: ErrorCode
    message: str
    reason: Optional[RefusalReason] = None
    reference: Optional[str] = None
    retry_after_seconds: Optional[int] = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    merchant_reference: Optional[str] = None

    def as_json(self) -> dict[str, Any]:
        """The same error as the API writes it, without what is missing."""
        values = {
            "code": self.code.value,
            "message": self.message,
            "reason": self.reason and self.reason.value,
            "reference": self.reference,
            "retry_after_seconds": self.retry_after_seconds,
            "fields": dict(self.fields),
            "merchant_reference": self.merchant_reference,
        }
        return {name: value for name, value in values.items() if value}

    @classmethod
    def from_json(cls, error: Mapping[str, Any]) -> "Failure":
        reason, seconds = error.get("reason"), error.get("retry_after_seconds")
        fields = error.get("fields")
        return cls(
            code=ErrorCode(error["code"]),
            message=str(error.get("message", "")),
            reason=RefusalReason(reason) if isinstance(reason, str) else None,
            reference=_text(error.get("reference")),
            retry_after_seconds=seconds if isinstance(seconds, int) else None,
            fields=fields if isinstance(fields, dict) else {},
            merchant_reference=_text(error.get("merchant_reference")),
        )


@dataclass(frozen=True)
class Success:
    """`{success: true, data}` of the service. The data may contain codes, so it is not printed."""

    status: int
    data: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Refusal:
    """`{success: false, error}` of the service."""

    status: int
    error: Failure
    request_id: Optional[str] = None


@dataclass(frozen=True)
class Foreign:
    """Anything else: no complete response (status 0), or a page or JSON of a proxy.

    `is_unreachable`: nothing was sent, and waiting does not help: the host or its certificate is
    wrong.
    """

    status: int = 0
    cause: str = ""
    request_id: Optional[str] = None
    is_unreachable: bool = False


Reply = Union[Success, Refusal, Foreign]


def read_reply(status: int, content: bytes, request_id: Optional[str] = None) -> Reply:
    """The reply in a complete response. Only the service's own JSON is a success or a refusal."""
    foreign = Foreign(status, "the response is not the service's own", request_id)
    try:
        answer = json.loads(content, parse_float=Decimal)
    except (ValueError, RecursionError):
        return foreign
    if not isinstance(answer, dict):
        return foreign
    data, error = answer.get("data"), answer.get("error")
    if answer.get("success") is True and isinstance(data, dict) and status in (200, 201):
        return Success(status, data)
    has_code = isinstance(error, dict) and isinstance(error.get("code"), str)
    if answer.get("success") is False and isinstance(error, dict) and has_code and status >= 400:
        return Refusal(status, Failure.from_json(error), request_id)
    return foreign


def describe(reply: Union[Refusal, Foreign]) -> str:
    """The status, the cause and the request id, for logs and exceptions."""
    cause = reply.error.code.value if isinstance(reply, Refusal) else reply.cause
    status = f"HTTP status {reply.status}" if reply.status else "no response"
    named = f", X-Request-Id {reply.request_id}" if reply.request_id else ""
    return f"{status}{f' ({cause})' if cause else ''}{named}"


def write_body(values: Mapping[str, object]) -> bytes:
    """The bytes of a purchase. They are stored, and each retry sends exactly these bytes."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()


def is_same_content(body: bytes, other: bytes) -> bool:
    """Whether two bodies differ at most in the order of their fields."""
    return _sorted(body) == _sorted(other)


def _sorted(body: bytes) -> str:
    return json.dumps(json.loads(body), sort_keys=True)


def _text(value: object) -> Optional[str]:
    return value if isinstance(value, str) else None
