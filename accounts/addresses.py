"""Where a request comes from, and whether an address is in a list of networks."""

import ipaddress
from collections.abc import Iterable
from functools import lru_cache

from django.conf import settings
from django.http import HttpRequest

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def client_address(request: HttpRequest) -> Address | None:
    """The caller's address: the nearest hop that is not a trusted proxy.

    Hops before that one are ignored, because an untrusted hop may write anything. None if an
    address on the way cannot be parsed, or if a trusted proxy does not name the hop before it.
    """
    address = peer_address(request)
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "")
    hops = [hop for hop in forwarded.split(",") if hop.strip()]
    while address is not None and is_within(address, settings.TRUSTED_PROXIES):
        address = _parse_address(hops.pop()) if hops else None
    return address


def peer_address(request: HttpRequest) -> Address | None:
    """The address that opened the connection; None if it cannot be parsed."""
    return _parse_address(request.META.get("REMOTE_ADDR", ""))


def client_address_text(request: HttpRequest) -> str:
    """`client_address` as text; empty for None."""
    address = client_address(request)
    return "" if address is None else str(address)


def is_within(address: Address, networks: Iterable[str]) -> bool:
    """Whether one of the networks, IPv4 or IPv6, contains the address."""
    return any(address in _parse_network(network) for network in networks)


def _parse_address(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text.strip())
    except ValueError:
        return None
    if not isinstance(address, ipaddress.IPv6Address):
        return address
    if address.scope_id:  # a zone (fe80::1%eth0) names an interface; the database has no zones
        address = ipaddress.IPv6Address(int(address))
    return address.ipv4_mapped or address


@lru_cache(maxsize=4096)
def _parse_network(text: str) -> Network:
    return ipaddress.ip_network(text, strict=False)
