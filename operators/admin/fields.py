"""Form fields whose mistakes are told to the person at the desk, not to the database."""

from __future__ import annotations

import ipaddress
from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from unfold.widgets import (
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminTextareaWidget,
)

from accounts.models import validate_network
from catalogue.models import MAX_QUANTITY, PRICE_LIMIT
from operators.admin.base import amount

PRICE_DECIMALS = 4
PRICE_DIGITS = len(str(PRICE_LIMIT - 1)) + PRICE_DECIMALS
MAX_NETWORKS = 200


class PriceField(forms.DecimalField):
    """The price of one unit, or nothing: more than zero, under PRICE_LIMIT, four decimals."""

    widget = UnfoldAdminDecimalFieldWidget

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            min_value=Decimal(10) ** -PRICE_DECIMALS,
            max_digits=PRICE_DIGITS,
            decimal_places=PRICE_DECIMALS,
            required=False,
            help_text="Of one unit; empty means not for sale.",
            **kwargs,
        )

    def prepare_value(self, value: Any) -> Any:
        return amount(value).replace(",", "") if isinstance(value, Decimal) else value


class QuantityStepField(forms.IntegerField):
    """How many codes make one unit. No purchase takes more than MAX_QUANTITY codes."""

    widget = UnfoldAdminIntegerFieldWidget

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            min_value=1,
            max_value=MAX_QUANTITY,
            help_text="Codes in one unit; usually 1.",
            **kwargs,
        )


class NetworksField(forms.CharField):
    """Addresses or networks, one a line, as a list of what each stands for."""

    widget = UnfoldAdminTextareaWidget(attrs={"rows": 4})

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            required=False,
            help_text=(
                "One address or network per line, such as 203.0.113.7 or 2001:db8::/32."
                " Empty: calls are accepted from anywhere."
            ),
            **kwargs,
        )

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> list[str]:
        lines = [line.strip(" \t,;") for line in super().clean(value).splitlines()]
        networks = list(dict.fromkeys(_network(line) for line in lines if line))
        if len(networks) > MAX_NETWORKS:
            raise ValidationError(f"At most {MAX_NETWORKS} lines.")
        return networks

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(self.prepare_value(initial), data)


def _network(text: str) -> str:
    """The network as the service reads it: 10.1.2.3/8 is 10.0.0.0/8; one address stays as it is."""
    validate_network(text)
    network = ipaddress.ip_network(text, strict=False)
    if network.version == 6 and network.network_address.ipv4_mapped:
        raise ValidationError(f"Write {text!r} as the IPv4 address that it stands for.")
    single = network.prefixlen == network.max_prefixlen
    return str(network.network_address if single else network)
