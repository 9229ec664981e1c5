"""Streams on Spark whose keys get copies and lose them find what they find without."""

from __future__ import annotations

import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests.live.events import ALL, PAIR, at, events
from tests.live.test_any_delivery import counted
from tests.stream.running import finished, streamed, written
from tests.stream.test_spark_stream import delivered, joined, random_events

from cepheid import CopiesChange, Pattern, PatternError, SchemaError, Skip, detect
from cepheid.hosts.spark.stream.copies.assignment import Assignment, Decision
from cepheid.hosts.spark.stream.copies.folder import CopiesFolder
from cepheid.hosts.spark.stream.load.hot_keys import Counted, KeySample, key_hash, to_text
from cepheid.streams import copy_hot_keys, partial_matches, progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

OPTIONS: dict[str, Any] = {"key": "k", "time": "at", "sequence": "id", "outputs": ALL}


def test_copies_change_no_row(partitioned: SparkSession, tmp_path: Path) -> None:
    """Between micro-batches keys get copies in any standbys and lose them; after a restart it goes on. The rows are
    those of a batch, and the standbys have taken part.
    """
    rows, drawn = random_events(1, 1200, 3), random.Random(3)
    batches = [*delivered(rows, 2, 5, 8), events((-1, "end", 300, "z"))]
    checkpoint, found, in_standbys = tmp_path / "checkpoint", list[list[dict[str, Any]]](), 0
    folder = CopiesFolder(str(checkpoint))

    def collect(batch: DataFrame, number: int) -> None:
        found.append(batch.toArrow().to_pylist())
        copies = drawn.choice([(), (0,), (1,), (0, 1), (1, 0)]) if number < 6 else ()
        key = key_hash((f"k{drawn.randrange(3)}",))
        for shard in range(4):  # in one of them the key is
            folder.decide(Decision(0, shard, key, copies))

    for first, some in ((0, batches[:4]), (4, batches[4:])):
        written(some, tmp_path / "events", first)
        stream = streamed(partitioned, tmp_path / "events")
        matches = detect(stream, PAIR, lateness="5 seconds", shards=4, standbys=2, checkpoint=checkpoint, **OPTIONS)
        query = finished(matches.writeStream.foreachBatch(collect), checkpoint)
        figures = (progress_of for progress_of in query.recentProgress)
        shards = [row for one in figures for row in one.observedMetrics["cepheid.found.pattern"].calls]
        in_standbys += sum(events_ for shard, _, events_, *_ in shards if shard >= 4)
        last = progress(query, checkpoint)
        assert last is not None
        assert last.together.open_partial_matches == partial_matches(checkpoint).count()
    expected = detect(events(*rows), PAIR, as_of=at(295), **OPTIONS)
    assert counted(joined(found, expected)) == counted(expected)
    assert in_standbys > len(rows) // 4


@pytest.mark.parametrize(
    ("pattern", "options", "message"),
    [
        (PAIR, {"standbys": 5}, "standbys: a whole number from 0 to the 4 shards is expected, got 5"),
        (
            PAIR,
            {"standbys": 2, "checkpoint": None},
            "standbys: they need the checkpoint, beside whose logs it is stored which keys have copies: checkpoint=…",
        ),
        (
            PAIR.skip(Skip.past_last_event()),
            {"standbys": 2},
            "standbys: a key cannot be divided by start, because SKIP_PAST_LAST_EVENT ties starts together",
        ),
        (
            Pattern.begin("a"),
            {"standbys": 2},
            "standbys: a key cannot be divided by start, because it has no within, so a copy would never be released",
        ),
    ],
)
def test_standbys_that_cannot_be(
    streams: SparkSession, tmp_path: Path, pattern: Pattern, options: dict[str, Any], message: str
) -> None:
    """The error names the clause that forbids copies, or what is missing."""
    written([events((0, "p", 0, "a"))], tmp_path / "events")
    given = {"checkpoint": tmp_path / "checkpoint", **options}
    with pytest.raises((SchemaError, PatternError)) as caught:
        detect(streamed(streams, tmp_path / "events"), pattern, key="k", time="at", lateness="5 s", shards=4, **given)
    assert message in str(caught.value)


def test_several_watermarks(streams: SparkSession, tmp_path: Path) -> None:
    """With the least of several watermarks it is not known which times have been received."""
    written([events((0, "k0", 1, "x"))], tmp_path / "events", 0)
    one, other = (streamed(streams, tmp_path / "events").withWatermark("at", f"{s} seconds") for s in (1, 2))
    options: dict[str, Any] = {"standbys": 2, "shards": 4, "checkpoint": tmp_path / "checkpoint", **OPTIONS}
    with pytest.raises(SchemaError, match="standbys: the events come from several streams with watermarks"):
        detect(one.union(other), PAIR, **options)
    detect(one, PAIR, **options)


def test_standbys_are_fixed_in_the_checkpoint(streams: SparkSession, tmp_path: Path) -> None:
    """A query continues only with as many standbys."""
    written([events((0, "p", 0, "a"))], tmp_path / "events")
    checkpoint = tmp_path / "checkpoint"

    def run(standbys: int) -> None:
        stream = streamed(streams, tmp_path / "events")
        options: dict[str, Any] = {"lateness": "5 seconds", "shards": 4, "checkpoint": checkpoint, **OPTIONS}
        rows = detect(stream, PAIR, standbys=standbys, **options)
        finished(rows.writeStream.foreachBatch(lambda batch, _: batch.count()), checkpoint)

    run(2)
    written([events((1, "p", 1, "a"))], tmp_path / "events", 1)
    with pytest.raises(Exception, match="the checkpoint belongs to another query: standbys"):
        run(0)


def test_the_listener_decides(streams: SparkSession, tmp_path: Path) -> None:
    """After the progress of a micro-batch in which a key is hot, the key gets one copy; until that is in force, nothing
    more is decided. Without a budget and an interval of the trigger there is only advice.
    """
    written([events(*((number, "p", number / 10, "a") for number in range(50)))], tmp_path / "events")
    checkpoint = tmp_path / "checkpoint"
    options: dict[str, Any] = {"shards": 4, "standbys": 2, "checkpoint": checkpoint, **OPTIONS}
    rows = detect(streamed(streams, tmp_path / "events"), PAIR, lateness="5 seconds", **options)
    query = finished(rows.writeStream.format("noop"), checkpoint)
    reported = json.loads(query.recentProgress[0].json)
    calls = reported["observedMetrics"]["cepheid.found.pattern"]["calls"]
    (shard,) = (number for number, _, count, *_ in calls if count)
    hot = KeySample(100, {key_hash(("p",)): Counted(shard, 100)})
    reported["observedMetrics"]["cepheid.packed.pattern"]["reports"] = [to_text({"pattern": hot}, 1000)]
    for call in calls:
        call[3] = 5_000_000  # microseconds in the matcher
    reported["durationMs"]["triggerExecution"] = 5000
    event = SimpleNamespace(progress=SimpleNamespace(json=json.dumps(reported)))
    changes = list[CopiesChange]()
    for budget in (None, "1 microsecond", "1 microsecond"):
        copy_hot_keys(checkpoint, budget=budget, report=changes.append).onQueryProgress(event)
    decided = Assignment().after([CopiesFolder(str(checkpoint)).decision(1)], 0)
    assert [(one.pattern, one.key, one.copies, one.decided) for one in changes] == [
        ("pattern", key_hash(("p",)), 0, False),
        ("pattern", key_hash(("p",)), 1, True),
    ]
    assert changes[1].wanted > 2
    assert [*decided.copies(0)] == [(shard, key_hash(("p",)))]
