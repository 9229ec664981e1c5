"""Addresses of web hooks: none within a private network, unless it is allowed by name."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from cepheid.hosts.durable.routing.sender import Undelivered
from cepheid.hosts.durable.routing.targets import Network

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def checked_address(host: str, port: int, networks: Sequence[Network]) -> str:
    """An address of the host to which a connection may be made. A name is resolved here alone, so that it cannot mean
    another address later.

    Raises:
        Undelivered: it has none.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Undelivered(f"{host} cannot be resolved: {error}") from None
    addresses = [ipaddress.ip_address(str(place[0]).partition("%")[0]) for *_, place in found]
    usable = [address for address in addresses if is_allowed(address, networks)]
    if not usable:
        places = sorted({*map(str, addresses)})
        name = "" if places == [host] else f"{host} is at "
        alone = " ".join(str(ipaddress.ip_network(place)) for place in places)
        raise Undelivered(
            f"{name}{', '.join(places)}, which is no public address: if web hooks may be there, allow {alone}, or "
            "its network, too"
        )
    return str(usable[0])


def is_allowed(address: Address, networks: Sequence[Network]) -> bool:
    """Whether the address is public, or in one of the networks. If it stands for others, these must be."""
    return all(
        any(one.version == network.version and one in network for network in networks) or _is_public(one)
        for one in _meant(address)
    )


def _is_public(address: Address) -> bool:
    return address.is_global and not address.is_multicast and not address.is_reserved


def _meant(address: Address) -> Iterator[Address]:
    """The address, or the address of version 4 that it carries."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            yield address.ipv4_mapped
            return
        if address in _NAT64:
            yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
            return
        if address.sixtofour is not None:
            yield address.sixtofour
        if address.teredo is not None:
            yield from address.teredo
    yield address
