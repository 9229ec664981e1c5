"""Matches of one pattern are the events of the next one, in one streaming query."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.live.events import at, events
from tests.live.test_any_delivery import counted
from tests.stream.running import run, streamed, written
from tests.stream.test_spark_stream import delivered, joined, random_events

from cepheid import Pattern, SchemaError, detect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

PAIR = (
    Pattern.begin("a", name="pair")
    .where("x = 'a'")
    .followed_by("b")
    .where("x = 'b'")
    .not_followed_by("c")
    .where("x = 'c'")
    .within("6 seconds")
)
TWO = Pattern.begin("one", name="two").next("other").where("user <> one.user").within("8 seconds")
FIRST: dict[str, Any] = {"key": "k", "time": "at", "sequence": "id", "measures": {"user": "a.k"}}
SECOND: dict[str, Any] = {
    "key": "network",
    "time": "detected_at",
    "sequence": "match_id",
    "outputs": ["matches", "timeouts"],
}


def networks(matches: DataFrame) -> DataFrame:
    """The matches with a column for the network of their user, one of three."""
    return matches.selectExpr("*", "cast(substring(user, 2) as int) % 3 as network")


def test_two_tiers(streams: SparkSession, tmp_path: Path) -> None:
    """The second tier emits what it finds in the matches of a finite input, including absences and timeouts of both
    tiers; its time is the watermark of the events.
    """
    rows = random_events(11, 500, 12)
    batches = [*delivered(rows, 12, 5, 5), events((-1, "end", 300, "z")), events((-2, "end", 301, "z"))]
    written(batches, tmp_path / "events")
    first = detect(streamed(streams, tmp_path / "events"), PAIR, lateness="5 seconds", shards=3, **FIRST)
    found = run(detect(networks(first), TWO, shards=2, **SECOND), tmp_path / "checkpoint")
    matches = detect(events(*rows), PAIR, as_of=at(296), **FIRST)
    network = [int(user[1:]) % 3 for user in matches.column("user").to_pylist()]
    expected = detect(matches.append_column("network", pa.array(network, pa.int32())), TWO, as_of=at(296), **SECOND)
    assert {*expected.column("kind").to_pylist()} == {"match", "timeout"}
    assert counted(joined(found, expected)) == counted(expected)
    assert sum(map(bool, found)) > 2


def test_each_pattern_has_its_name(streams: SparkSession, tmp_path: Path) -> None:
    """The patterns of one query must have different names, as its figures use the names; whatever the second tier's
    time.
    """
    written([events((0, "p", 0, "a"))], tmp_path / "events")
    first = detect(streamed(streams, tmp_path / "events"), PAIR, lateness="5 seconds", **FIRST)
    same_name = Pattern.begin("one", name="pair").within("8 seconds")
    for time, lateness in (("detected_at", None), ("match_end", "1 second")):
        with pytest.raises(SchemaError) as caught:
            detect(networks(first), same_name, **{**SECOND, "time": time}, lateness=lateness)
        assert str(caught.value).splitlines()[0] == (
            "pattern: two patterns of this query are named 'pair', and its figures and checkpoint use the names. "
            "Rename one of them, as in Pattern.begin('a', name='…')"
        )
    second = detect(networks(first), TWO, **SECOND).selectExpr("*", "1 AS network")
    with pytest.raises(SchemaError, match="are named 'pair'"):
        detect(second, same_name, key="network", time="detected_at")


def test_matches_read_from_files_are_plain_events(streams: SparkSession, tmp_path: Path) -> None:
    """Matches that were written to files are ordinary events, although the files keep the metadata that marks
    a tier.
    """
    written([events((0, "p", 0, "a"))], tmp_path / "events")
    first = detect(streamed(streams, tmp_path / "events"), PAIR, lateness="5 seconds", **FIRST)
    stored = networks(streams.readStream.schema(first.schema).parquet(str(tmp_path)))
    assert detect(stored, TWO, **SECOND, lateness="1 second").isStreaming
    with pytest.raises(SchemaError, match="say how late an event of the stream may come"):
        detect(stored, TWO, **SECOND)


def test_late_events_are_refused_as_matches(streams: SparkSession, tmp_path: Path) -> None:
    """Rows that include late events cannot be the events of another pattern: the time of late events is the
    watermark.
    """
    written([events((0, "p", 0, "a"))], tmp_path / "events")
    stream = streamed(streams, tmp_path / "events")
    options = {"lateness": "5 seconds", "key": "k", "time": "at"}
    rows = detect(stream, PAIR, outputs=["matches", "late"], **options)
    with pytest.raises(SchemaError) as caught:
        detect(rows, TWO.where("kind = 'match'"), key="k", time="detected_at")
    assert str(caught.value) == (
        "events: these rows include late events, as 'late' is among their outputs, and late events are no matches. "
        "Leave out 'late' there, and write late events in a query of their own"
    )
    other = detect(stream, Pattern.begin("one", name="other"), **options)
    together = other.selectExpr("k", "detected_at AS also").join(rows, "k")
    with pytest.raises(SchemaError, match=r"^events: these rows include late events"):
        detect(together, Pattern.begin("one", name="joined"), key="k", time="also")
    both = detect(stream, PAIR, outputs=["matches", "timeouts"], **options)
    single = Pattern.begin("one", name="single").where("kind = 'timeout'")
    assert detect(both, single, key="k", time="detected_at").isStreaming


def test_no_lateness(streams: SparkSession, tmp_path: Path) -> None:
    """Matches of the same query are never late, so a lateness is refused."""
    written([events((0, "p", 0, "a"))], tmp_path / "events")
    first = detect(streamed(streams, tmp_path / "events"), PAIR, lateness="5 seconds", **FIRST)
    with pytest.raises(SchemaError) as caught:
        detect(networks(first), TWO, lateness="1 second", **SECOND)
    assert str(caught.value) == (
        "lateness: 'detected_at' is the time of matches in this query, and no match is late. Leave it out"
    )
    with pytest.raises(SchemaError) as caught:
        detect(networks(first), TWO, **{**SECOND, "time": "match_end"})
    assert str(caught.value) == (
        "time: these events are matches of this query. They come when they are certain, so their time is "
        "'detected_at', not 'match_end'"
    )
