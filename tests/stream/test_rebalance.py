"""A stopped stream gets other numbers of shards and partitions, and goes on as if nothing had happened."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import TESTS
from tests.live.events import ALL, PAIR, at, events
from tests.searching import KILLS
from tests.stream.running import finished, streamed, written
from tests.stream.test_kill import committed_rows
from tests.stream.test_spark_stream import delivered, random_events

from cepheid import Pattern, SchemaError, SnapshotError, detect
from cepheid.hosts.spark.rebalance.folders import BEGUN, DONE, PARTITIONS, Folder
from cepheid.hosts.spark.rebalance.plan import placed
from cepheid.hosts.spark.stream.stored_state import CheckpointedPattern, checkpointed_patterns
from cepheid.streams import rebalance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONE = Pattern.begin("a").where("x = 'a'").followed_by("b").where("x = 'b' AND id > a.id").within("10 seconds")
PATTERNS = {"sets": PAIR, "one by one": LONE}
SCRIPT = Path(__file__).with_name("rebalanced.py")
OPTIONS: dict[str, Any] = {"key": "k", "time": "at", "sequence": "id", "outputs": ALL}


def go_on(spark: SparkSession, folder: Path, shards: int) -> None:
    """Runs the query to the end of its events, which are in the folder; rows go to files there."""
    stream = streamed(spark, folder / "events")
    rows = detect(stream, PATTERNS, lateness="5 seconds", shards=shards, **OPTIONS)
    finished(rows.writeStream.format("parquet").option("path", str(folder / "found")), folder / "checkpoint")


@pytest.mark.spark
@pytest.mark.slow
def test_other_numbers(partitioned: SparkSession, tmp_path: Path) -> None:
    """With shards that are divided and joined, in another number of partitions, the query goes on in the same files,
    whose log has each micro-batch; all rows are there once, with the ids that they have without all that.
    """
    rows = random_events(3, 400, 25)
    batches = [*delivered(rows, 6, 5, 2), events((-1, "end", 300, "z"))]
    checkpoint, query = tmp_path / "checkpoint", ""
    parts = [(4, 2, batches[:1]), (6, 3, batches[1:])]
    for number, (shards, partitions, batch) in enumerate(parts):
        if number:
            planned = rebalance(checkpoint, shards=shards, partitions=partitions, dry_run=True)
            assert Folder(checkpoint).batch(planned.batch).partitions != partitions
            done = rebalance(checkpoint, shards=shards, partitions=partitions)
            assert done == planned
            assert done.query == query
            assert str(done).startswith(f"{checkpoint}, after micro-batch {done.batch}: ")
            assert {one.after for one in done.patterns} == {shards}
            assert all(one.open for one in done.patterns)
            assert Path(done.former).is_dir()
        written(batch, tmp_path / "events", first=number)
        go_on(partitioned, tmp_path, shards)
        query = Folder(checkpoint).query
    log = {int(path.name) for path in (tmp_path / "found" / "_spark_metadata").glob("[0-9]*")}
    assert log == set(range(len(log)))
    expected = detect(events(*rows), PATTERNS, as_of=at(295), **OPTIONS)
    found = committed_rows(tmp_path / "found")
    assert Counter(found.column("match_id").to_pylist()) == Counter(expected.column("match_id").to_pylist())
    assert Folder(checkpoint).batch(Folder(checkpoint).committed).partitions == 3


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(KILLS < 5, reason="each kill starts Spark anew: make soak does it")
def test_kills(partitioned: SparkSession, tmp_path: Path) -> None:
    """Rebalancings get SIGKILL at random points, and the query goes on after each: no row is lost or doubled."""
    rows, drawn = random_events(3, 60 * (KILLS + 2), 25), random.Random(5)
    batches = [*delivered(rows, 6, 5, KILLS + 1), events((-1, "end", 10_000, "z"))]
    checkpoint, shards = tmp_path / "checkpoint", 4
    for number, batch in enumerate(batches):
        if number:
            wanted = shards % 7 + 2
            killed_after([tmp_path, wanted, drawn.randint(1, 4)], drawn.random() * 40)
            Folder(checkpoint).finish()
            (stored,) = {one.placement.shards for one in checkpointed_patterns(str(checkpoint)).values()}
            assert stored in (shards, wanted)
            shards = stored
        written([batch], tmp_path / "events", first=number)
        go_on(partitioned, tmp_path, shards)
    expected = detect(events(*rows), PATTERNS, as_of=at(9_995), **OPTIONS)
    found = committed_rows(tmp_path / "found")
    assert Counter(found.column("match_id").to_pylist()) == Counter(expected.column("match_id").to_pylist())


def killed_after(arguments: list[object], seconds: float) -> None:
    """Starts a rebalancing, and kills it after so many seconds if it has not ended."""
    path = os.pathsep.join([str(TESTS.parent), str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, start_new_session=True)
    try:
        assert process.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.spark
def test_what_cannot_be_rebalanced(partitioned: SparkSession, tmp_path: Path) -> None:
    """Each reason is said, and nothing has changed."""
    checkpoint = tmp_path / "checkpoint"

    def refused(kind: type[Exception], message: str, **given: Any) -> None:
        before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
        with pytest.raises(kind) as caught:
            rebalance(given.pop("checkpoint", checkpoint), **given)
        assert str(caught.value).startswith(message), str(caught.value)
        assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before

    numbers = (
        "shards: a whole number from 1 to 65,536 is expected, got 0\npartitions: a whole number from 1 to 1,048,576"
    )
    refused(SchemaError, numbers, shards=0, partitions=True)
    refused(SchemaError, "checkpoint: 's3a://bucket/c' is not a folder of this machine.", checkpoint="s3a://bucket/c")
    refused(SchemaError, "patterns: patterns are expected, got 5", patterns=[5])
    refused(SnapshotError, f"there is no checkpoint with state at '{checkpoint}'", shards=3)
    rows = random_events(3, 60, 5)
    written(delivered(rows, 2, 5, 1), tmp_path / "events")
    go_on(partitioned, tmp_path, 4)
    refused(SchemaError, "the checkpoint has 2 partitions and 4 evenly spread shards already", shards=4, partitions=2)
    last = Folder(checkpoint).committed
    commit = checkpoint / "commits" / str(last)
    content = commit.read_text()
    commit.unlink()
    commit.with_name(f".{last}.crc").unlink(missing_ok=True)  # the checksum of what was there
    unfinished = (
        f"the query of the checkpoint at '{checkpoint}' runs, or was stopped within a micro-batch: {last} is begun"
    )
    refused(SnapshotError, unfinished, shards=3)
    commit.write_text('v1\n{"nextBatchWatermarkMs":0,"stateUniqueIds":{"0":[["x"]]}}')
    refused(SnapshotError, f"the checkpoint at '{checkpoint}' has state in the second format", shards=3)
    commit.write_text(content)


@pytest.mark.spark
def test_a_query_that_runs(partitioned: SparkSession, tmp_path: Path) -> None:
    """The checkpoint of a query that runs in the process is refused, and one without state, too."""
    written([events((0, "p", 0, "a"))], tmp_path / "events")
    checkpoint = tmp_path / "checkpoint"
    query = streamed(partitioned, tmp_path / "events").writeStream.format("noop")
    running = query.option("checkpointLocation", str(checkpoint)).start()
    try:
        with pytest.raises(SnapshotError, match=r"runs in this process: stop it first$"):
            rebalance(checkpoint, shards=3)
        running.processAllAvailable()
    finally:
        running.stop()
    with pytest.raises(SnapshotError, match=r"^there is no checkpoint with state at "):
        rebalance(checkpoint, shards=3)


def folder(path: Path, mark: str | None, partitions: int) -> Folder:
    """A checkpoint after micro-batch 0; with a mark, a rebalancing has planned the next one."""
    (path / "offsets").mkdir(parents=True)
    (path / "commits").mkdir()
    (path / "state" / "0" / "1").mkdir(parents=True)
    (path / "state" / "0" / "_metadata" / "v2").mkdir(parents=True)
    stores = {"stateStoreInfo": [{"numPartitions": partitions}]}
    (path / "state" / "0" / "_metadata" / "v2" / "0").write_text(f"v2\n{json.dumps(stores)}")
    (path / "metadata").write_text('{"id": "q"}')
    settings = {PARTITIONS: str(partitions)}
    text = json.dumps({"batchWatermarkMs": 5, "conf": settings})
    (path / "offsets" / "0").write_text(f'v1\n{text}\n{{"logOffset":7}}')
    (path / "offsets" / ".0.crc").write_bytes(b"crc")
    (path / "commits" / "0").write_text('v1\n{"nextBatchWatermarkMs":9}')
    made = Folder(path)
    if mark is not None:
        made.plan_nothing(made.batch(0))
        (path / "offsets" / "1").write_text(made.batch(1).marked(mark).text)
    return made


def test_standbys() -> None:
    """A query with standbys is refused: copies of a key are in several shards."""
    made_for = {"pattern.name": "p", "shards": 4, "placement": "even", "standbys": {"each": 2, "patterns": 1}}
    stored = CheckpointedPattern("checkpoint", 0, 3, 0, made_for, {})
    message = "pattern 'p' has 2 standbys, which may hold copies of its hot keys: a query"
    with pytest.raises(SnapshotError, match=message):
        placed([stored], 4, {})


def test_a_pattern_that_an_earlier_version_has_not_stored() -> None:
    """Earlier versions stored only the kind of patterns of occurrences and intervals."""
    stored = CheckpointedPattern("checkpoint", 0, 3, 0, {"pattern.name": "p", "shards": 4}, {"kind": "intervals"})
    message = (
        "pattern 'p': an earlier version of Cepheid wrote the checkpoint, which stored no patterns of intervals. Let"
    )
    with pytest.raises(SnapshotError, match=message):
        placed([stored], 5, {})


def test_events_that_values_divide() -> None:
    """Where equalities divide the events of a key further, a key is in several shards, whose number stays."""
    made_for = {"pattern.name": "p", "shards": 4, "placement": "even", "divided by": ["`order_id`"]}
    asked = {"pattern": {}, "arguments": {"key": ["user"]}}
    stored = CheckpointedPattern("checkpoint", 0, 3, 0, made_for, asked)
    message = r"pattern 'p': its events are divided by values besides the key \(`order_id`\), which its stored state"
    with pytest.raises(SnapshotError, match=message):
        placed([stored], 5, {})


def test_the_empty_micro_batch(tmp_path: Path) -> None:
    """It has the offsets of the last one and the watermark after it. It is planned once, also if that is repeated; if a
    query has planned it, it is refused.
    """
    made = folder(tmp_path / "checkpoint", None, 2)
    planned = made.plan_nothing(made.batch(0))
    assert planned == made.batch(1) == made.plan_nothing(made.batch(0))
    assert (planned.offsets, planned.metadata["batchWatermarkMs"], planned.mark) == (('{"logOffset":7}',), 9, BEGUN)
    (tmp_path / "checkpoint" / "offsets" / "1").write_text(made.batch(0).text)
    with pytest.raises(SnapshotError, match="runs, or was stopped within a micro-batch: 1 is begun and not finished"):
        made.plan_nothing(made.batch(0))
    made.check_committed(0)
    with pytest.raises(SnapshotError, match="0 is begun and not finished"):
        made.check_committed(-1)


def test_the_copy(tmp_path: Path) -> None:
    """The copy has all but the state's partitions, the new number of partitions in the last micro-batch and in the
    empty one, and takes the place of the checkpoint, which is kept.
    """
    made = folder(tmp_path / "checkpoint", BEGUN, 2)
    made.copy_all_but_state(made.batch(0), made.batch(1), 5)
    copy = Folder(made.copy)
    assert [copy.batch(number).partitions for number in (0, 1)] == [5, 5]
    assert (copy.batch(0).mark, copy.batch(1).mark) == (None, DONE)
    assert not (made.copy / "state" / "0" / "1").exists()
    assert not (made.copy / "offsets" / ".0.crc").exists()
    assert '"numPartitions":5' in (made.copy / "state" / "0" / "_metadata" / "v2" / "0").read_text()
    former = made.swap(0)
    assert former == tmp_path / "checkpoint.before-1"
    assert (made.batch(0).partitions, Folder(former).batch(0).partitions) == (5, 2)
    assert not made.copy.exists()


def test_wherever_it_was_stopped(tmp_path: Path) -> None:
    """What a rebalancing leaves that was killed is removed, or finished where only the last rename is missing. There is
    a whole checkpoint at each point.
    """
    made = folder(tmp_path / "checkpoint", BEGUN, 2)
    assert not made.finish()
    folder(made.copy, None, 5)  # while the copy was written
    assert not made.finish()
    assert (made.copy.exists(), made.batch(0).partitions) == (False, 2)
    shutil.move(made.path, made.copy)  # after the exchange: the copy is the former checkpoint
    folder(made.path, DONE, 5)
    assert not made.finish()
    assert (made.copy.exists(), made.batch(0).partitions) == (False, 5)
    folder(made.copy, DONE, 7)  # between two renames, on a system that cannot exchange folders
    shutil.move(made.path, made.former(0))
    assert made.finish()
    assert (made.copy.exists(), made.batch(0).partitions) == (False, 7)
