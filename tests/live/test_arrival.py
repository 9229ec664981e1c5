"""time=ARRIVAL: the time of an event is that of its arrival, which the host records."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.stream.running import streamed, written

from cepheid import ARRIVAL, EventError, Matcher, Pattern, SchemaError, detect
from cepheid.host import open_host

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
NEAR = Pattern.begin("a").where("what = 'a'").followed_by("b").where("what = 'b'").within("10 seconds")
QUIET = Pattern.begin("a").where("what = 'a'").not_followed_by("no").where("what = 'b'").within("10 seconds")


def events(whats: str, first: int = 0) -> pa.Table:
    columns = {"n": range(first, first + len(whats)), "what": list(whats), "k": [1] * len(whats)}
    return pa.table(columns, schema=pa.schema([("n", pa.int64()), ("what", pa.string()), ("k", pa.int64())]))


def at(second: float) -> datetime:
    return NOON + timedelta(seconds=second)


def pairs(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(row["a"]["n"], row["b"]["n"]) for row in rows]


def test_windows_are_in_time_of_arrival() -> None:
    """Each event counts when it comes; those of one call come together, in the order of their rows."""
    matcher = Matcher(NEAR, events("").schema, time=ARRIVAL, key="k")
    assert pairs(matcher.process(events("ba"), at=at(0)).to_pylist()) == []
    found = matcher.process(events("bab", 2), at=at(9)).to_pylist()
    assert sorted(pairs(found)) == [(1, 2), (3, 4)]
    assert found[0]["a"] | {"arrived_at": None} == {"n": 1, "what": "a", "k": 1, "arrived_at": None}
    assert [found[0][name] for name in ("match_start", "match_end", "detected_at")] == [at(0), at(9), at(9)]
    assert pairs(matcher.process(events("ab", 5), at="2026-03-02 12:00:20").to_pylist()) == [(5, 6)]


def test_a_sequence_orders_what_comes_together() -> None:
    """Events of one call are in the order of the sequence; later calls come after them at the same time, too."""
    matcher = Matcher(NEAR, events("").schema, time=ARRIVAL, key="k", sequence="n DESC")
    assert pairs(matcher.process(events("ba"), at=at(0)).to_pylist()) == [(1, 0)]
    assert pairs(matcher.process(events("aab", 2), at=at(0)).to_pylist()) == []
    assert sorted(pairs(matcher.process(events("b"), at=at(0)).to_pylist())) == [(2, 0), (3, 0)]


def test_recorded_times_give_the_same_matches_again() -> None:
    """A replay with the times that were told, or with the recorded times as event times, finds the same."""
    calls = [(events("aab"), at(0)), (events("bba", 3), at(4)), (events("b", 6), at(11)), (events("b", 7), at(14))]

    def replayed() -> list[dict[str, Any]]:
        matcher = Matcher(NEAR, events("").schema, time=ARRIVAL, key="k")
        return [row for batch, time in calls for row in matcher.process(batch, at=time).to_pylist()]

    found = replayed()
    assert found == replayed()
    recorded = pa.concat_tables(
        batch.append_column("arrived_at", pa.array([time] * len(batch), pa.timestamp("us", "UTC")))
        for batch, time in calls
    )
    again = detect(recorded, NEAR, time="arrived_at", sequence="n", key="k").to_pylist()
    assert sorted(pairs(found)) == sorted(pairs(again)) == [(0, 2), (1, 2), (5, 6)]


def test_conditions_see_the_time_of_arrival() -> None:
    """The column arrived_at is FlinkCEP's currentProcessingTime."""
    slow = Pattern.begin("a").next("b").where("arrived_at - a.arrived_at > INTERVAL '1' SECOND")
    matcher = Matcher(slow, events("").schema, time=ARRIVAL, key="k", columns="n")
    found = [matcher.process(events("a", n), at=at(second)).to_pylist() for n, second in enumerate((0, 1, 5))]
    assert [pairs(rows) for rows in found] == [[], [], [(1, 2)]]


def test_the_clock_of_the_machine_gives_the_time() -> None:
    """Without a time, events arrive now, and time advances to now."""
    matcher = Matcher(QUIET, events("").schema, time=ARRIVAL, key="k")
    before = datetime.now(UTC)
    matcher.process(events("a"))
    matcher.advance_time()
    (open_,) = matcher.partial_matches().to_pylist()
    assert before <= open_["match_start"] <= datetime.now(UTC)
    (row,) = matcher.advance_time(open_["deadline"]).to_pylist()
    assert row["detected_at"] == open_["deadline"] == open_["match_start"] + timedelta(seconds=10)


def test_time_does_not_go_back() -> None:
    """A time of arrival before the one reached is an error, also after a snapshot; the clock then stands."""
    matcher = Matcher(NEAR, events("").schema, time=ARRIVAL, key="k")
    future = datetime.now(UTC) + timedelta(days=1)
    matcher.process(events("a"), at=future)
    matcher.advance_time(future + timedelta(seconds=2))
    restored = Matcher(NEAR, events("").schema, time=ARRIVAL, key="k")
    restored.restore(matcher.snapshot())
    for one in (matcher, restored):
        with pytest.raises(EventError, match=r"at: events cannot arrive at .*, as time has advanced to"):
            one.process(events("b", 1), at=future + timedelta(seconds=2))
        with pytest.raises(EventError, match=r"time: it cannot go back to .*: events arrive from .* on"):
            one.advance_time(future + timedelta(seconds=1))
        assert one.advance_time(future + timedelta(seconds=2)).num_rows == 0, "to the time reached"
        assert pairs(one.process(events("b", 1)).to_pylist()) == [(0, 1)]


