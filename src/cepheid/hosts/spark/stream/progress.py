"""The progress of a streaming query's micro-batches: figures from Spark's progress, and the same as Prometheus text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from functools import reduce
from typing import Any

from cepheid.errors import SchemaError
from cepheid.hosts.prometheus import Sample, label, text_of
from cepheid.hosts.spark.stream.copies.change import CopiesChange
from cepheid.hosts.spark.stream.load.advice import Advice, Load, advice_for
from cepheid.hosts.spark.stream.load.hot_keys import NO_KEYS, HotKey, KeySample, from_texts, merged
from cepheid.hosts.spark.stream.load.measured import number_of_keys, shard_loads
from cepheid.hosts.spark.stream.load.shards import (
    ShardCall,
    ShardProgress,
    combined,
    max_over_mean,
    shards_progress,
    slowest_task,
    with_state_of,
)
from cepheid.hosts.spark.stream.standing import Standing, time_of
from cepheid.lang.arguments import brief
from cepheid.lang.known_arguments import known_arguments
from cepheid.matchers.counts import EventCounts
from cepheid.requests.counts import OPENED, STREAM_COUNTS

READ, FOUND = "cepheid.read", "cepheid.found"
"""Names of the metrics in a query's progress; the pattern's name follows them. Patterns that are detected together have
one READ, with the name of the first: each observation costs time for each event.
"""

CALLS, SHARDS, OF_READ = "calls", "shards", "read"
"""Parts of FOUND: the numbers that each call of a shard reports (a ShardCall, then STREAM_COUNTS), the number of the
pattern's shards, and the name in READ. Sums would cost more, as Spark generates code for each in each micro-batch.
"""

PACKED, REPORTS, KEYED = "cepheid.packed", "reports", "keyed"
"""The metric of the packing step, after which the name of the query's first pattern follows, and its parts: what the
tasks report (`hot_keys.to_text`), and whether events have keys.
"""

_REPORTED = (*ShardCall._fields, *STREAM_COUNTS)
"""The names of the numbers in CALLS."""

MALFORMED = "cepheid.malformed"
"""The metric of records that could not be read as events; a name that is unique to the source follows."""


@dataclass(frozen=True)
class PatternProgress(EventCounts):
    """What one pattern did in a micro-batch."""

    late: int = 0
    """Late events, among those that go to the shards."""
    opened: int = 0
    """How many more partial matches are open than before; negative if there are fewer."""
    open_partial_matches: int | None = None
    """None: not known, because the query has continued from a checkpoint that was not given."""
    matching: timedelta = timedelta(0)
    """The time in matchers, added up over all shards, which work in parallel."""
    state: timedelta = timedelta(0)
    """The time for reading and writing the shards' state, added up over all shards; Spark's commit comes after it."""
    shards: tuple[ShardProgress, ...] = ()
    """What each shard did, by its number. `Progress.together` leaves it empty."""
    keys: KeySample = NO_KEYS
    """A sample of one percent of the events that go to the shards. `Progress.together` leaves it empty."""

    @property
    def hottest(self) -> tuple[HotKey, ...]:
        """The keys that surely have many events, the hottest first. With few events, a key is not seen at once."""
        return self.keys.hottest

    def with_open_of(self, so_far: PatternProgress) -> PatternProgress:
        """This progress of one micro-batch, with what is open and stored according to all micro-batches so far."""
        shards = with_state_of(self.shards, so_far.shards)
        return replace(self, open_partial_matches=so_far.open_partial_matches, shards=shards)

    def with_open(self, by_shard: Mapping[int, int]) -> PatternProgress:
        """This progress, with the number of open partial matches of each shard that has any."""
        shards = [replace(one, open_partial_matches=by_shard.get(i, 0)) for i, one in enumerate(self.shards)]
        return replace(self, open_partial_matches=sum(by_shard.values()), shards=tuple(shards))

    def after(self, earlier: PatternProgress) -> PatternProgress:
        """This progress and an earlier one, combined: counts and times are added."""
        names = [field.name for field in fields(self) if field.name not in ("open_partial_matches", "shards", "keys")]
        sums: dict[str, Any] = {name: getattr(self, name) + getattr(earlier, name) for name in names}
        open_ = self.open_partial_matches
        if open_ is None and earlier.open_partial_matches is not None:
            open_ = earlier.open_partial_matches + self.opened
        loads: dict[str, Any] = {
            "shards": combined(self.shards, earlier.shards),
            "keys": merged([self.keys, earlier.keys]),
        }
        return PatternProgress(**sums, open_partial_matches=open_, **loads)


@dataclass(frozen=True)
class Progress:
    """The figures of one micro-batch of a streaming query, or of several of one query, combined with `after`."""

    query: str
    """The query's id, which stays the same when it continues from its checkpoint."""
    name: str | None
    batch: int
    """The number of the micro-batch; the last one's if there are several."""
    batches: int
    watermark: datetime | None
    """The watermark at the start of the micro-batch; None if there was none yet."""
    watermark_lag: timedelta | None
    """How much earlier than the clock the watermark was when the micro-batch started."""
    total: timedelta
    """The time from its start to its end."""
    work: timedelta
    """The part of `total` in Spark's job: reading, lifting, packing, shuffling, matching, state and the sink."""
    commit: timedelta
    """The time for committing the state, as Spark counts it: added up over all tasks."""
    malformed: int
    """Records that were left out because they could not be read as events; only for sources read with `json_events`."""
    packing: timedelta
    """The time for packing events for their shards, added up over all tasks."""
    rate: float | None
    """Events that came a second: those of the micro-batch, over the time since the one before started. If the query
    cannot keep up, these are as many as it can process. None: not known, as this was the first one.
    """
    keyed: bool
    """Whether events have keys, or are divided otherwise; if not, one shard has all of them."""
    partitions: int
    """The partitions of the shards' state, each of which is a Spark task."""
    slowest_task: timedelta
    """Matching and state in the partition with the most of both."""
    max_over_mean: float | None
    """The time for matching and state of the busiest shard, divided by the mean of all shards of all patterns: 1 is
    even. None if no shard was called.
    """
    patterns: Mapping[str, PatternProgress]
    """By the pattern's name."""
    standing: Standing | None = None
    """Since when the watermark has stood still, and why, according to Spark's reports so far; None while it moves."""
    short: tuple[CopiesChange, ...] | None = None
    """The keys that need more copies than there are standbys, as `copy_hot_keys` found. None: not known, because
    `copy_hot_keys` is not running with a budget, or the query's checkpoint was not given or cannot be read here.
    """

    @property
    def together(self) -> PatternProgress:
        """The figures of all patterns as one. They read the same events, which are counted once."""
        each = [*self.patterns.values()]
        read = {name: max(getattr(one, name) for one in each) for name in ("events", "null_keys", "null_times")}
        open_ = [one.open_partial_matches for one in each]
        known = None if None in open_ else sum(it for it in open_ if it is not None)
        total = reduce(lambda so_far, one: one.after(so_far), each)
        return replace(total, **read, open_partial_matches=known, shards=(), keys=NO_KEYS)

    def advice(self, rate: float | None = None) -> Advice | None:
        """How many shards, partitions and cores are enough for `rate` events a second (default: `self.rate`), by the
        load that was measured. Several micro-batches together tell more than one. None if the rate is not known, or no
        event was read.

        Raises:
            SchemaError: the rate is not a number above 0.
        """
        given: object = rate
        if given is not None and not (isinstance(given, int | float) and 0 < given < math.inf):
            raise SchemaError(f"rate: a number of events a second above 0 is expected, got {brief(rate)}")
        rate, events = rate or self.rate, max(it.events for it in self.patterns.values())
        if rate is None or not events:
            return None
        each = [(it.shards, it.keys) for it in self.patterns.values()]
        load = Load(
            events=events,
            packing=self.packing.total_seconds(),
            shards=shard_loads(each),
            partitions=self.partitions,
            rest=max(timedelta(0), self.total - self.slowest_task).total_seconds(),
            keys=number_of_keys(keys for _, keys in each),
            keyed=self.keyed,
        )
        return advice_for(load, rate)

    def with_open_of(self, so_far: Progress) -> Progress:
        """This progress of one micro-batch, with what is open and stored according to all micro-batches so far."""
        return replace(
            self, patterns={name: it.with_open_of(so_far.patterns[name]) for name, it in self.patterns.items()}
        )

    def after(self, earlier: Progress) -> Progress:
        """This progress and an earlier one, combined: counts and times are added, all else is taken from this one."""
        before = earlier.patterns
        return replace(
            self,
            batches=self.batches + earlier.batches,
            rate=earlier.rate if self.rate is None else self.rate,
            total=self.total + earlier.total,
            work=self.work + earlier.work,
            commit=self.commit + earlier.commit,
            malformed=self.malformed + earlier.malformed,
            packing=self.packing + earlier.packing,
            slowest_task=self.slowest_task + earlier.slowest_task,
            patterns={name: it.after(before[name]) if name in before else it for name, it in self.patterns.items()},
        )


