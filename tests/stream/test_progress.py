"""The progress of a query: figures of its micro-batches, and the same figures as Prometheus text."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.live.events import PAIR, events
from tests.stream.running import finished, streamed, written
from tests.stream.test_tree_streams import INTERVALS, spans
from tests.stream.test_tree_streams import PAIR as SPANS

from cepheid import (
    Advice,
    HotKey,
    PatternProgress,
    Progress,
    SchemaError,
    ShardProgress,
    detect,
    partial_matches,
    progress,
    progress_listener,
    prometheus_text,
)
from cepheid.cli.stream_load import load_rows
from cepheid.hosts.spark.stream.checkpoint_reader import open_by_shard
from cepheid.hosts.spark.stream.load.hot_keys import Counted, KeySample
from cepheid.hosts.spark.stream.progress import progress_of
from cepheid.hosts.spark.stream.stored_state import checkpointed_patterns
from cepheid.intervals import interval_pattern
from cepheid.streams import rebalance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPORTED: dict[str, Any] = {
    "id": "e397",
    "name": None,
    "timestamp": "2024-01-01T00:00:30.500Z",
    "batchId": 0,
    "durationMs": {"addBatch": 200, "triggerExecution": 300},
    "eventTime": {"watermark": "2024-01-01T00:00:18.000Z"},
    "sources": [{"inputRowsPerSecond": 2.0}, {"inputRowsPerSecond": 1.0}, {}],
    "stateOperators": [{"commitTimeMs": 40, "numShufflePartitions": 2}, {"commitTimeMs": 2, "numShufflePartitions": 2}],
    "observedMetrics": {
        "cepheid.malformed.1": {"records": 1},
        "cepheid.malformed.2": {"records": 2},
        "cepheid.packed.pair": {
            "reports": [
                '{"samples":{"pair":[60,true,{"a1":[2,40],"b2":[0,20]}]},"us":700}',
                '{"samples":{"pair":[40,true,{"b2":[0,39],"c3":[1,1]}]},"us":50}',
            ],
            "keyed": True,
        },
        "cepheid.read.pair": {"events": 9, "null_keys": 1, "null_times": 0},
        "cepheid.found.pair": {
            "read": "pair",
            "shards": 3,
            "calls": [
                [0, 1, 4, 900, 100, 5000, 3, 0, 1, 2, 0, 0, 0, 0, 1, 3],
                [2, 0, 2, 500, 100, 300, 4, 0, 2, 0, 0, 0, 0, 0, 0, 4],
                [2, 0, 0, 100, 50, 200, 2, 0, 0, 0, 0, 0, 0, 0, 0, -2],
            ],
        },
    },
}


def known(progress_of_spark: dict[str, Any]) -> Progress:
    found = progress_of(progress_of_spark)
    assert found is not None
    return found


def without_sizes(progress: Progress) -> Progress:
    """The progress without the sizes of shards, which a checkpoint is not read for."""
    pattern = progress.patterns["pattern"]
    shards = tuple(replace(shard, state_bytes=None) for shard in pattern.shards)
    return replace(progress, patterns={"pattern": replace(pattern, shards=shards)})


def test_figures() -> None:
    """The figures of a micro-batch that Spark reports, with types; a query without patterns has none."""
    pair = PatternProgress(
        events=9,
        null_keys=1,
        matches=3,
        timeouts=2,
        late=1,
        opened=5,
        open_partial_matches=5,
        matching=timedelta(milliseconds=1.5),
        state=timedelta(milliseconds=0.25),
        shards=(
            ShardProgress(1, 4, timedelta(milliseconds=0.9), timedelta(milliseconds=0.1), 5000, 3),
            ShardProgress(None, 0, timedelta(0), timedelta(0), 0, 0),
            ShardProgress(0, 2, timedelta(milliseconds=0.6), timedelta(milliseconds=0.15), 200, 2),
        ),
        keys=KeySample(100, {"b2": Counted(0, 59), "a1": Counted(2, 40), "c3": Counted(1, 1)}),
    )
    assert known(REPORTED) == Progress(
        query="e397",
        name=None,
        batch=0,
        batches=1,
        watermark=datetime(2024, 1, 1, 0, 0, 18, tzinfo=UTC),
        watermark_lag=timedelta(seconds=12.5),
        total=timedelta(milliseconds=300),
        work=timedelta(milliseconds=200),
        commit=timedelta(milliseconds=42),
        malformed=3,
        packing=timedelta(milliseconds=0.75),
        rate=3.0,
        keyed=True,
        partitions=2,
        slowest_task=timedelta(milliseconds=1),
        max_over_mean=3 / 1.75,
        patterns={"pair": pair},
    )
    before = known(REPORTED | {"eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}})
    assert (before.watermark, before.watermark_lag) == (None, None)
    assert (
        progress_of({name: it for name, it in REPORTED.items() if name != "observedMetrics"}) is None
    )  # as for a query of another kind


def test_sum_of_micro_batches() -> None:
    """Counts and times are added; the number of open partial matches follows from the number before, if that
    is known.
    """
    first, later = known(REPORTED), known(REPORTED | {"batchId": 7})
    assert later.patterns["pair"].open_partial_matches is None
    assert later.patterns["pair"].shards[1].state_bytes is None
    both = later.after(first)
    assert (both.batch, both.batches, both.total) == (7, 2, timedelta(milliseconds=600))
    assert both.malformed == 6
    pair = both.patterns["pair"]
    assert (pair.events, pair.opened, pair.open_partial_matches) == (18, 10, 10)
    assert pair.matching == timedelta(milliseconds=3)
    assert pair.hottest == (HotKey("b2", 0, 0.59), HotKey("a1", 2, 0.4))
    assert both.together.hottest == both.together.shards == ()
    assert both.packing == timedelta(milliseconds=1.5)
    assert both.slowest_task == timedelta(milliseconds=2)
    assert [(shard.events, shard.state_bytes, shard.open_partial_matches) for shard in pair.shards] == [
        (8, 5000, 3),
        (0, 0, 0),
        (4, 200, 2),
    ]
    assert later.with_open_of(both).patterns["pair"].shards[1] == ShardProgress(state_bytes=0, open_partial_matches=0)
    assert later.after(later).patterns["pair"].open_partial_matches is None
    assert later.after(replace(first, patterns={})).patterns == later.patterns


def test_advice() -> None:
    """The advice is for the rate at which events came, or for another rate; without a rate or events there is none."""
    reported, more = known(REPORTED), known(REPORTED | {"batchId": 1, "sources": []})
    assert reported.advice() == Advice(3, 1, 1, pytest.approx(1.75e-3 / 3))
    assert more.rate is None
    assert more.advice() is None
    assert more.after(reported).advice() == reported.advice()
    faster = more.advice(90_000)
    assert faster is not None
    assert faster.busiest == pytest.approx(17.5)
    assert faster.limits[0].startswith("reading, packing, the sink and Spark's own work take 299,000% of the time")
    nothing = {name: replace(it, events=0) for name, it in reported.patterns.items()}
    assert replace(reported, patterns=nothing).advice() is None
    for wrong in (0, -1, math.inf, "many"):
        with pytest.raises(SchemaError) as caught:
            reported.advice(wrong)  # type: ignore[arg-type]
        assert str(caught.value).startswith("rate: a number of events a second above 0 is expected, got ")


def test_prometheus_text() -> None:
    """Each metric has its type followed by the samples of all queries; labels are escaped; unknown values have no
    sample; keys have none.
    """
    named = known(REPORTED | {"batchId": 1, "name": 'a "b"\\', "eventTime": {}})
    lines = prometheus_text([known(REPORTED), named]).splitlines()
    assert lines[:3] == [
        "# TYPE cepheid_batches_total counter",
        'cepheid_batches_total{query="e397"} 1',
        r'cepheid_batches_total{query="a \"b\"\\"} 1',
    ]
    assert sum("cepheid_open_partial_matches" in line for line in lines) == 2
    one = prometheus_text(known(REPORTED))
    assert (
        one
        == """\
