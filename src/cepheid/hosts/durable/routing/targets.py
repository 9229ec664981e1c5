"""Targets as texts, and the list of what a host's subscriptions may reach."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from cepheid.errors import SchemaError
from cepheid.hosts.durable.open_store import scheme_of
from cepheid.hosts.durable.stores.layout import TABLES
from cepheid.hosts.durable.tables import KINDS

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Kind: TypeAlias = Literal["given", "function", "http", "kafka", "table", "host"]

GIVEN = "function of the program"
"""The text of a target that the program itself gives, each time it opens the host."""
FORMS = (
    "https://host/path, kafka://host:port/topic, table://name, module:function, or the URL of another host's store "
    "with its input, as in sqlite:///other.db#alerts"
)

_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_PLAIN = re.compile(r"[\x21-\x7e]+")
"""Text that may be in a request as it is."""
_TABLE = re.compile(r"[^\W\d]\w{0,49}")
_PREFIXES = ("cepheid", "open", *KINDS, "recent", "gone", "sqlite")
"""Of the names of tables for patterns, of those beside the tables of a store in files, and of SQLite's own."""
_OURS = re.compile(rf"({'|'.join(_PREFIXES)})_.*|{'|'.join(TABLES)}|subscriptions|dead_letters", re.IGNORECASE)
_SECRET = re.compile(r"password|passwd|secret|token|api_?key|signature", re.IGNORECASE)
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Target:
    """A target that was read from its text."""

    kind: Kind
    place: str
    """The URL of a web hook or a store, Kafka's servers, or the name of a function or a table."""
    name: str = ""
    """The topic, or the input of another host."""


def target_of(text: str) -> Target:
    """
    Raises:
        SchemaError: the text names no target, or has a secret in it.
    """
    if text == GIVEN:
        return Target("given", text)
    if _FUNCTION.fullmatch(text):
        return Target("function", text)
    try:
        parts = urlsplit(text)
        if parts.password is not None or any(_SECRET.search(name) for name, _ in parse_qsl(parts.query)):
            raise SchemaError(
                f"to: this {parts.scheme} URL has a password or another secret, which everybody could read who reads "
                "the table of subscriptions. Web hooks are signed with secret='env:NAME', options of Kafka come from a "
                "file, and PostgreSQL reads passwords from ~/.pgpass"
            )
        origin_of(text)  # a port that is no number
    except ValueError as error:
        if isinstance(error, SchemaError):
            raise
        raise SchemaError(f"to: {text!r} is no URL: {error}") from None
    path = parts.path.strip("/")
    match parts.scheme:
        case "http" | "https" if parts.hostname and not parts.username and _PLAIN.fullmatch(text):
            return Target("http", text)
        case "kafka" if parts.netloc and re.fullmatch(r"[\w.-]+", path):
            return Target("kafka", parts.netloc, path)
        case "table" if _TABLE.fullmatch(parts.netloc) and not path:
            if _OURS.fullmatch(parts.netloc):
                raise SchemaError(f"to: the name {parts.netloc!r} is kept for the host: give the table another one")
            return Target("table", parts.netloc)
        case _ if scheme_of(text) is not None:
            place, _, name = text.partition("#")
            if name:
                return Target("host", place, name)
            raise SchemaError(f"to: which input of the host? Write {place}#INPUT")
    raise SchemaError(f"to: {text!r} is none of {FORMS}")


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}:{parts.port or _PORTS.get(parts.scheme, 0)}"


class Allowed:
    """What the subscriptions of a host may reach. Tables in its own store always may be written."""

    def __init__(self, texts: Iterable[str]) -> None:
        """
        Args:
            texts: Each is a function (`module:function`), the origin of web hooks (`https://host`, with a port if it is
                not the scheme's own), Kafka's servers (`kafka://host:port`), the URL of another host's store; or a
                network of private addresses (`10.0.0.0/8`) at which web hooks may be.

        Raises:
            SchemaError: a text is none of these; the message has all of them.
        """
        self._places: set[str] = set()
        self.networks: list[Network] = []
        faults = [fault for text in texts if (fault := self._add(text)) is not None]
        if faults:
            raise SchemaError("\n".join(faults))

    def _add(self, text: str) -> str | None:
        """Adds what the text allows; returns what is wrong with it."""
        if _FUNCTION.fullmatch(text):
            self._places.add(text)
            return None
        try:
            self.networks.append(ipaddress.ip_network(text))
        except ValueError:
            pass
        else:
            return None
        try:
            parts = urlsplit(text)
            if parts.scheme in _PORTS and parts.hostname and not parts.path.strip("/") and not parts.username:
                self._places.add(origin_of(text))
                return None
        except ValueError as error:
            return f"allow: {text!r} is no URL: {error}"
        if parts.scheme == "kafka" and parts.netloc and not parts.path.strip("/"):
            self._places.add(f"kafka://{parts.netloc}")
        elif scheme_of(text) is not None and not parts.fragment:
            self._places.add(text)
        else:
            return (
                f"allow: {text!r} is none of module:function, https://host, kafka://host:port, the URL of a store, or "
                "a network such as 10.0.0.0/8"
            )
        return None

    def refusal(self, target: Target) -> str | None:
        """Why the target may not be reached; None if it may be."""
        match target.kind:
            case "given" | "table":
                return None
            case "http":
                needed = origin_of(target.place)
            case "kafka":
                needed = f"kafka://{target.place}"
            case _:
                needed = target.place
        if needed in self._places:
            return None
        return f"the host may not reach {needed}: open or run it with allow {needed}"
