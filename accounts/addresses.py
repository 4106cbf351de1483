"""The network address of a caller, and the networks of an allowlist."""

import ipaddress
from collections.abc import Iterable
from functools import lru_cache

from django.conf import settings
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext as _

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

MAX_NETWORKS = 200  # of one allowlist
MAX_PROBLEMS = 10  # networks that a message names


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


def counted_address(request: HttpRequest) -> str:
    """The address under which wrong passwords are counted: `client_address`, or the first address
    of its network for IPv6, where one caller usually has a whole /64. `::` for None."""
    address = client_address(request)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, 64), strict=False).network_address)
    return "::" if address is None else str(address)


def is_within(address: Address, networks: Iterable[str]) -> bool:
    """Whether one of the networks, IPv4 or IPv6, contains the address."""
    return any(address in _parse_network(network) for network in networks)


def clean_networks(texts: Iterable[str]) -> list[str]:
    """The networks of an allowlist in their normal form, each once.

    10.1.2.3/8 becomes 10.0.0.0/8, and 10.1.2.3/32 becomes 10.1.2.3. Raises ValidationError with a
    message for each one that is not a network (`validate_network`), or if there are more than
    MAX_NETWORKS.
    """
    networks: dict[str, None] = {}
    problems: list[ValidationError] = []
    for text in texts:
        try:
            networks[_normalize_network(text)] = None
        except ValidationError as problem:
            problems.append(problem)
    if problems:
        raise ValidationError(problems[:MAX_PROBLEMS])
    if len(networks) > MAX_NETWORKS:
        raise ValidationError(
            _("Use at most %(max_networks)s addresses and networks.")
            % {"max_networks": MAX_NETWORKS}
        )
    return list(networks)


def validate_network(text: str) -> None:
    """Raises ValidationError unless `text` is an IPv4 or IPv6 address or network.

    An IPv4 address written as IPv6 (::ffff:10.0.0.7) is refused. It would never match, because the
    caller's address is compared as IPv4.
    """
    _normalize_network(text)


def _normalize_network(text: str) -> str:
    try:
        network = ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        raise ValidationError(
            _("%(text)s is not an IP address or network.") % {"text": f"{text!r}"}
        ) from None
    if network.version == 6 and network.network_address.ipv4_mapped:
        raise ValidationError(_("Write %(text)s as an IPv4 address.") % {"text": f"{text!r}"})
    single = network.prefixlen == network.max_prefixlen
    return str(network.network_address if single else network)


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
