"""`cepheid detect`: files in, matches out, the same for each kind of file and on each host."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from cepheid import EventCounts
from cepheid.cli.files import event_files, read_events

Cepheid = Callable[..., Any]
OPTIONS = ["--key", "symbol", "--time", "at"]
MEASURES = ["--measure", "low_price=low.price", "--measure", "high_price=high.price"]
COUNTS = {name: 0 for name in asdict(EventCounts()) if name != "timeouts"}
EXPECTED = [("a", 5.0, 12.0), ("b", 7.0, 11.0)]


@pytest.mark.parametrize("events", ["events.parquet", "events.csv", "events.jsonl"])
def test_matches_in_a_pipe(cepheid: Cepheid, events: str) -> None:
    """In a pipe, matches are JSON lines, and nothing else is printed."""
    done = cepheid("detect", "rising.yaml", events, *OPTIONS, *MEASURES)
    assert (done.returncode, done.stderr) == (0, "")
    matches = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted((m["symbol"], m["low_price"], m["high_price"]) for m in matches) == EXPECTED


@pytest.mark.parametrize("output", ["m.parquet", "m.csv", "m.jsonl"])
def test_matches_in_a_file(folder: Path, cepheid: Cepheid, output: str) -> None:
    """With --output, matches are written to the file, and a pipe gets nothing."""
    done = cepheid("detect", "rising.yaml", "events.parquet", *OPTIONS, *MEASURES, "--output", output)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    matches = read_events(event_files([str(folder / output)]), times=["match_start"]).to_pylist()
    assert sorted((m["symbol"], m["low_price"], m["high_price"]) for m in matches) == EXPECTED


def test_stage_columns(cepheid: Cepheid) -> None:
    """Without measures, each stage is a column with the chosen event columns."""
    done = cepheid("detect", "rising.yaml", "events.parquet", *OPTIONS, "--columns", "price")
    matches = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted((m["low"]["price"], m["high"]["price"]) for m in matches) == [(5.0, 12.0), (7.0, 11.0)]


def test_a_row_for_each_event(cepheid: Cepheid) -> None:
    """With --rows-per event, each event of a match has a row, and the number of matches is still that of matches."""
    done = cepheid("detect", "rising.yaml", "events.parquet", *OPTIONS, "--rows-per", "event", "--json")
    result = json.loads(done.stdout)
    rows = sorted((row["symbol"], row["position"], row["stage"], row["price"]) for row in result["rows"])
    assert rows == [("a", 1, "low", 5.0), ("a", 2, "high", 12.0), ("b", 1, "low", 7.0), ("b", 2, "high", 11.0)]
    assert result["match_count"] == 2
    done = cepheid("detect", "rising.yaml", "events.parquet", *OPTIONS, "--rows-per", "event", "--unmatched")
    assert [row["stage"] for row in map(json.loads, done.stdout.splitlines())] == ["low", "high"] * 2 + [None] * 2


def test_several_workers(cepheid: Cepheid) -> None:
    """--workers changes no row; what is no number of workers is refused."""
    one, two = (cepheid("detect", "rising.yaml", "events.csv", *OPTIONS, "--workers", n).stdout for n in ("1", "2"))
    assert one == two
    done = cepheid("detect", "rising.yaml", "events.csv", *OPTIONS, "--workers", "many")
    assert done.returncode == 2
    assert "--workers: a whole number from 1 to 256, or 'auto', is expected, got 'many'" in done.stderr


def test_result_for_machines(cepheid: Cepheid) -> None:
    """--json prints one object: the matches, or the file that contains them."""
    result = json.loads(cepheid("detect", "rising.yaml", "events.csv", *OPTIONS, "--json").stdout)
    assert (result["ok"], result["match_count"], len(result["matches"])) == (True, 2, 2)
    done = cepheid("detect", "rising.yaml", "events.csv", *OPTIONS, "--json", "--output", "m.jsonl")
    result = json.loads(done.stdout)
    assert (result["match_count"], result["output"], "matches" in result) == (2, "m.jsonl", False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--key", "symbl", "--time", "at"], "symbl"),
        (["--key", "symbol", "--time", "att"], "att"),
        ([*OPTIONS, "--columns", "prise"], "prise"),
        ([*OPTIONS, "--measure", "n=low.prise"], "prise"),
    ],
)
def test_unknown_columns(cepheid: Cepheid, arguments: list[str], message: str) -> None:
    """A column that the events do not have is named; the exit code says that events and pattern do not fit."""
    done = cepheid("detect", "rising.yaml", "events.csv", *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_unknown_column_in_a_condition(folder: Path, cepheid: Cepheid) -> None:
    """An unknown column in a condition is reported with its position in the pattern file."""
    text = (folder / "rising.yaml").read_text()
    (folder / "rising.yaml").write_text(text.replace("price < 10", "prise < 10"))
    done = cepheid("detect", "rising.yaml", "events.csv", *OPTIONS)
    assert done.returncode == 1
    assert "line 5, column 12" in done.stderr


def test_events_without_rows(folder: Path, cepheid: Cepheid) -> None:
    """A file without any events is accepted and gives no matches."""
    schema = pq.read_schema(folder / "events.parquet")
    pq.write_table(schema.empty_table(), folder / "none.parquet")
    done = cepheid("detect", "rising.yaml", "none.parquet", *OPTIONS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


NULLS = "symbol,at,price\na,2024-05-01T10:00:00,5\n,2024-05-01T10:00:00,5\na,,5\na,2024-05-01T10:01:00,12\n"


def test_dropped_events_are_reported(folder: Path, cepheid: Cepheid) -> None:
    """Events without key or time are dropped only on request; their number is then reported, also in a pipe."""
    (folder / "nulls.csv").write_text(NULLS)
    done = cepheid("detect", "rising.yaml", "nulls.csv", *OPTIONS)
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        "events that cannot be ordered: 1 with a NULL in the key (symbol) in row 2; 1 without a time (at) in row 3."
        in done.stderr
    )
    report = "dropped: 1 event without key and 1 event without time, of 4\n"
    done = cepheid("detect", "rising.yaml", "nulls.csv", *OPTIONS, "--nulls", "drop")
    assert (len(done.stdout.splitlines()), done.stderr) == (1, report)
    done = cepheid("detect", "rising.yaml", "nulls.csv", *OPTIONS, "--nulls", "drop", "--json")
    assert json.loads(done.stdout)["counts"] == COUNTS | {"events": 4, "null_keys": 1, "null_times": 1, "matches": 1}
    assert done.stderr == report


def test_warnings_are_one_line(folder: Path, process: Cepheid) -> None:
    """A warning is printed as its message, without the source line that raised it."""
    (folder / "ties.csv").write_text("symbol,at,price\na,2024-05-01T10:00:00,5\na,2024-05-01T10:00:00,6\n")
    done = process("detect", "rising.yaml", "ties.csv", *OPTIONS)
    ties, unheld = done.stderr.splitlines()
    assert unheld.startswith("warning: stage ")
    assert ties.startswith("warning: 2 events agree in key and time with another")


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_failures_on_spark_are_messages(folder: Path, cepheid: Cepheid) -> None:
    """Events that cannot be processed end with exit code 1 and the message alone, as in process."""
    (folder / "nulls.csv").write_text(NULLS)
    done = cepheid("detect", "rising.yaml", "nulls.csv", *OPTIONS, "--on", "spark")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert re.match("an event has no (key: 'symbol'|time: 'at') is NULL. Drop such events before", line)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_dropped_events_are_reported_on_spark(folder: Path, cepheid: Cepheid) -> None:
    """Dropped events are reported as in process."""
    (folder / "nulls.csv").write_text(NULLS)
    done = cepheid("detect", "rising.yaml", "nulls.csv", *OPTIONS, "--on", "spark", "--nulls", "drop")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 1)
    assert "dropped: 1 event without key and 1 event without time, of 4\n" in done.stderr


@pytest.mark.spark
def test_errors_of_events_are_distinguished(spark: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """Raised errors and operations that fail on a value are errors of events; other failures of Spark are raised
    unchanged. Spark writes none of them to the terminal as well.
    """
    from pyspark.errors import PySparkException

    from cepheid.errors import EventError
    from cepheid.hosts.spark.failures import event_failures

    for sql, message in (
        ("raise_error('an event has no key')", "an event has no key"),
        ("1 div (id - id)", "Division by zero"),
        ("cast(concat('x', id) AS int)", 'The value \'x0\' of the type "STRING" cannot be cast to "INT"'),
    ):
        with pytest.raises(EventError) as caught, event_failures():
            spark.range(1).selectExpr(sql).toArrow()
        assert str(caught.value).startswith(message)
        assert "\n" not in str(caught.value)
    with pytest.raises(PySparkException), event_failures():
        spark.range(1).selectExpr("nosuch(id)").toArrow()
    assert "QueryContextLogger" not in capfd.readouterr().err


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", ["none.parquet", "none.csv"])
def test_no_events_on_spark(folder: Path, cepheid: Cepheid, name: str) -> None:
    """If Spark has nothing to run, the counts are printed without waiting for them."""
    pq.write_table(pq.read_schema(folder / "events.parquet").empty_table(), folder / "none.parquet")
    (folder / "none.csv").write_text("symbol,at,price\n")
    (folder / "any.yaml").write_text("stages:\n- begin: a\n")
    done = cepheid("detect", "any.yaml", name, *OPTIONS, "--on", "spark", "--json")
    assert json.loads(done.stdout)["counts"] == COUNTS


def test_a_reader_that_closes_the_pipe(folder: Path) -> None:
    """`cepheid detect … | head -1` ends without a message, however many matches are left."""
    events = pq.read_table(folder / "events.parquet")
    times = events.column("at")
    copies = [events.set_column(1, "at", pc.add(times, timedelta(hours=hour))) for hour in range(1000)]
    pq.write_table(
        pa.concat_tables(copies), folder / "many.parquet"
    )  # some 500 kB of matches: more than a pipe can hold
    command = f"{sys.executable} -m cepheid detect rising.yaml many.parquet --key symbol --time at | head -1"
    done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False)
    assert (len(done.stdout.splitlines()), done.stderr) == (1, "")


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_spark_gives_the_same(cepheid: Cepheid) -> None:
    """The same command finds the same matches on Spark."""
    expected = sorted(cepheid("detect", "rising.yaml", "events.csv", *OPTIONS).stdout.splitlines())
    assert len(expected) == 2
    done = cepheid("detect", "rising.yaml", "events.csv", *OPTIONS, "--on", "spark")
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, expected), done.stderr


def test_input_is_not_overwritten(folder: Path, cepheid: Cepheid) -> None:
    """Matches cannot be written over the files of the events or the pattern."""
    before = (folder / "events.csv").read_bytes()
    done = cepheid("detect", "rising.yaml", "events.csv", *OPTIONS, "--output", "events.csv")
    assert done.returncode != 0
    assert "events.csv is one of the input files: choose another --output" in done.stderr
    assert (folder / "events.csv").read_bytes() == before


def test_as_of_accepts_iso_times(cepheid: Cepheid) -> None:
    """--as-of accepts fractions of a second and an offset, as in Python."""
    done = cepheid("detect", "rising.yaml", "events.csv", *OPTIONS, "--as-of", "2024-05-01T12:01:00.500+02:00")
    assert len(done.stdout.splitlines()) == 1
