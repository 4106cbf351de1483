"""Where a request comes from, and whether a client may call from there."""

import ipaddress
from collections.abc import Iterable
from functools import lru_cache

from django.conf import settings
from django.http import HttpRequest

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def client_address(request: HttpRequest) -> Address | None:
    """The peer's address, or behind trusted proxies the nearest hop that is not one of them.

    Hops further out were written by that untrusted hop and prove nothing. None where an address
    on the way cannot be read, and where a trusted proxy does not say for whom it calls.
    """
    address = peer_address(request)
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "")
    hops = [hop for hop in forwarded.split(",") if hop.strip()]
    while address is not None and is_within(address, settings.TRUSTED_PROXIES):
        address = _parse_address(hops.pop()) if hops else None
    return address


def peer_address(request: HttpRequest) -> Address | None:
    """Whoever opened the connection; None where that cannot be read."""
    return _parse_address(request.META.get("REMOTE_ADDR", ""))


def client_address_text(request: HttpRequest) -> str:
    """The same as text; empty where it cannot be read."""
    address = client_address(request)
    return "" if address is None else str(address)


def is_within(address: Address, networks: Iterable[str]) -> bool:
    """Whether the address lies in one of the networks, IPv4 or IPv6."""
    return any(address in _parse_network(network) for network in networks)


def _parse_address(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text.strip())
    except ValueError:
        return None
    if not isinstance(address, ipaddress.IPv6Address):
        return address
    if address.scope_id:  # a zone (fe80::1%eth0) is this host's own word; the database knows none
        address = ipaddress.IPv6Address(int(address))
    return address.ipv4_mapped or address


@lru_cache(maxsize=4096)
def _parse_network(text: str) -> Network:
    return ipaddress.ip_network(text, strict=False)