def busiest(progress: Progress, most: int) -> list[tuple[str, int, ShardProgress]]:
    """At most so many shards that did something, with their pattern and number, the busiest first."""
    each = [
        (name, number, shard)
        for name, pattern in progress.patterns.items()
        for number, shard in enumerate(pattern.shards)
        if shard.useful
    ]
    return sorted(each, key=lambda one: one[2].useful, reverse=True)[:most]


def progress_of(reported: Mapping[str, Any]) -> Progress | None:
    """The figures from Spark's progress, which is given as JSON values; None if the query has no pattern."""
    metrics: Mapping[str, Mapping[str, Any]] = reported.get("observedMetrics", {})
    names = [name.removeprefix(f"{FOUND}.") for name in metrics if name.startswith(f"{FOUND}.")]
    if not names:
        return None
    started, watermark = time_of(reported["timestamp"]), _watermark(reported)
    durations, operators = reported["durationMs"], reported["stateOperators"]
    first = reported["batchId"] == 0
    samples, packing_us = from_texts(_reports(metrics))
    patterns = {name: _pattern(metrics, name, samples.get(name, NO_KEYS), first=first) for name in names}
    shards = [shard for pattern in patterns.values() for shard in pattern.shards]
    return Progress(
        query=str(reported["id"]),
        name=reported["name"],
        batch=reported["batchId"],
        batches=1,
        watermark=watermark,
        watermark_lag=None if watermark is None else started - watermark,
        total=timedelta(milliseconds=durations.get("triggerExecution", 0)),
        work=timedelta(milliseconds=durations.get("addBatch", 0)),
        commit=timedelta(milliseconds=sum(operator["commitTimeMs"] for operator in operators)),
        malformed=sum(metric["records"] for name, metric in metrics.items() if name.startswith(MALFORMED)),
        packing=timedelta(microseconds=packing_us),
        rate=_rate(reported),
        keyed=all(metric[KEYED] for name, metric in metrics.items() if name.startswith(PACKED)),
        partitions=max(operator["numShufflePartitions"] for operator in operators),
        slowest_task=slowest_task(shards),
        max_over_mean=max_over_mean(shards),
        patterns=patterns,
    )


