"""Egress policy: connections go to public addresses by http and https only, and to the exceptions of an administrator.

Every connection on behalf of a question, a document or a model is checked here: first the URL, then each address that
its host name resolves to. The caller connects to exactly the checked addresses, never by name (DNS rebinding).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import SplitResult, quote, urlsplit

from dtrag.errors import EgressBlocked, InvalidInput

PORTS = {"http": 80, "https": 443}
URL_CHARACTERS = 8_192
"""Longest URL, as with most servers; 400 Korean characters of a query are 3,600 characters of a URL."""
_CLOSED: tuple[IPv4Network | IPv6Network, ...] = tuple(
    ip_network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local, the metadata services of clouds among them
        "172.16.0.0/12",
        "168.63.129.16/32",  # the host of a virtual machine on Azure, behind a public address
        "192.0.0.0/24",  # protocol assignments, the metadata service of Oracle's cloud among them
        "192.0.2.0/24",  # examples
        "192.88.99.0/24",  # relays from IPv6 back to IPv4
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",  # multicast and reserved
        "2001::/23",  # Teredo, ORCHID and others that carry IPv4 addresses or none
        "2001:db8::/32",
        "2002::/16",  # 6to4: carries an IPv4 address
        "3fff::/20",
    )
)
"""Blocks of the special-purpose address registries of IANA (RFC 6890, as of 2025) that are not single public hosts;
of IPv6 only those inside `_UNICAST`."""
_UNICAST = ip_network("2000::/3")
"""All public IPv6 hosts. Outside of it are ::/8 (loopback, IPv4-compatible, -mapped and -translated),
64:ff9b::/96 and 64:ff9b:1::/48 (NAT64), 100::/64, 5f00::/16 (segment routing), fc00::/7, fe80::/10, ff00::/8."""
_ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})
"""First half of an interface identifier whose second half is an IPv4 address (RFC 5214): a tunnel into a network."""
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*")
Allowed = frozenset[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Destination:
    """An allowed URL, parsed. `host` is lower-case ASCII or an IP address; `path` includes the query.

    `excepted`: an administrator has allowed this host and port, with any address.
    """

    scheme: str
    host: str
    port: int
    path: str
    excepted: bool

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port: headers with a secret go to one origin only."""
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        """Value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


def allowed_hosts(text: str) -> Allowed:
    """The exceptions of an administrator, from comma-separated `host:port`. Raises `InvalidInput`."""
    exceptions = set()
    for entry in filter(None, (part.strip() for part in text.split(","))):
        host, _, port = entry.rpartition(":")
        try:
            number = int(port)
            if not (host and 0 < number < 65_536):
                raise ValueError
            exceptions.add((_host(host.strip("[]"), entry), number))
        except (ValueError, EgressBlocked) as error:
            raise InvalidInput(
                f"DTRAG_EGRESS_ALLOW holds {entry[:80]!r}. Write host:port with commas, such as searx.internal:8080."
            ) from error
    return frozenset(exceptions)


def target(url: str, allowed: Allowed = frozenset()) -> Destination:
    """The parsed URL. Raises `EgressBlocked` when the policy forbids it; does not resolve the name."""
    shown = url[:100]
    if len(url) > URL_CHARACTERS:
        raise EgressBlocked(address=shown, reason="it is too long.")
    if any(character <= " " or character in "\x7f\\" for character in url):
        raise EgressBlocked(address=shown, reason="it holds spaces, control characters or backslashes.")
    parts, port = _split(url, shown)
    if parts.scheme not in PORTS:
        raise EgressBlocked(address=shown, reason="only http and https are.")
    if parts.username is not None or parts.password is not None:
        raise EgressBlocked(address=shown, reason="it holds a user name.")
    host = _host(parts.hostname or "", shown)
    port = PORTS[parts.scheme] if port is None else port
    excepted = (host, port) in allowed
    if not excepted and port not in PORTS.values():
        raise EgressBlocked(address=shown, reason=f"port {port} is not 80 or 443.")
    address = _literal(host)
    if address is not None and not excepted and not public(address):
        raise EgressBlocked(address=shown, reason="it is not a public address.")
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    query = "?" + quote(parts.query, safe="/?%:@!$&'()*+,;=~-._") if parts.query else ""
    return Destination(parts.scheme, host, port, path + query, excepted)


def checked(target: Destination, addresses: Iterable[str]) -> Sequence[str]:
    """The distinct addresses that the host resolves to, if the policy allows all of them. Raises `EgressBlocked`.

    One private address forbids all: a mixed answer suggests DNS rebinding.
    """
    distinct = list(dict.fromkeys(addresses))
    if not distinct:
        raise EgressBlocked(address=target.host, reason="its name does not resolve.")
    if not target.excepted and not all(public(address) for address in distinct):
        raise EgressBlocked(address=target.host, reason="it resolves to an address that is not public.")
    return distinct


def public(address: str | IPv4Address | IPv6Address) -> bool:
    """Whether the address belongs to the public internet; False for a string that is not an address."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address):
        if parsed.scope_id is not None:
            return False
        parsed = parsed.ipv4_mapped or parsed
    if isinstance(parsed, IPv6Address) and (parsed not in _UNICAST or (int(parsed) >> 32) & 0xFFFF_FFFF in _ISATAP):
        return False
    return parsed.is_global and not any(parsed in network for network in _CLOSED if network.version == parsed.version)


def _split(url: str, shown: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(url)
        return parts, parts.port
    except ValueError as error:
        raise EgressBlocked(address=shown, reason="it is not a URL.") from error


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _host(host: str, shown: str) -> str:
    """The host in canonical form. Rejects names that some resolvers read as numbers (`127.1`, `0x7f.1`)."""
    literal = _literal(host)
    if literal is not None:
        return str(literal)
    try:
        name = host.rstrip(".").encode("idna").decode("ascii").lower()
    except UnicodeError as error:
        raise EgressBlocked(address=shown, reason="its host is not a name.") from error
    literal = _literal(name)  # full-width digits have become plain ones
    if literal is not None:
        return str(literal)
    labels = name.split(".")
    if not all(_LABEL.fullmatch(label) for label in labels) or _NUMBER.fullmatch(labels[-1]):
        raise EgressBlocked(address=shown, reason="its host is not a name.")
    return name
