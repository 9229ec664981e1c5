"""Queries continue from checkpoints of every earlier format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from scripts.stored_checkpoints import go_on, unpack
from tests.stream.test_errors import ADVICE, OTHERWISE

from cepheid import partial_matches
from cepheid.hosts.spark.stream.checkpoint_reader import open_by_shard
from cepheid.hosts.spark.stream.stored_state import stored_patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STORED = Path(__file__).parent / "checkpoints"
OPEN = [("b", "open"), ("é", "open"), ("é", "pays"), ("é", "pays"), ("é", "pays")]
WRITTEN_BY = {"1-1": (4, 3), "1-2": (4, 3), "1-3": (4, 3)}
"""The version of Spark that wrote the checkpoint; an older version may be unable to read its state."""

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("file", sorted(STORED.glob("*.zip")), ids=lambda file: file.stem)
def test_stored_checkpoints(streams: SparkSession, tmp_path: Path, file: Path) -> None:
    """The listing of partial matches and the continued query give what they gave when the checkpoint was written. Its
    shards have the numbers that they had then.
    """
    if tuple(map(int, streams.version.split(".")[:2])) < WRITTEN_BY[file.stem[:3]]:
        pytest.skip(f"a Spark newer than {streams.version} wrote the checkpoint")
    kind = "-".join(file.stem.split("-")[2:3]) or "stages"
    unpack(file, tmp_path)
    checkpoint = tmp_path / "checkpoint"
    each = stored_patterns(streams, str(checkpoint))
    placed = {(one.placement.even, one.placement.together) for one in each}
    assert placed == {("-even" in file.stem, file.stem.endswith("-together"))}
    log = streams.read.format("statestore").option("stateVarName", "log").load(str(checkpoint))
    assert log.count() > 0
    if kind == "stages":
        assert sorted((row.account, row.stage) for row in partial_matches(checkpoint, "account").collect()) == OPEN
    if file.stem.endswith("-together"):  # its heads have only the sum
        assert {*open_by_shard(str(checkpoint), each[0].batch).values()} == {None}
    expected = [json.loads(line) for line in file.with_suffix(".jsonl").read_text("utf-8").splitlines()]
    assert go_on(streams, tmp_path, kind) == expected != []


@pytest.mark.parametrize("name", ["1-3-stages", "1-3-intervals-even"])
def test_shards_with_their_old_numbers(streams: SparkSession, tmp_path: Path, name: str) -> None:
    """A query on a checkpoint of an earlier version that does not name it fails, with the argument that it needs."""
    from pyspark.errors import StreamingQueryException

    unpack(STORED / f"{name}.zip", tmp_path)
    with pytest.raises(StreamingQueryException) as caught:
        go_on(streams, tmp_path, name.split("-")[2], checkpoint=None)
    assert f"the checkpoint belongs to another query: {OTHERWISE}. {ADVICE}" in str(caught.value)
