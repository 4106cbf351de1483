"""Form fields and helpers that the back office and the merchant site share."""

from __future__ import annotations

import ipaddress
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpRequest, QueryDict

from accounts.models import validate_network

MAX_NETWORKS = 200


def posted(request: HttpRequest) -> QueryDict | None:
    """The data of a POST for a form, even if empty; None for other methods, so the form stays
    unbound."""
    return request.POST if request.method == "POST" else None


class SecondFactorCodeField(forms.CharField):
    """A code of a second factor. Cleans to lower case without spaces."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            max_length=20,
            help_text="Enter the code that your app shows, or one of your backup codes.",
            **kwargs,
        )

    def clean(self, value: Any) -> str:
        return str(super().clean(value)).replace(" ", "").lower()


class NetworksField(forms.CharField):
    """Addresses and networks, one per line. Cleans to a list of normalized networks."""

    widget = forms.Textarea(attrs={"rows": 4})

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
    """Normalizes a network: 10.1.2.3/8 becomes 10.0.0.0/8, 10.1.2.3/32 becomes 10.1.2.3."""
    validate_network(text)
    network = ipaddress.ip_network(text, strict=False)
    if network.version == 6 and network.network_address.ipv4_mapped:
        raise ValidationError(f"Write {text!r} as an IPv4 address.")
    single = network.prefixlen == network.max_prefixlen
    return str(network.network_address if single else network)
