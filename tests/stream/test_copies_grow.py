"""The copies of a hot key grow and are released while its query runs."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests.live.events import ALL, PAIR, at, events
from tests.live.test_any_delivery import counted
from tests.stream.running import streamed, written
from tests.stream.test_spark_stream import delivered, joined, random_events

from cepheid import CopiesChange, detect
from cepheid.hosts.spark.stream.copies.folder import CopiesFolder
from cepheid.hosts.spark.stream.load.hot_keys import Counted, KeySample, key_hash, to_text
from cepheid.streams import copy_hot_keys, progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

SHARDS, STANDBYS = 4, 2
HOT = key_hash(("k0",))
LOADS = ((2.2, 1), (2.2, 2), (1.0, 1), (0.0, 0))
"""The load of the key in seconds of each micro-batch of five seconds, and its copies after it. A shard may take one."""


def last_with_events(query: StreamingQuery) -> dict[str, Any]:
    """What Spark reports of the last micro-batch that had events."""
    query.processAllAvailable()
    reported: dict[str, Any] = next(json.loads(one.json) for one in reversed(query.recentProgress) if one.numInputRows)
    return reported


def told(reported: dict[str, Any], load: float, name: str = "pattern") -> SimpleNamespace:
    """The event that Spark's listeners get, as if the micro-batch had taken five seconds, with this load of the key in
    the key's shard of this pattern. The key was sampled.
    """
    found = reported["observedMetrics"][f"cepheid.found.{name}"]
    (shard,) = (number for number, _, count, *_ in found["calls"] if count and number < SHARDS)
    found["calls"] = [
        [number, partition, count, int(load * 1e6) * (number == shard), 0, *rest]
        for number, partition, count, _, _, *rest in found["calls"]
    ]
    hot = KeySample(100, {HOT: Counted(shard, 100)})
    reported["observedMetrics"]["cepheid.packed.pattern"]["reports"] = [to_text({name: hot}, 1000)]
    reported["durationMs"]["triggerExecution"] = 5000
    return SimpleNamespace(progress=SimpleNamespace(json=json.dumps(reported)))


@pytest.mark.long
@pytest.mark.spark
def test_growth_and_release(streams: SparkSession, tmp_path: Path) -> None:
    """While the load is high the key gets one copy after the other, one a micro-batch; as it falls they are released,
    the newest first. The standbys take part, their partial matches end, and the rows are those of a batch.
    """
    rows = random_events(4, 400, 1)
    batches = delivered(rows, 2, 5, len(LOADS) + 1)
    checkpoint, found, changes = tmp_path / "checkpoint", list[list[dict[str, Any]]](), list[CopiesChange]()
    listener = copy_hot_keys(checkpoint, budget="1 second", report=changes.append)
    options: dict[str, Any] = {"key": "k", "time": "at", "sequence": "id", "outputs": ALL}
    written(batches[:1], tmp_path / "events")
    stream = streamed(streams, tmp_path / "events")
    given = {"lateness": "5 seconds", "shards": SHARDS, "standbys": STANDBYS, "checkpoint": checkpoint, **options}

    def collect(batch: DataFrame, _: int) -> None:
        found.append(batch.toArrow().to_pylist())

    writer = detect(stream, PAIR, **given).writeStream.foreachBatch(collect)
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    folder, holders, in_standbys = CopiesFolder(str(checkpoint)), list[int](), 0
    try:
        for number, (load, _) in enumerate(LOADS, 1):
            listener.onQueryProgress(told(last_with_events(query), load))  # type: ignore[arg-type] # only its JSON is read
            written(batches[number : number + 1], tmp_path / "events", number)
            reported = last_with_events(query)
            holders.append(sum(map(len, folder.of_batch(reported["batchId"]).copies(0).values())))
            calls = reported["observedMetrics"]["cepheid.found.pattern"]["calls"]
            in_standbys += sum(count for shard, _, count, *_ in calls if shard >= SHARDS)
        written([events((-1, "end", 300, "z"))], tmp_path / "events", len(batches))
        query.processAllAvailable()
        last = progress(query, checkpoint)
    finally:
        query.stop()
    assert holders == [copies for _, copies in LOADS]
    assert [(one.copies, one.wanted) for one in changes] == [(1, 2), (2, 2), (1, 1), (0, 0)]
    assert str(changes[0]) == (
        f"key {HOT} of 'pattern' after batch 0: 1 copy from now on; its load of 2.20 s a micro-batch needs 2"
    )
    assert in_standbys > 50
    assert last is not None
    assert [one.open_partial_matches for one in last.patterns["pattern"].shards[SHARDS:]] == [0, 0]
    expected = detect(events(*rows), PAIR, as_of=at(295), **options)
    assert counted(joined(found, expected)) == counted(expected)
