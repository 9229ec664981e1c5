"""The figures of a running host."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.events.time import TIME_TYPE, arrow_zone, microseconds
from cepheid.hosts.durable.host import DurableHost
from cepheid.hosts.durable.routing.routing import Routing
from cepheid.hosts.durable.state import BEFORE_ALL
from cepheid.hosts.prometheus import Sample, label

_SECOND = 1_000_000


@dataclass(frozen=True)
class HostFigures:
    """What a host has done since it was opened, and what it has now."""

    events: Mapping[str, int]
    """By input: the number of events that were ever fed."""
    watermarks: Mapping[str, float]
    """By input: how far time has advanced, in seconds since 1970. An input without events is missing."""
    patterns: Mapping[tuple[str, str], Mapping[str, int]]
    """By name and version of each pattern that runs or drains: matches, timeouts, late events, ties, what limits have
    dropped, and `open`, the open partial matches.
    """
    no_match: Mapping[tuple[str, str], Mapping[str, int]]
    """By name and version: how many partial matches each negation has ended, by its name. Patterns whose partial
    matches are in sets do not count them.
    """
    commits: int
    commit_seconds: float
    """The time that commits took, without the matching."""
    outbox: int
    """The rows in the outbox."""
    outbox_age: float
    """How many seconds ago, by the clock of events, the oldest row in the outbox was detected; 0 without rows."""
    subscriptions: Mapping[str, SubscriptionFigures]


@dataclass(frozen=True)
class SubscriptionFigures:
    """How far a subscriber is behind."""

    behind: int
    """The rows of the outbox that were not handled yet, including those for other subscribers."""
    age: float
    """How many seconds ago, by the clock of events, the first of them was detected; 0 if there are none."""
    dead_letters: int
    is_active: bool
    """Whether it neither waits nor fails."""


def figures_of(host: DurableHost, routing: Routing) -> HostFigures:
    """
    Raises:
        StoreError: the outbox cannot be read.
        WorkerFailed: a worker process has ended.
    """
    host.ensure()
    given = host.inputs.values()
    rows, age = _outbox(host)
    return HostFigures(
        events={one.name: one.events for one in given},
        watermarks={one.name: one.reached.time / _SECOND for one in given if one.reached != BEFORE_ALL},
        patterns={(one.deployment.name, one.deployment.version): one.counts for one in host.running},
        no_match={(one.deployment.name, one.deployment.version): one.no_match for one in host.running},
        commits=host.commits,
        commit_seconds=host.commit_seconds,
        outbox=rows,
        outbox_age=age,
        subscriptions=_subscriptions(host, routing),
    )


def _subscriptions(host: DurableHost, routing: Routing) -> dict[str, SubscriptionFigures]:
    dead = dict(_rows(host, "SELECT subscription, count(*) AS n FROM dead_letters GROUP BY subscription"))
    found = {}
    for name, one in routing.subscriptions.items():
        first = routing.progress(name) + 1
        behind = host.sent - first + 1
        age = _age(host, first) if behind else 0.0
        found[name] = SubscriptionFigures(behind, age, dead.get(name, 0), one.status == "active")
    return found


def _outbox(host: DurableHost) -> tuple[int, float]:
    """The number of rows and the age of the oldest. Numbers have no gaps, so the primary key alone is read."""
    ((first, last),) = _rows(host, "SELECT min(number) AS first, max(number) AS last FROM outbox")
    if first is None:
        return 0, 0.0
    return last - first + 1, _age(host, first)


def _age(host: DurableHost, number: int) -> float:
    """How many seconds ago the row of the outbox was detected; 0 if it has no such time."""
    found = _rows(host, f"SELECT pattern, version, content FROM outbox WHERE number = {number:d}")
    ages = [
        time.time() - _instant(at, host.time_zone_of(pattern, version)) / _SECOND
        for pattern, version, content in found
        if (at := json.loads(content).get("detected_at")) is not None
    ]
    return max([0.0, *ages])


def _instant(at: str, zone: str) -> int:
    """Microseconds. A time without a zone is a local time in `zone`; the earlier one, if the clock shows it twice."""
    given = datetime.fromisoformat(at)
    if given.tzinfo is not None:
        return microseconds(given)
    local = pa.array([given], pa.timestamp("us"))
    (instant,) = pc.assume_timezone(local, arrow_zone(zone), ambiguous="earliest", nonexistent="earliest")
    found: int = instant.cast(TIME_TYPE).value
    return found


def _rows(host: DurableHost, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in host.read(query).to_pylist()]


def samples_of(
    figures: HostFigures, name: str, lags: Mapping[str, float | None], malformed: Mapping[str, int]
) -> Iterator[Sample]:
    """The samples of a host with this name; lags (seconds) and left out records are by input."""
    host = label("host", name)
    yield Sample("commits_total", host, figures.commits)
    yield Sample("commit_seconds_total", host, figures.commit_seconds)
    yield Sample("outbox_rows", host, figures.outbox)
    yield Sample("outbox_age_seconds", host, figures.outbox_age)
    for subscription, one in figures.subscriptions.items():
        labels = f"{host},{label('subscription', subscription)}"
        yield Sample("subscription_behind_rows", labels, one.behind)
        yield Sample("subscription_age_seconds", labels, one.age)
        yield Sample("subscription_dead_letters", labels, one.dead_letters)
        yield Sample("subscription_active", labels, int(one.is_active))
    for source, events in figures.events.items():
        labels = f"{host},{label('input', source)}"
        yield Sample("events_total", labels, events)
        if source in malformed:
            yield Sample("malformed_total", labels, malformed[source])
        if (lag := lags.get(source)) is not None:
            yield Sample("lag_seconds", labels, lag)
        if source in figures.watermarks:
            yield Sample("watermark_seconds", labels, figures.watermarks[source])
    for (pattern, version), counts in figures.patterns.items():
        labels = f"{host},{label('pattern', pattern)},{label('version', version)}"
        for count, value in counts.items():
            yield Sample("open_partial_matches" if count == "open" else f"{count}_total", labels, value)
        for cause, value in figures.no_match[pattern, version].items():
            yield Sample("no_match_total", f"{labels},{label('cause', cause)}", value)
