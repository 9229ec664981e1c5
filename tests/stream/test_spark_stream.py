"""Streams on Spark give what detect gives on all events at once."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.live.events import at, events
from tests.live.test_any_delivery import counted
from tests.stream.running import detected

from cepheid import Pattern, Skip, detect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

RUN = (
    Pattern.begin("a", name="run")
    .where("x = 'a'")
    .followed_by("bs")
    .where("x = 'b' AND id > a.id")
    .one_or_more()
    .not_followed_by("c")
    .where("x = 'c'")
    .within("8 seconds")
    .skip(Skip.past_last_event())
)


def random_events(seed: int, count: int = 400, keys: int = 30) -> list[tuple[int, str, float, str]]:
    """In the order of time, over some 200 seconds, many at equal times."""
    drawn = random.Random(seed)
    times = sorted(drawn.randrange(0, 800) / 4 for _ in range(count))
    return [(i, f"k{drawn.randrange(keys)}", time, drawn.choice("aabbbcz")) for i, time in enumerate(times)]


def delivered(rows: Sequence[tuple[int, str, float, str]], seed: int, lateness: float, batches: int) -> list[pa.Table]:
    """The events as they come, up to `lateness` late, in micro-batches."""
    drawn = random.Random(seed)
    order = sorted(rows, key=lambda row: row[2] + drawn.random() * lateness)
    cuts = [0, *sorted(drawn.sample(range(1, len(rows)), batches - 1)), len(rows)]
    return [events(*order[start:end]) for start, end in pairwise(cuts)]


def joined(batches: Sequence[Sequence[dict[str, Any]]], like: pa.Table) -> pa.Table:
    return pa.Table.from_pylist([row for batch in batches for row in batch], schema=like.schema)


def test_a_stream_gives_what_a_batch_gives(streams: SparkSession, tmp_path: Path) -> None:
    """All keys, any order of arrival within the lateness: the same rows, timeouts with them, and nothing late."""
    rows = random_events(1)
    options: dict[str, Any] = {"key": "k", "time": "at", "outputs": ("matches", "timeouts", "late"), "columns": ["id"]}
    batches = [*delivered(rows, 2, 5, 5), events((-1, "end", 300, "z"))]
    found = detected(streams, batches, tmp_path, RUN, lateness="5 seconds", shards=7, **options)
    expected = detect(events(*rows), RUN, as_of=at(295), sequence="id", **options)
    without_sequence = detect(events(*rows), RUN, as_of=at(295), **options)
    assert {*expected.column("kind").to_pylist()} == {"match", "timeout"}
    assert counted(joined(found, expected)) == counted(without_sequence)
    assert sum(map(bool, found)) > 3  # matches come as the watermark passes, not at the end
