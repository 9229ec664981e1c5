"""Inputs of other hosts as targets: each match is an event there, exactly once, as its number is the position."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import ConditionError, EventError, LimitExceeded, SchemaError, SkipError, StoreError
from cepheid.hosts.durable.routing.sender import Undelivered
from cepheid.hosts.durable.routing.subscription import Letter
from cepheid.hosts.durable.state import Input, Position
from cepheid.hosts.durable.tiers import PATTERN
from cepheid.hosts.sources.records import json_parser
from cepheid.output.common import RETRACTION

_REFUSED = (EventError, SchemaError, ConditionError, LimitExceeded, SkipError, pa.ArrowException)


class FedHost(Protocol):
    """What is asked of the other host, which may run in another process."""

    @property
    def inputs(self) -> Mapping[str, Input]: ...

    def feed(self, events: Any, *, input: str, position: Position | None = None) -> object: ...  # noqa: A002


class HostSender:
    """Feeds letters to an input of another host. Its position there is that of a partition with the name of the
    subscription, so several subscriptions and other sources may feed one input.
    """

    at_once = 500
    gives_up = False

    def __init__(self, opened: Callable[[], AbstractContextManager[FedHost]], name: str, subscription: str) -> None:
        """`opened` gives the host for the time of a feed; `name` is that of its input."""
        self._opened = opened
        self._name = name
        self._partition = f"subscription {subscription}"

    def send(self, letters: Sequence[Letter]) -> None:
        try:
            with self._opened() as host:
                self._feed(host, letters)
        except StoreError as error:
            raise Undelivered(str(error)) from error

    def close(self) -> None:
        pass

    def _feed(self, host: FedHost, letters: Sequence[Letter]) -> None:
        known = host.inputs.get(self._name)
        if known is None:
            raise Undelivered(f"the host has no input {self._name!r}. It has: {', '.join(host.inputs) or 'none yet'}")
        events = [letter for letter in letters if letter.kind != RETRACTION and not self._has(known, letter)]
        if events:
            self._feed_some(host, known, events, letters)

    def _feed_some(self, host: FedHost, known: Input, some: Sequence[Letter], all_: Sequence[Letter]) -> None:
        """Feeds letters at once; if they are refused, one by one, so that only those are refused that are wrong."""
        try:
            position = None if some[0].out_of_order else {self._partition: some[-1].number}
            host.feed(events_of(some, known), input=known.name, position=position)
        except _REFUSED as error:
            if len(some) > 1:
                for letter in some:
                    self._feed_some(host, known, [letter], all_)
                return
            raise Undelivered(str(error), done=all_.index(some[0]), is_refused=True) from error

    def _has(self, known: Input, letter: Letter) -> bool:
        """Whether the host's position says that it has the letter. Dead letters are fed without one, as later letters
        were fed before them.
        """
        position = known.position
        stored = position.get(self._partition, 0) if isinstance(position, Mapping) else 0
        return letter.number <= stored and not letter.out_of_order


def events_of(letters: Sequence[Letter], known: Input) -> pa.Table:
    """The letters as events of an input, as tiers have them: the time is that of the detection; `pattern` and `number`,
    if the input has such columns, are the matched pattern and the number in the outbox; all else is NULL.
    """
    rows = [letter.row for letter in letters]
    given = [row | {PATTERN: one.pattern, "number": one.number} for row, one in zip(rows, letters, strict=True)]
    others = pa.schema([field for field in known.columns if field.name != known.time])
    table = json_parser(others)([json.dumps(row).encode() for row in given]) if others.names else None
    times = _times([row["detected_at"] for row in rows], known)
    columns = [
        times if field.name == known.time or table is None else table.column(field.name) for field in known.columns
    ]
    return pa.table(columns, schema=known.columns)


def _times(texts: Sequence[str | None], known: Input) -> pa.Array:
    """Times in the form that the input has. Those without a zone are read in that of the input."""
    type_ = known.columns.field(known.time).type
    if any(text is not None and not text.endswith("Z") for text in texts):
        local = pa.array(texts, pa.string()).cast(pa.timestamp("us"))
        return (pc.assume_timezone(local, known.time_zone) if type_.tz else local).cast(type_)
    times = pa.array(texts, pa.string()).cast(pa.timestamp("us", "UTC"))
    return (times if type_.tz else pc.local_timestamp(times.cast(pa.timestamp("us", known.time_zone)))).cast(type_)
