"""The address of the client of a request."""

from __future__ import annotations

import ipaddress

from starlette.types import Scope

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def parse_address(text: str | None) -> Address | None:
    """An IP address with or without a port; IPv4 inside IPv6 becomes IPv4. None for anything else."""
    if not text:
        return None
    host = text.strip()
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def client_address(scope: Scope) -> Address | None:
    """The address of the client; None when it is unknown."""
    client = scope.get("client")
    return parse_address(client[0]) if client else None


def is_local(scope: Scope) -> bool:
    """Whether the client is on this machine; false for unknown clients and for requests through a local proxy."""
    address = client_address(scope)
    return address is not None and address.is_loopback and not scope.get("state", {}).get("forwarded")


def network_of(scope: Scope) -> str:
    """The client's address; of IPv6 the first 64 bits, as clients usually own the whole network."""
    address = client_address(scope)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address.packed[:8] + bytes(8), 64)))
    return str(address)