def _reports(metrics: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, metric in metrics.items():
        if name.startswith(PACKED):
            yield from metric[REPORTS]


def _pattern(metrics: Mapping[str, Mapping[str, Any]], name: str, keys: KeySample, *, first: bool) -> PatternProgress:
    found = metrics[f"{FOUND}.{name}"]
    calls, read = found[CALLS], metrics[f"{READ}.{found[OF_READ]}"]
    sums = [sum(values) for values in zip(*calls, strict=True)] or [0] * len(_REPORTED)
    counts: dict[str, Any] = dict(zip(_REPORTED, sums, strict=True))
    return PatternProgress(
        **read,
        **{count: counts[count] for count in STREAM_COUNTS},
        matching=timedelta(microseconds=counts["matching_us"]),
        state=timedelta(microseconds=counts["state_us"]),
        open_partial_matches=counts[OPENED] if first else None,
        shards=shards_progress(calls, found[SHARDS], first=first),
        keys=keys,
    )


def _watermark(reported: Mapping[str, Any]) -> datetime | None:
    """The watermark; None for Spark's first one, 1970, which means that there is none yet."""
    text = reported.get("eventTime", {}).get("watermark")
    watermark = None if text is None else time_of(text)
    return None if watermark is None or watermark.timestamp() == 0 else watermark


def _rate(reported: Mapping[str, Any]) -> float | None:
    """The sum of all sources. Spark leaves out what is not known."""
    each = [float(rate) for source in reported.get("sources", []) if (rate := source.get("inputRowsPerSecond"))]
    return sum(each) or None


@known_arguments()
def prometheus_text(progress: Progress | Iterable[Progress]) -> str:
    """The figures in Prometheus' text format. Counts and times are counters; for these to grow, each `progress` must be
    combined with the earlier ones of its query. Figures of the last micro-batch are gauges.
    """
    given = [progress] if isinstance(progress, Progress) else [*progress]
    return text_of(sample for one in given for sample in _samples(one))


def _samples(progress: Progress) -> Iterator[Sample]:
    query = label("query", progress.name or progress.query)
    yield Sample("batches_total", query, progress.batches)
    yield Sample("malformed_total", query, progress.malformed)
    times = {"batch": progress.total, "work": progress.work, "commit": progress.commit, "packing": progress.packing}
    for name, length in times.items():
        yield Sample(f"{name}_seconds_total", query, length.total_seconds())
    if progress.watermark is not None and progress.watermark_lag is not None:
        yield Sample("watermark_seconds", query, progress.watermark.timestamp())
        yield Sample("watermark_lag_seconds", query, progress.watermark_lag.total_seconds())
    yield Sample("watermark_stands", query, int(progress.standing is not None))
    if progress.short is not None:
        yield Sample("keys_short_of_standbys", query, len(progress.short))
        yield Sample("standbys_wanted", query, max((one.wanted for one in progress.short), default=0))
    yield Sample("slowest_task_seconds_total", query, progress.slowest_task.total_seconds())
    if progress.max_over_mean is not None:
        yield Sample("shards_max_over_mean", query, progress.max_over_mean)
    for name, pattern in progress.patterns.items():
        labels = f"{query},{label('pattern', name)}"
        yield from _fields(pattern, "", labels)
        for number, shard in enumerate(pattern.shards):
            yield from _fields(shard, "shard_", f"{labels},{label('shard', str(number))}")


_GAUGES = ("open_partial_matches", "state_bytes")
_NO_SAMPLES = ("opened", "shards", "keys", "partition")


def _fields(given: PatternProgress | ShardProgress, prefix: str, labels: str) -> Iterator[Sample]:
    for field in fields(given):
        name, value = f"{prefix}{field.name}", getattr(given, field.name)
        if field.name in _NO_SAMPLES or value is None:
            continue
        if isinstance(value, timedelta):
            yield Sample(f"{name}_seconds_total", labels, value.total_seconds())
        else:
            yield Sample(name if field.name in _GAUGES else f"{name}_total", labels, value)
