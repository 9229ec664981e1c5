"""Streams on Spark emit what detect finds for all events at once."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.live.events import ALL, at, events
from tests.live.test_any_delivery import counted
from tests.stream.running import detected

from cepheid import Pattern, Report, Skip, detect
from cepheid.hosts.spark.stream.placement import Placement
from cepheid.hosts.spark.stream.stored_state import open_by_number

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


END = events((-1, "end", 300, "z"), (-2, "k", None, "a"))
"""The latest event, and an event without a time."""


def random_events(seed: int, count: int = 400, keys: int = 30) -> list[tuple[int, str, float, str]]:
    """Events sorted by time, over some 200 seconds, many of them at equal times."""
    drawn = random.Random(seed)
    times = sorted(drawn.randrange(0, 800) / 4 for _ in range(count))
    return [(i, f"k{drawn.randrange(keys)}", time, drawn.choice("aabbbcz")) for i, time in enumerate(times)]


def delivered(rows: Sequence[tuple[int, str, float, str]], seed: int, lateness: float, batches: int) -> list[pa.Table]:
    """The events in order of arrival, delayed by up to `lateness`, in micro-batches."""
    drawn = random.Random(seed)
    order = sorted(rows, key=lambda row: row[2] + drawn.random() * lateness)
    cuts = [0, *sorted(drawn.sample(range(1, len(rows)), batches - 1)), len(rows)]
    return [events(*order[start:end]) for start, end in pairwise(cuts)]


def joined(batches: Sequence[Sequence[dict[str, Any]]], like: pa.Table) -> pa.Table:
    return pa.Table.from_pylist([row for batch in batches for row in batch], schema=like.schema)


def test_a_stream_gives_what_a_batch_gives(partitioned: SparkSession, tmp_path: Path) -> None:
    """For any order of arrival within the lateness, the rows are those of a batch, including timeouts; no event is
    late.
    """
    rows = random_events(1)
    options: dict[str, Any] = {"key": "k", "time": "at", "sequence": "id", "outputs": ALL, "columns": ["id"]}
    batches = [*delivered(rows, 2, 5, 5), events((-1, "end", 300, "z"))]
    found = detected(partitioned, batches, tmp_path, RUN, lateness="5 seconds", shards=7, **options)
    expected = detect(events(*rows), RUN, as_of=at(295), **options)
    assert {*expected.column("kind").to_pylist()} == {"match", "timeout"}
    assert counted(joined(found, expected)) == counted(expected)
    assert sum(map(bool, found)) > 3  # matches are emitted as the watermark advances, not at the end


def test_what_negations_end(partitioned: SparkSession, tmp_path: Path) -> None:
    """For any order of arrival within the lateness, the matches and what negations have ended are those of a batch,
    each with its cause.
    """
    rows = random_events(4)
    begun = Pattern.begin("a", name="run").where("x = 'a'").not_followed_by("c").where("x = 'c'")
    pattern = begun.followed_by("b").where("x = 'b' AND id > a.id").within("8 seconds")
    options: dict[str, Any] = {"key": "k", "time": "at", "sequence": "id", "columns": ["id"]}
    options["outputs"] = ("matches", "no_match")
    batches = [*delivered(rows, 5, 5, 5), events((-1, "end", 300, "z"))]
    found = detected(partitioned, batches, tmp_path, pattern, lateness="5 seconds", **options)
    expected = detect(events(*rows), pattern, as_of=at(295), **options)
    assert {*zip(*(expected.column(name).to_pylist() for name in ("kind", "cause")), strict=True)} == {
        ("match", None),
        ("no_match", "c"),
    }
    assert counted(joined(found, expected)) == counted(expected)
    assert sum(map(bool, found)) > 3


@pytest.mark.filterwarnings("ignore:no key", "ignore:.*agree in key and time")
def test_local_times_measures_and_no_key(partitioned: SparkSession, tmp_path: Path) -> None:
    """Times without a zone, an event without a time, measures instead of stages, ties, and no key."""
    rows = random_events(3, 120)
    pair = Pattern.begin("a").where("x = 'a'").next("b").where("x = 'b' AND k <> a.k").within("1 second")
    options: dict[str, Any] = {
        "time": "at",
        "time_zone": "Europe/Berlin",
        "nulls": "drop",
        "measures": {"ids": "a.id * 1000 + b.id", "n": "count(b)", "at": "a.at"},
    }
    batches = [
        local(batch) for batch in [*delivered(rows, 4, 2, 3), events((-1, "end", 300, "z"), (-2, "k", None, "a"))]
    ]
    found = detected(partitioned, batches, tmp_path, pair, lateness="2 seconds", **options)
    expected = detect(local(events(*rows)), pair, as_of=at(298), report=Report(), **options)
    assert expected.num_rows > 3
    assert counted(joined(found, expected)) == counted(expected)


def test_events_without_key_are_divided(partitioned: SparkSession, tmp_path: Path) -> None:
    """Where all events of a match have the same value, it divides a stream without key into shards, without a warning
    of one sequence. The matches are those of one sequence.
    """
    rows = random_events(7, 300, 25)
    first = Pattern.begin("a").where("x = 'a'")
    pattern = first.followed_by_any("b").where("k = a.k AND x <> 'c'").within("40 seconds")
    options: dict[str, Any] = {"time": "at", "sequence": "id"}
    batches = [*delivered(rows, 8, 3, 3), events((-1, "end", 210, "z"))]
    found = detected(partitioned, batches, tmp_path, pattern, lateness="3 seconds", shards=4, **options)
    expected = detect(events(*rows), pattern, as_of=at(207), **options)
    assert expected.num_rows > 20
    assert counted(joined(found, expected)) == counted(expected)
    assert {*open_by_number(str(tmp_path / "checkpoint"), Placement(1))} == {*Placement(4).numbers(0).tolist()}


def local(table: pa.Table) -> pa.Table:
    """The table with times in the local time of Berlin, without a zone."""
    times = table.column("at").cast(pa.timestamp("us", "Europe/Berlin"))
    return table.set_column(table.schema.get_field_index("at"), "at", pc.local_timestamp(times))


def test_conditions_in_python(partitioned: SparkSession, tmp_path: Path) -> None:
    """Functions see the event's times in the session's time zone and the events matched so far, as on every host."""
    rows = random_events(5, 300, 3)
    pattern = (
        Pattern.begin("a")
        .where("x = 'a'")
        .followed_by("b")
        .where(lambda e, matched: e["x"] == "b" and (e["at"] - matched["a"][0]["at"]).seconds < 5, name="soon")
        .within("10 seconds")
    )
    options: dict[str, Any] = {"key": "k", "time": "at", "sequence": "id", "columns": ["id"]}
    batches = [*delivered(rows, 6, 2, 2), events((-1, "end", 300, "z"))]
    found = detected(partitioned, batches, tmp_path, pattern, lateness="2 seconds", **options)
    expected = detect(events(*rows), pattern, as_of=at(298), **options)
    assert expected.num_rows > 3
    assert counted(joined(found, expected)) == counted(expected)


def test_several_patterns(partitioned: SparkSession, tmp_path: Path) -> None:
    """Several patterns by name in one query emit what each of them emits alone, with its measures."""
    rows = random_events(13, 300, 10)
    patterns = {
        "run": RUN,
        "pair": Pattern.begin("a").where("x = 'a'").next("b").where("x = 'b' OR x = 'c'").within("3 seconds"),
    }
    options: dict[str, Any] = {
        "key": "k",
        "time": "at",
        "sequence": "id",
        "outputs": ALL,
        "measures": {"run": {"n": "count(bs)"}, "pair": {"what": "b.x"}},
    }
    batches = [*delivered(rows, 14, 2, 3), events((-1, "end", 300, "z")), events((-2, "end", 301, "z"))]
    found = detected(partitioned, batches, tmp_path, patterns, lateness="2 seconds", **options)
    expected = detect(events(*rows), patterns, as_of=at(299), **options)
    assert {*expected.column("pattern").to_pylist()} == {"run", "pair"}
    assert counted(joined(found, expected)) == counted(expected)