def test_what_has_no_time_of_arrival() -> None:
    """Finite events do not arrive; other arguments that have no meaning are refused, too."""
    with pytest.raises(SchemaError, match="time: ARRIVAL is for events as they come"):
        detect(events("ab"), NEAR, time=ARRIVAL)
    for arguments, message in [
        ({"lateness": "1 second"}, "lateness: with time=ARRIVAL no event is late"),
        ({"consistency": "realtime"}, "consistency: with time=ARRIVAL events come in order"),
    ]:
        with pytest.raises(SchemaError, match=message):
            Matcher(NEAR, events("").schema, time=ARRIVAL, **arguments)
    with pytest.raises(SchemaError, match="the column 'arrived_at' will have the times of arrival"):
        Matcher(NEAR, events("").append_column("arrived_at", [[]]).schema, time=ARRIVAL)
    matcher = Matcher(Pattern.begin("a"), events("").schema, time=None)
    with pytest.raises(SchemaError, match="at: it is the time of arrival of the events"):
        matcher.process(events("a"), at=NOON)


def test_a_durable_host_records_the_times(tmp_path: Path) -> None:
    """The times are stored with the events, and time does not go back when the host is opened again."""
    url = f"sqlite:///{tmp_path}/store.db"
    with open_host(url) as host:
        host.input("events", events("").schema, time=ARRIVAL, keep="1 day")
        host.deploy(NEAR.named("near"), input="events", key="k")
        host.deploy(QUIET.named("quiet"), input="events", key="k")
        host.feed(events("a"), input="events", at=at(1))
        with pytest.raises(SchemaError, match="lateness: with time=ARRIVAL"):
            host.input("others", events("").schema, time=ARRIVAL, lateness="1 second")
    with open_host(url) as host:
        with pytest.raises(EventError, match="at: events cannot arrive"):
            host.feed(events("b", 1), input="events", at=at(0))
        with pytest.raises(EventError, match=r"back to 2026-03-02 12:00:00\S*: events arrive from 2026-03-02 12:00:01"):
            host.advance_time(at(0))
        near = host.feed(events("ab", 1), input="events", at=at(1)).rows["near"].to_pylist()
        taken = [event for row in near for _, taken in row["stages"] for event in taken]
        assert sorted(event["n"] for event in taken) == [0, 1, 2, 2]
        assert {*taken[0]} == {"n", "what", "k", "arrived_at"}
        assert {event["arrived_at"] for event in taken} == {at(1)}
        host.feed(events("a", 3), input="events", at=at(2))
        host.deploy(NEAR.named("again"), input="events", key="k", since=at(0))
        fed = host.advance_time(input="events")
        assert [len(fed.rows[name]) for name in fed.rows] == [1]
        assert fed.rows["quiet"].column("detected_at").to_pylist() == [at(12)]
        (table,) = host.sql("SELECT matches_table FROM patterns WHERE name = 'again'").column(0).to_pylist()
        assert host.sql(f'SELECT match_id FROM "{table}"').num_rows == 2


@pytest.mark.spark
def test_a_repeated_micro_batch_has_its_time_again(spark: SparkSession, tmp_path: Path) -> None:
    """The events of a micro-batch have the time that Spark recorded for it, also if it runs twice."""
    rows: list[dict[str, Any]] = []
    fails = True

    def collect(batch: DataFrame, _: int) -> None:
        if fails:
            raise RuntimeError("the sink is gone")
        rows.extend(batch.toArrow().to_pylist())

    def run() -> Any:
        stream = streamed(spark, tmp_path / "events")
        found = detect(stream, NEAR, key="k", time=ARRIVAL, sequence="n DESC", columns=["n", "arrived_at"], shards=1)
        writer = found.writeStream.foreachBatch(collect).option("checkpointLocation", str(tmp_path / "checkpoint"))
        return writer.trigger(availableNow=True).start()

    written([events("ba"), events("b", 2)], tmp_path / "events")
    failed = run()
    with pytest.raises(Exception, match="the sink is gone"):
        failed.awaitTermination()
    fails = False
    run().awaitTermination()
    log = (tmp_path / "checkpoint" / "offsets" / "0").read_text().splitlines()
    recorded = datetime.fromtimestamp(json.loads(log[1])["batchTimestampMs"] / 1000, UTC)
    assert sorted(pairs(rows)) == [(1, 0)]
    assert rows[0]["a"]["arrived_at"] == rows[0]["match_start"] == recorded
    with pytest.raises(SchemaError, match="sequence: with time=ARRIVAL all events of a micro-batch have its time"):
        detect(streamed(spark, tmp_path / "events"), NEAR, key="k", time=ARRIVAL)
