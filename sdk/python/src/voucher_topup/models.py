"""Responses of the API as typed values. Money is Decimal; codes are not printed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, Optional, Union

from voucher_topup.wire import Failure, new_member


class OrderStatus(str, Enum):
    """The states of an order. A state that this version does not know is a member, too."""

    PENDING = "pending"
    COMPLETED = "completed"
    FAILED = "failed"

    @classmethod
    def _missing_(cls, value: object) -> "OrderStatus":
        return new_member(cls, value)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Code:
    """A voucher code. `repr` and logs show nothing of it."""

    code: str = field(repr=False)
    serial_number: Optional[str] = field(default=None, repr=False)
    pin_code: Optional[str] = field(default=None, repr=False)


@dataclass(frozen=True)
class VoucherOrder:
    reference: str
    status: OrderStatus
    product_id: int
    variation_id: Optional[int]
    merchant_reference: Optional[str]
    quantity: int
    units: int
    units_per_sale: int
    unit_price: Decimal
    total_price: Decimal
    currency: str
    created_at: Optional[datetime]
    codes: tuple[Code, ...]
    kind: Literal["voucher"] = "voucher"


@dataclass(frozen=True)
class TopUpOrder:
    reference: str
    status: OrderStatus
    system_product_id: int
    player_id: str
    quantity: int
    unit_price: Decimal
    total_price: Decimal
    currency: str
    created_at: Optional[datetime]
    fulfilment_status: str
    refunded: bool
    failure_reason: Optional[str]
    kind: Literal["top_up"] = "top_up"


Order = Union[VoucherOrder, TopUpOrder]


@dataclass(frozen=True)
class Bought:
    """The wallet was debited once."""

    order_number: str
    order: Order
    kind: Literal["bought"] = "bought"


@dataclass(frozen=True)
class Refused:
    """Nothing was bought and nothing was charged. `retry` sends the same purchase again."""

    order_number: str
    error: Failure
    kind: Literal["refused"] = "refused"


@dataclass(frozen=True)
class Unknown:
    """It may have been bought. Keep the order open, and call `resume` until it is settled.

    `reference` is known if it was bought and could not be read. `error` is the obstacle to remove,
    such as a revoked API key. `status` (0: no response), `cause` and `request_id` are those of the
    last attempt; tell the request id to support.
    """

    order_number: str
    error: Optional[Failure] = None
    reference: Optional[str] = None
    status: int = 0
    cause: str = ""
    request_id: Optional[str] = None
    kind: Literal["unknown"] = "unknown"


Outcome = Union[Bought, Refused, Unknown]


@dataclass(frozen=True)
class Variation:
    id: int
    name: str
    merchant_reference: Optional[str]
    available_stock: int
    price: Optional[Decimal]
    quantity_step: int
    sellable: bool


@dataclass(frozen=True)
class Product:
    id: int
    name: str
    type: Optional[str]
    currency: str
    merchant_reference: Optional[str]
    available_stock: int
    in_stock: bool
    price: Optional[Decimal]
    quantity_step: int
    sellable: bool
    variations: tuple[Variation, ...]


@dataclass(frozen=True)
class TopUpField:
    id: int
    name: str
    label: str
    type: str
    required: bool
    options: tuple[Mapping[str, Optional[str]], ...]


@dataclass(frozen=True)
class TopUpProduct:
    id: int
    name: str
    category: Optional[str]
    price: Decimal
    currency: str
    available_stock: Optional[int]
    sellable: bool
    fields: tuple[TopUpField, ...]


@dataclass(frozen=True)
class Ping:
    client: str
    server_time: datetime
    rate_limit_per_minute: int


@dataclass(frozen=True)
class Balance:
    balance: Decimal
    currency: str


def order_from_json(data: Mapping[str, Any]) -> Order:
    """A top-up has a delivery_type; an order of voucher codes has none."""
    shared = {
        "reference": data["reference"],
        "status": OrderStatus(data["status"]),
        "quantity": data["quantity"],
        "unit_price": _money(data["unit_price"]),
        "total_price": _money(data["total_price"]),
        "currency": data["currency"],
        "created_at": _time(data["created_at"]),
    }
    if data.get("delivery_type") == "top_up":
        return TopUpOrder(
            **shared,
            system_product_id=data["system_product_id"],
            player_id=data["player_id"],
            fulfilment_status=data["fulfilment_status"],
            refunded=data["refunded"],
            failure_reason=data["failure_reason"],
        )
    names = ("product_id", "variation_id", "merchant_reference", "units", "units_per_sale")
    codes = (
        Code(code["code"], code.get("serial_number"), code.get("pin_code"))
        for code in data["codes"]
    )
    return VoucherOrder(**shared, **{name: data[name] for name in names}, codes=tuple(codes))


def product_from_json(data: Mapping[str, Any]) -> Product:
    variations = (
        _select(Variation, variation, price=_price(variation["price"]))
        for variation in data["variations"]
    )
    return _select(  # type: ignore[no-any-return]
        Product, data, price=_price(data["price"]), variations=tuple(variations)
    )


def topup_product_from_json(data: Mapping[str, Any]) -> TopUpProduct:
    fields = (
        _select(TopUpField, field, options=tuple(field["options"])) for field in data["fields"]
    )
    return _select(  # type: ignore[no-any-return]
        TopUpProduct, data, price=_money(data["price"]), fields=tuple(fields)
    )


def ping_from_json(data: Mapping[str, Any]) -> Ping:
    time = _time(data["server_time"])
    assert time is not None  # noqa: S101
    return Ping(data["client"], time, data["rate_limit_per_minute"])


def balance_from_json(data: Mapping[str, Any]) -> Balance:
    return Balance(_money(data["balance"]), data["currency"])


def _select(cls: Any, data: Mapping[str, Any], **changed: Any) -> Any:
    """An instance of the data class. A field that this version does not know is left out."""
    return cls(
        **{name: data[name] for name in cls.__dataclass_fields__ if name not in changed}, **changed
    )


def _money(number: Any) -> Decimal:
    return Decimal(number)


def _price(number: Any) -> Optional[Decimal]:
    return None if number is None else _money(number)


def _time(text: Optional[str]) -> Optional[datetime]:
    return None if text is None else datetime.fromisoformat(text.replace("Z", "+00:00"))
