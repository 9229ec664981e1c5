"""What a durable host stores about its inputs and its deployed patterns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import pyarrow as pa

from cepheid.kernel.arrays import NO_TIME
from cepheid.lang.documents import AnyPattern
from cepheid.matchers.watermark import Reached
from cepheid.output.ids import Ids
from cepheid.plan.lifted import OutputName, RowsPer
from cepheid.plan.limits import Limits
from cepheid.requests.request import Nulls

BEFORE_ALL = Reached(NO_TIME)
"""No time has passed yet."""

Position: TypeAlias = int | str | Mapping[str, int]
"""Where to read on in the source: a number, a number for each partition, or a name after which to read on, such as that
of the last file.
"""

Status: TypeAlias = Literal["running", "draining", "retired"]
"""A draining pattern starts nothing more, and is retired once nothing of it is open."""


@dataclass(frozen=True)
class Input:
    """A source of events, and how far it was read."""

    name: str
    columns: pa.Schema
    time: str
    sequence: tuple[str, ...]
    lateness: int
    """Microseconds: how far an event may be before the latest one."""
    time_zone: str
    nulls: Nulls
    keep: int = 0
    """Microseconds: for how long events are kept, so that patterns deployed later can take them. 0: not at all."""
    position: Position | None = None
    latest: int = NO_TIME
    """Microseconds: the time of the latest event."""
    reached: Reached = BEFORE_ALL
    events: int = 0
    """The number of events fed."""


@dataclass(frozen=True)
class MatchesOf:
    """The input of a tier: the matches of other deployed patterns, as events. An event has the time `detected_at` of
    its match, the measures of the match, and in the column `pattern` the name of the matched pattern.
    """

    patterns: tuple[str, ...]
    raw: str | None = None
    """An input whose events come along, with NULL in `pattern`."""


@dataclass(frozen=True)
class Deployment:
    """A deployed pattern and its arguments."""

    number: int
    """Unique in the host, also among versions."""
    pattern: AnyPattern
    version: str
    input: str | MatchesOf
    key: tuple[str, ...]
    columns: tuple[str, ...] | None
    measures: Mapping[str, str] | None
    promoted: Mapping[str, str] | None
    outputs: tuple[OutputName, ...]
    limits: Limits
    slug: str
    """What the names of its tables end with; the same for all versions."""
    status: Status = "running"
    problems: tuple[str, ...] = ()
    """What works, but perhaps not as intended, and what is retained for ever: one sentence each."""
    position: Position | None = None
    """The position of its input when it was deployed; None also for tiers."""
    drained_after: int | None = None
    """When it began to drain, its stored log had so many entries. This counts until a snapshot says that its matcher
    drains. None: it does not drain, or an earlier version has stored that it does.
    """
    rows_per: RowsPer = "match"
    """What has a row in its tables; the same for all versions."""

    @property
    def name(self) -> str:
        return self.pattern.name


class Stored(NamedTuple):
    """What a store has when a host opens it."""

    inputs: list[Input]
    deployments: list[Deployment]
    """In the order of their numbers; retired ones, too."""
    sent: int
    """The number of the last row in the outbox."""
    ids: Ids
    """How ids are made, so that all versions of a pattern give a match the same id."""