# TYPE cepheid_batches_total counter
cepheid_batches_total{query="e397"} 1
# TYPE cepheid_malformed_total counter
cepheid_malformed_total{query="e397"} 3
# TYPE cepheid_batch_seconds_total counter
cepheid_batch_seconds_total{query="e397"} 0.3
# TYPE cepheid_work_seconds_total counter
cepheid_work_seconds_total{query="e397"} 0.2
# TYPE cepheid_commit_seconds_total counter
cepheid_commit_seconds_total{query="e397"} 0.042
# TYPE cepheid_packing_seconds_total counter
cepheid_packing_seconds_total{query="e397"} 0.00075
# TYPE cepheid_watermark_seconds gauge
cepheid_watermark_seconds{query="e397"} 1704067218.0
# TYPE cepheid_watermark_lag_seconds gauge
cepheid_watermark_lag_seconds{query="e397"} 12.5
# TYPE cepheid_watermark_stands gauge
cepheid_watermark_stands{query="e397"} 0
# TYPE cepheid_slowest_task_seconds_total counter
cepheid_slowest_task_seconds_total{query="e397"} 0.001
# TYPE cepheid_shards_max_over_mean gauge
cepheid_shards_max_over_mean{query="e397"} 1.7142857142857142
# TYPE cepheid_events_total counter
cepheid_events_total{query="e397",pattern="pair"} 9
# TYPE cepheid_null_keys_total counter
cepheid_null_keys_total{query="e397",pattern="pair"} 1
# TYPE cepheid_null_times_total counter
cepheid_null_times_total{query="e397",pattern="pair"} 0
# TYPE cepheid_matches_total counter
cepheid_matches_total{query="e397",pattern="pair"} 3
# TYPE cepheid_dropped_matches_total counter
cepheid_dropped_matches_total{query="e397",pattern="pair"} 0
# TYPE cepheid_ties_total counter
cepheid_ties_total{query="e397",pattern="pair"} 0
# TYPE cepheid_timeouts_total counter
cepheid_timeouts_total{query="e397",pattern="pair"} 2
# TYPE cepheid_dropped_partial_matches_total counter
cepheid_dropped_partial_matches_total{query="e397",pattern="pair"} 0
# TYPE cepheid_inconsistent_total counter
cepheid_inconsistent_total{query="e397",pattern="pair"} 0
# TYPE cepheid_dropped_facts_total counter
cepheid_dropped_facts_total{query="e397",pattern="pair"} 0
# TYPE cepheid_late_total counter
cepheid_late_total{query="e397",pattern="pair"} 1
# TYPE cepheid_open_partial_matches gauge
cepheid_open_partial_matches{query="e397",pattern="pair"} 5
# TYPE cepheid_matching_seconds_total counter
cepheid_matching_seconds_total{query="e397",pattern="pair"} 0.0015
# TYPE cepheid_state_seconds_total counter
cepheid_state_seconds_total{query="e397",pattern="pair"} 0.00025
# TYPE cepheid_shard_events_total counter
cepheid_shard_events_total{query="e397",pattern="pair",shard="0"} 4
cepheid_shard_events_total{query="e397",pattern="pair",shard="1"} 0
cepheid_shard_events_total{query="e397",pattern="pair",shard="2"} 2
# TYPE cepheid_shard_matching_seconds_total counter
cepheid_shard_matching_seconds_total{query="e397",pattern="pair",shard="0"} 0.0009
cepheid_shard_matching_seconds_total{query="e397",pattern="pair",shard="1"} 0.0
cepheid_shard_matching_seconds_total{query="e397",pattern="pair",shard="2"} 0.0006
# TYPE cepheid_shard_state_seconds_total counter
cepheid_shard_state_seconds_total{query="e397",pattern="pair",shard="0"} 0.0001
cepheid_shard_state_seconds_total{query="e397",pattern="pair",shard="1"} 0.0
cepheid_shard_state_seconds_total{query="e397",pattern="pair",shard="2"} 0.00015
# TYPE cepheid_shard_state_bytes gauge
cepheid_shard_state_bytes{query="e397",pattern="pair",shard="0"} 5000
cepheid_shard_state_bytes{query="e397",pattern="pair",shard="1"} 0
cepheid_shard_state_bytes{query="e397",pattern="pair",shard="2"} 200
# TYPE cepheid_shard_open_partial_matches gauge
cepheid_shard_open_partial_matches{query="e397",pattern="pair",shard="0"} 3
cepheid_shard_open_partial_matches{query="e397",pattern="pair",shard="1"} 0
cepheid_shard_open_partial_matches{query="e397",pattern="pair",shard="2"} 2
"""
    )


def test_the_live_view() -> None:
    """The live view lists the busiest shards, the hottest keys and the advice."""
    one = known(REPORTED)
    assert [*load_rows(one, one, one.advice())] == [
        ("busiest shard", "1.7 times the mean of all"),
        ("  pair 0", "4 events, 1.0 ms, 4.9 KiB of state, 3 open"),
        ("  pair 2", "2 events, 0.8 ms, 0.2 KiB of state, 2 open"),
        ("hot key b2", "59% of the events of pair, in shard 0"),
        ("hot key a1", "40% of the events of pair, in shard 2"),
        ("advice", "3 shards on 1 partition and 1 core are enough"),
    ]
    nothing = replace(one, max_over_mean=None, patterns={})
    assert [*load_rows(nothing, nothing, None)] == []


@pytest.mark.long
@pytest.mark.spark
def test_a_restarted_query(partitioned: SparkSession, tmp_path: Path) -> None:
    """A listener receives each micro-batch. For a query restarted from its checkpoint, the number of open partial
    matches is read from there once. A file gets the same figures as text.
    """
    checkpoint, text = tmp_path / "checkpoint", tmp_path / "cepheid.prom"
    heard: list[Progress] = []
    listeners = [progress_listener(heard.append, checkpoint), progress_listener(str(text))]
    for listener in listeners:
        partitioned.streams.addListener(listener)
    options: dict[str, Any] = {"key": "k", "time": "at", "lateness": "0 seconds", "shards": 2}
    batches = [
        events((0, "p", 0, "a"), (1, "q", 1, "a"), (2, "r", 2, "z")),
        events((3, "p", 4, "b"), (4, "q", 5, "a"), (5, "s", 6, "z")),
    ]
    try:
        for number, (open_, matches) in enumerate([(2, 0), (2, 1)]):
            written([batches[number]], tmp_path / "events", first=number)
            rows = detect(streamed(partitioned, tmp_path / "events"), PAIR, **options)
            query = finished(rows.writeStream.format("noop"), checkpoint)
            last = progress(query, checkpoint)
            assert last is not None
            deadline = time.monotonic() + 60
            while not heard or heard[-1].batch < last.batch:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            assert last.patterns["pattern"].open_partial_matches == open_ == partial_matches(checkpoint).count()
            assert without_sizes(heard[-1]) == without_sizes(last)
            assert sum(one.patterns["pattern"].matches for one in heard) == matches
        assert sum(one.patterns["pattern"].events for one in heard) == 6
        assert all(one.total >= one.work for one in heard)
        assert heard[0].patterns["pattern"].matching > timedelta(0)
        for one in heard:
            pattern = one.patterns["pattern"]
            assert len(pattern.shards) == 2
            assert sum((shard.matching for shard in pattern.shards), timedelta(0)) == pattern.matching
            assert sum((shard.state for shard in pattern.shards), timedelta(0)) == pattern.state
        first = [
            *zip(*((it.events, it.open_partial_matches) for it in heard[0].patterns["pattern"].shards), strict=True)
        ]
        assert [*map(sum, first)] == [2, 0]
        assert f'cepheid_events_total{{query="{last.query}",pattern="pattern"}} 3\n' in text.read_text()
    finally:
        for listener in listeners:
            partitioned.streams.removeListener(listener)


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore:.*a stream does not end")
def test_patterns_that_share_their_shards(partitioned: SparkSession, tmp_path: Path) -> None:
    """The checkpoint says what is open of each, also after a restart and with another number of shards."""
    other = interval_pattern("EVENT PAL(A a before A b) WITHIN 20 seconds").without("d", "D", between=("a", "b"))
    patterns = {"one": SPANS, "other": other.taxonomy("type").emitting("realtime")}
    batches = [
        [(i, "ABBAD"[i % 5], f"k{i % 7}", i // 2, i // 2 + 3 * (i % 3 + 1)) for i in range(40)],
        [(40, "A", "k1", 20, 23), (41, "B", "k1", 25, 29)],
        [(42, "A", "k2", 21, 22)],
    ]
    checkpoint, so_far = tmp_path / "checkpoint", Counter[str]()
    for number, (shards, batch) in enumerate(zip([4, 4, 3], batches, strict=True)):
        if shards == 3:
            rebalance(checkpoint, shards=shards)
            assert open_in(checkpoint) == so_far
        written([spans(batch)], tmp_path / "events", first=number)
        events = streamed(partitioned, tmp_path / "events").withWatermark("start", "40 seconds")
        query = finished(detect(events, patterns, shards=shards, **INTERVALS).writeStream.format("noop"), checkpoint)
        for reported in query.recentProgress:
            found = progress_of(json.loads(reported.json))
            so_far.update({} if found is None else {name: it.opened for name, it in found.patterns.items()})
        last = progress(query, checkpoint)
        assert last is not None
        assert {name: it.open_partial_matches for name, it in last.patterns.items()} == so_far == open_in(checkpoint)
        assert so_far["one"] != so_far["other"]


def open_in(checkpoint: Path) -> dict[str, int]:
    """How many partial matches of each pattern are open after the last micro-batch."""
    last = max(stored.batch for stored in checkpointed_patterns(str(checkpoint)).values())
    by_shard = open_by_shard(str(checkpoint), last)
    return {name: sum(each.values()) for name, each in by_shard.items() if each is not None}
