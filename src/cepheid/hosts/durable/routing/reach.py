"""The targets that a host may reach, and the senders to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Protocol

from cepheid.errors import SchemaError, StoreError
from cepheid.hosts.durable.open_store import path_of
from cepheid.hosts.durable.remote.client import connect
from cepheid.hosts.durable.routing.sender import Sender
from cepheid.hosts.durable.routing.senders.function import FunctionSender, function_named
from cepheid.hosts.durable.routing.senders.host import FedHost, HostSender
from cepheid.hosts.durable.routing.senders.web_hook import WebHookSender
from cepheid.hosts.durable.routing.subscription import Subscription
from cepheid.hosts.durable.routing.targets import Allowed, Target


class OpenedHost(FedHost, Protocol):
    """A host that is opened for the time of a feed."""

    def close(self) -> None: ...


def _place(url: str) -> str:
    """The file, folder or database of a store."""
    try:
        path = path_of(url)
    except StoreError:
        return url
    return url if path is None else str(path.resolve())


class Reach:
    """Makes senders to targets that are allowed."""

    def __init__(
        self,
        allow: Iterable[str] | None,
        kafka_options: Mapping[str, str],
        open_: Callable[[str], OpenedHost],
        own: str | None = None,
    ) -> None:
        """
        Args:
            allow: As for `Allowed`; None: it is not known here what the host may reach when it runs.
            open_: Opens the host of the store at a URL.
            own: The URL of the store of the host whose subscriptions these are.

        Raises:
            SchemaError: `allow` has something that is no target.
        """
        self._allowed = None if allow is None else Allowed(allow)
        self._kafka_options = kafka_options
        self._open = open_
        self._own = own

    def refusal(self, target: Target) -> str | None:
        """Why a subscription with this target is refused; None if it is not."""
        # The host cannot take events while it waits for their delivery.
        if target.kind == "host" and self._own is not None and _place(target.place) == _place(self._own):
            return "this is the host's own store: deploy patterns with MatchesOf as input to find them in matches"
        return None if self._allowed is None else self._allowed.refusal(target)

    def sender(self, given: Subscription, target: Target) -> Sender:
        """
        Raises:
            SchemaError: the target is not allowed, or something is missing that is needed for it.
        """
        allowed = self._allowed or Allowed(())
        if (refusal := self.refusal(target) or allowed.refusal(target)) is not None:
            raise SchemaError(refusal)
        timeout = given.timeout / 1e6
        match target.kind:
            case "function":
                return FunctionSender(function_named(target.place))
            case "http":
                networks = allowed.networks
                return WebHookSender(target.place, given.name, secret=given.secret, timeout=timeout, networks=networks)
            case "kafka":
                try:
                    from cepheid.hosts.durable.routing.senders.kafka import KafkaSender
                except ImportError as error:
                    raise SchemaError(
                        "kafka:// needs the package confluent-kafka: pip install 'cepheid[kafka]'"
                    ) from error
                options = self._kafka_options
                return KafkaSender(target.place, target.name, given.name, timeout=timeout, options=options)
            case "host":
                return HostSender(lambda: self._other(target.place), target.name, given.name)
        raise AssertionError(target)

    @contextmanager
    def _other(self, url: str) -> Iterator[FedHost]:
        """The host of another store: the one that runs, or else the store itself for the block."""
        with closing(connect(url) or self._open(url)) as host:
            yield host
