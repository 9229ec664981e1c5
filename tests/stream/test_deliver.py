"""The matches of a stream for subscribers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.durable.routing.receiver import running_receiver
from tests.durable.test_commands import started
from tests.live.events import PAIR, events
from tests.stream.running import finished, streamed, written
from tests.stream.test_spark_stream import delivered, random_events

from cepheid import PatternError, SchemaError, Subscriber, deliver, detect
from cepheid.host import Letter, open_host

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cepheid.hosts.durable.routing.subscription import DeadLetter

pytestmark = pytest.mark.spark

OPTIONS: dict[str, Any] = {"key": "k", "time": "at", "sequence": "id", "outputs": ("matches", "timeouts")}
LOOPBACK = "127.0.0.0/8"


def stream(spark: SparkSession, folder: Path) -> tuple[DataFrame, pa.Table]:
    """The rows of a stream, and what detect finds in all of its events."""
    rows = random_events(5, 200)
    written([*delivered(rows, 2, 5, 4), events((-1, "end", 300, "z"))], folder / "events")
    found = detect(streamed(spark, folder / "events"), PAIR, lateness="5 seconds", shards=3, **OPTIONS)
    expected = detect(events(*rows), PAIR, as_of=events((0, "", 295, "")).column("at")[0].as_py(), **OPTIONS)
    return found, expected


def run(rows: DataFrame, function: Callable[[DataFrame, int], None], checkpoint: Path) -> None:
    finished(rows.writeStream.foreachBatch(function), checkpoint)


def ids(table: pa.Table, kind: str) -> set[str]:
    return {row["match_id"] for row in table.to_pylist() if row["kind"] == kind}


@pytest.mark.long
def test_subscribers(streams: SparkSession, tmp_path: Path) -> None:
    """Each subscriber gets the rows that its condition chooses: a function, an endpoint that fails at first, and a
    durable host, which has each exactly once. What is given up is reported, and the others are not concerned.
    """
    rows, expected = stream(streams, tmp_path)
    called: list[Letter] = []
    dead: list[tuple[str, DeadLetter]] = []
    tier = f"sqlite:///{tmp_path}/tier.db"
    with open_host(tier) as host:
        columns = [("at", pa.timestamp("us", "UTC")), ("k", pa.string()), ("pattern", pa.string())]
        host.input("pairs", pa.schema(columns), time="at", lateness="5 minutes")
    with running_receiver() as receiver, started(tier):
        receiver.answer = lambda _: (503 if len(receiver.received) % 2 else 204, {})
        function = deliver(
            rows,
            Subscriber("own", called.append, where="kind = 'match' AND k <> 'k1'"),
            Subscriber("hook", receiver.origin, where="kind = 'timeout'", pause="1 millisecond"),
            Subscriber("tier", f"{tier}#pairs", where="kind = 'match'"),
            Subscriber("broken", lambda _: 1 / 0, where="k = 'k2'", attempts=2, pause="1 millisecond"),
            allow=[receiver.origin, LOOPBACK, tier],
            dead=lambda name, letter: dead.append((name, letter)),
        )
        run(rows, function, tmp_path / "checkpoint")
        for number in range(5):  # as if the query had died after each of its last micro-batches
            function(rows.sparkSession.createDataFrame([], rows.schema), number)
    matches = ids(expected, "match")
    others = {row["match_id"] for row in expected.to_pylist() if row["k"] == "k1"}
    assert {letter.id for letter in called} == matches - others
    assert len({letter.number for letter in called}) == len(called)
    assert [letter.number for letter in called] == sorted(letter.number for letter in called)
    assert {one.headers["webhook-id"] for one in receiver.received} == ids(expected, "timeout")
    assert len(receiver.received) == 2 * len(ids(expected, "timeout"))
    broken = {row["match_id"] for row in expected.to_pylist() if row["k"] == "k2"}
    assert {(name, one.letter.id, one.attempts, one.problem) for name, one in dead} == {
        ("broken", id_, 2, "ZeroDivisionError: division by zero") for id_ in broken
    }
    with open_host(tier) as host:
        assert host.inputs["pairs"].events == len(matches)


def test_repeated(streams: SparkSession, tmp_path: Path) -> None:
    """A letter that is given up ends the query, after the others have theirs. Its restart sends the micro-batch again,
    with the same numbers and ids; then it goes on.
    """
    rows, expected = stream(streams, tmp_path)
    called: list[Letter] = []
    works: list[bool] = []

    def receive(_: Letter) -> None:
        if not works:
            raise RuntimeError("not yet")

    def function() -> Callable[[DataFrame, int], None]:
        return deliver(
            rows,
            Subscriber("works", called.append),
            Subscriber("broken", receive, attempts=1),
        )

    with pytest.raises(Exception, match=r"subscriber 'broken': match .* was given up after 1 attempts"):
        run(rows, function(), tmp_path / "checkpoint")
    first = [*called]
    assert first
    works.append(True)
    run(rows, function(), tmp_path / "checkpoint")
    assert called[len(first) : 2 * len(first)] == first
    assert {letter.id for letter in called} == ids(expected, "match") | ids(expected, "timeout")


def test_wrong_arguments(streams: SparkSession, tmp_path: Path) -> None:
    """Wrong arguments are refused before the query starts, with all problems."""
    rows, _ = stream(streams, tmp_path)
    with pytest.raises(PatternError) as caught:
        deliver(
            rows,
            Subscriber("x", "https://example.com/", where="amount > 1"),
            Subscriber("x", "table://alerts", where="rand() > 0.5"),
            Subscriber("y", print, where="k"),
        )
    for expected in (
        "two subscribers are named 'x'",
        "the host may not reach https://example.com:443",
        "amount",
        "a table, and a host that the program has open, are targets of durable hosts only",
        "rand",
        "a condition must be BOOLEAN, this is STRING",
    ):
        assert expected in str(caught.value)
    with pytest.raises(SchemaError, match="rows: a Spark DataFrame is expected that detect gave"):
        deliver(rows.select("k"), Subscriber("x", print))
