"""`cepheid stream`: with files, with a real Kafka and with Spark's rate source."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset
import pytest

from cepheid.cli.stream_ends import source_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Cepheid = Callable[..., Any]

COLUMNS = ["--schema", "symbol STRING, at TIMESTAMP, price DOUBLE"]
OPTIONS = ["--time", "at", "--key", "symbol", "--lateness", "0 seconds", "--shards", "2"]
RISES = [("a", 5.0, 12.0), ("b", 7.0, 11.0)]
MEASURES = ["--measure", "low=low.price", "--measure", "high=high.price"]


@pytest.mark.spark
def test_from_files_to_files(folder: Path, cepheid: Cepheid, process: Cepheid, spark: SparkSession) -> None:
    """All available files are read once. The same command in another process continues from its checkpoint, where an
    event without a time is reported; rows are written once.
    """
    assert spark.getActiveSession() is not None
    (folder / "in").mkdir()
    (folder / "events.jsonl").rename(folder / "in" / "first.jsonl")
    command = ["stream", "rising.yaml", "--from", f"files://{folder}/in", *COLUMNS, *OPTIONS, *MEASURES, "--once"]
    command += ["--to", f"files://{folder}/out", "--checkpoint", f"{folder}/state"]
    command += ["--standbys", "1", "--budget", "5 seconds"]
    done = cepheid(*command)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    lines = done.stderr.splitlines()
    assert [*(folder / "state" / "copies" / "batches").iterdir()]  # which keys have copies: none
    assert re.match(r"batch 0: 6 events, \d+ a second, 0 matches, .*, watermark none yet$", lines[-3])
    assert re.match(r"batch 1: 0 events, 0 a second, 2 matches, .* watermark 2024-05-01T10:05:00", lines[-2])
    assert re.match(r"6 events, 2 matches, 0 timeouts, 0 late events \(\d+\.\d s\)", lines[-1])
    (folder / "in" / "second.jsonl").write_text('{"symbol": "a", "at": null, "price": 3}\n')
    done = process(*command)
    assert done.returncode == 1, done.stderr
    assert " ERROR " not in done.stderr  # Spark would print it with its stack trace
    assert done.stderr.splitlines()[-1].startswith(
        "an event has no time: 'at' is NULL. Drop such events before, or with --"
    )
    rows = pyarrow.dataset.dataset(folder / "out").to_table().to_pylist()
    assert sorted((row["symbol"], row["low"], row["high"]) for row in rows) == RISES


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_times_of_arrival(folder: Path, cepheid: Cepheid) -> None:
    """With --arrival the events of a micro-batch have its time, in the order of --sequence, and none is late."""
    (folder / "in").mkdir()
    (folder / "events.jsonl").rename(folder / "in" / "first.jsonl")
    command = ["stream", "rising.yaml", "--from", f"files://{folder}/in", *COLUMNS, *MEASURES, "--once"]
    command += ["--measure", "at=high.arrived_at", "--key", "symbol", "--shards", "2", "--arrival"]
    refused = cepheid(*command)
    assert "sequence: with --arrival all events of a micro-batch have its time" in " ".join(refused.stderr.split())
    done = cepheid(*command, "--sequence", "at")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted((row["symbol"], row["low"], row["high"]) for row in rows) == RISES
    assert all(row["at"] == row["match_end"] > "2026" for row in rows)


@pytest.mark.long
@pytest.mark.spark
def test_from_topic_to_topic(folder: Path, cepheid: Cepheid, spark: SparkSession, broker: str) -> None:
    """JSON messages are read, and the matches are written with their ids as keys; other messages are dropped and
    counted.
    """
    with (folder / "events.jsonl").open("a") as events:
        events.write("\nnonsense")
    lines = spark.read.text(str(folder / "events.jsonl"))
    lines.write.format("kafka").options(**{"kafka.bootstrap.servers": broker, "topic": "prices"}).save()
    command = ["stream", "rising.yaml", *COLUMNS, *OPTIONS, *MEASURES, "--once", "--checkpoint", f"{folder}/state"]
    command += ["--nulls", "drop"]
    done = cepheid(*command, "--from", f"kafka://{broker}/prices", "--to", f"kafka://{broker}/rises")
    assert done.returncode == 0, done.stderr
    assert re.search(r"6 events, 2 matches, 0 timeouts, 0 late events, 1 malformed \(", done.stderr), done.stderr
    found = spark.read.format("kafka").options(**{"kafka.bootstrap.servers": broker, "subscribe": "rises"}).load()
    rows = {row.key.decode(): json.loads(row.value) for row in found.collect()}
    assert all(key == row["match_id"] for key, row in rows.items())
    assert sorted((row["symbol"], row["low"], row["high"]) for row in rows.values()) == RISES
    starts = sorted(row["match_start"] for row in rows.values())
    assert starts == ["2024-05-01T10:00:00.000000Z", "2024-05-01T10:03:00.000000Z"]


@pytest.mark.long
@pytest.mark.spark
def test_rebalancing(folder: Path, cepheid: Cepheid, spark: SparkSession, broker: str) -> None:
    """A stream into a topic is rebalanced while it is stopped, and continues with what was open: each match is written
    once. A dry run says the same and changes nothing.
    """
    lines = (folder / "events.jsonl").read_text().splitlines()
    (folder / "in").mkdir()
    (folder / "in" / "first.jsonl").write_text("\n".join([*lines[:1], *lines[2:4]]))
    command = ["stream", "rising.yaml", "--from", f"files://{folder}/in", *COLUMNS, *OPTIONS, *MEASURES, "--once"]
    command += ["--to", f"kafka://{broker}/rebalanced", "--checkpoint", f"{folder}/state"]
    rebalance = ["stream", "rebalance", f"{folder}/state", "--shards", "4", "--partitions", "2"]
    done = cepheid(*rebalance)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (3, f"there is no folder {folder}/state")
    done = cepheid(*command)
    assert done.returncode == 0, done.stderr
    planned = cepheid(*rebalance, "--dry-run")
    done = cepheid(*rebalance)
    assert (done.returncode, done.stdout) == (0, planned.stdout), done.stderr
    assert f"\nrising: 2 → 4 shards, 2 open\nthe checkpoint as it was: {folder}/state.before-" in done.stdout
    (folder / "in" / "second.jsonl").write_text("\n".join([lines[1].replace("10:01", "10:04"), *lines[4:]]))
    done = cepheid(*command, "--shards", "4")
    assert done.returncode == 0, done.stderr
    found = spark.read.format("kafka").options(**{"kafka.bootstrap.servers": broker, "subscribe": "rebalanced"}).load()
    rows = [json.loads(row.value) for row in found.collect()]
    assert sorted((row["symbol"], row["low"], row["high"]) for row in rows) == RISES


@pytest.mark.spark
def test_a_folder_of_patterns(folder: Path, cepheid: Cepheid, spark: SparkSession) -> None:
    """The command continues with the patterns that it had, deploys new ones, and reports refused ones."""
    assert spark.getActiveSession() is not None
    for name, file in (("in", "events.jsonl"), ("patterns", "rising.yaml")):
        (folder / name).mkdir()
        (folder / file).rename(folder / name / file)
    command = ["stream", "--patterns", "patterns", "--from", f"files://{folder}/in", *COLUMNS, *OPTIONS, "--once"]
    command += ["--to", f"files://{folder}/out", "--checkpoint", f"{folder}/state"]
    done = cepheid(*command)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "patterns from batch 0: deployed rising, version 1\n" in done.stderr
    assert re.match(r"6 events, 2 matches, 0 timeouts, 0 late events \(", done.stderr.splitlines()[-1])

    (folder / "patterns" / "cheap.yaml").write_text("name: cheap\nstages:\n  - begin: one\n    where: price < 10\n")
    later = ("a", "11:00", 4.0), ("a", "11:01", 14.0), ("z", "12:00", 99.0)
    lines = (f'{{"symbol": "{key}", "at": "2024-05-01T{at}:00Z", "price": {price}}}' for key, at, price in later)
    (folder / "in" / "second.jsonl").write_text("\n".join(lines))
    done = cepheid(*command)
    assert re.search(r"patterns from batch \d+: deployed cheap, version 1\n", done.stderr), done.stderr
    rising = folder / "patterns" / "rising.yaml"
    rising.write_text(rising.read_text().replace("10", "11"))
    done = cepheid(*command)
    assert done.returncode == 0, done.stderr
    assert (
        "the patterns in the folder are refused, and the former ones go on:\npattern 'rising' was deployed with "
        "version '1' before: give it another one (patterns/rising.yaml, pattern 'rising')\n"
    ) in done.stderr
    rows = pyarrow.dataset.dataset(folder / "out").to_table().to_pylist()
    found = sorted((row["pattern"], row["version"], row["symbol"], row["match_start"].hour) for row in rows)
    assert found == [
        ("cheap", "1", "a", 11),
        *(("rising", "1", key, hour) for key, hour in (("a", 10), ("a", 11), ("b", 10))),
    ]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("everyone", [False, True], ids=["Ctrl-C", "SIGTERM to all of its processes"])
def test_until_it_is_stopped(folder: Path, *, everyone: bool) -> None:
    """While the command runs, rows are printed as lines and a terminal shows figures and the newest rows; Ctrl-C ends
    it normally, and so does a SIGTERM, also if Spark's Java process gets it, too.
    """
    (folder / "even.yaml").write_text("name: even\nstages:\n  - begin: one\n    where: value % 2 = 0\n")
    options = ["--from", "rate://5", "--time", "timestamp", "--lateness", "0 seconds", "--measure", "value=one.value"]
    command = [sys.executable, "-m", "cepheid", "stream", "even.yaml", *options]
    terminal, end = pty.openpty()
    with (folder / "rows").open("wb") as rows:
        running = subprocess.Popen(command, cwd=folder, stdout=rows, stderr=end, start_new_session=True)
    os.close(end)
    try:
        shown = _drawn(terminal, until='{"match_id":')
        if everyone:
            os.killpg(running.pid, signal.SIGTERM)
        else:
            running.send_signal(signal.SIGINT)
        shown += _drawn(terminal, until=None)
        assert running.wait(timeout=60) == 0, shown
    finally:
        running.kill()
        os.close(terminal)
    assert ("while stopping: Spark" in shown) == everyone
    assert "fault in Cepheid" not in shown  # threads of PySpark may print that they have lost Spark's process
    lines = (folder / "rows").read_text().splitlines()
    assert [json.loads(line)["value"] for line in lines] == [*range(0, 2 * len(lines), 2)]
    assert re.search(r"throughput +\d+ events a second", shown), shown
    assert re.search(r"open partial matches +0", shown), shown
    assert re.search(r"watermark +20\d\d-", shown), shown
    assert re.search(r"\d+ events, \d+ matches, 0 timeouts, 0 late events \(", shown), shown


def _drawn(terminal: int, until: str | None) -> str:
    """What the terminal shows up to `until`, or everything; within three minutes."""
    end = time.monotonic() + 180
    drawn = ""
    while until is None or until not in drawn:
        assert time.monotonic() < end, drawn
        if select.select([terminal], [], [], 1)[0]:
            try:
                drawn += os.read(terminal, 4096).decode(errors="replace")
            except OSError:  # no process writes to the terminal any more
                break
    return drawn


@pytest.mark.spark
def test_the_trigger(spark: SparkSession, folder: Path) -> None:
    """--every is the interval of the query's trigger; without it there is none."""
    from cepheid.cli.stream_ends import sink_of
    from cepheid.cli.stream_run import Ends
    from cepheid.hosts.spark.stream.copies.trigger import trigger_interval

    events = spark.readStream.format("rate").load()
    for every, seconds in (("2 seconds", 2), (None, None)):
        ends = Ends(events, sink_of("-"), None, once=False, every=every)
        writer = ends.writer(events, lambda rows: None, newest=False)  # noqa: ARG005 nothing is shown
        query = writer.option("checkpointLocation", str(folder / f"state of {every}")).start()
        try:
            interval = trigger_interval(spark, str(query.id))
        finally:
            query.stop()
        assert interval == (None if seconds is None else timedelta(seconds=seconds))


def test_the_port_of_kafka() -> None:
    """The default port is 9092."""
    assert source_of("kafka://one,two:19092,[::1],[::1]:1/topic").place == "one:9092,two:19092,[::1]:9092,[::1]:1"


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        (["--from", "rate://1", "--standbys", "2"], 2, "--checkpoint: name a folder, beside whose logs it is stored"),
        (["--from", "rate://1", "--budget", "5 s"], 2, "--budget: without --standbys no key gets a copy: leave it out"),
        (
            ["--from", "rate://1", "--standbys", "2", "--checkpoint", "state", "--budget", "0 s"],
            2,
            "--budget: a length of time must be positive, got '0 s'",
        ),
        (["--from", "rate://1", "--every", "0 s"], 2, "--every: a length of time must be positive, got '0 s'"),
        (["--from", "files://in", "--once", "--every", "1 s"], 2, "--every: with --once nothing is waited for: leave"),
        (["--from", "in"], 2, "--from: 'in' is none of kafka://host:port/topic, files://folder or rate://rows-per-second"),
        (["--from", "kafka://localhost:9092"], 2, "--from: 'kafka://localhost:9092' is none of"),
        (["--from", "rate://fast"], 2, "--from: 'rate://fast' is none of"),
        (["--from", "-"], 2, "--from: '-' is none of"),
        (["--from", "files://in", "--to", "rate://1"], 2, "files://folder or -, which is standard output"),
        (
            ["--from", "files://in", "--to", "files://out?format=csv", "--checkpoint", "state"],
            2,
            "--to: format is parquet or json: CSV has no nested columns",
        ),
        (["--from", "files://in", "--to", "files://out"], 2, "so that a restart continues where files://out ends"),
        (["--from", "rate://1", "--once"], 2, "--once: rate:// never ends: leave it out"),
        (["--from", "rate://1", "--schema", "a INT"], 2, "--schema: the columns of rate:// are timestamp and value"),
        (["--from", "files://nowhere"], 3, "there is no folder nowhere: a stream reads the files that are added"),
        (["--from", "files://empty"], 2, "files://empty?format=parquet, json or csv"),
        (["--from", "files://empty?format=xml"], 2, "format 'xml' is none of parquet, json, csv"),
        (["--from", "files://in"], 2, "--schema: name the events' columns and types, as in 'user STRING, at "),
        (["--from", "files://empty?format=parquet"], 2, "--schema: name the events' columns and types"),
        (["--from", "kafka://x/y", "--jars", "nowhere"], 3, "--jars nowhere: this is neither a jar nor a folder"),
        (["--from", "kafka://x/y"], 4, "kafka:// needs Spark's connector for Kafka, whose jars are not part of "),
        (["--from", "kafka://x/y"], 4, "copies them into the environment; or name them, or their folder, with --jars"),
        (["--from", "kafka://127.0.0.1:1/y", "--jars", "jars"], 4, "no Kafka broker answers at 127.0.0.1:1 ("),
    ],
)  # fmt: skip
def test_problems_are_reported_before_spark_starts(
    folder: Path, cepheid: Cepheid, monkeypatch: pytest.MonkeyPatch, *, given: list[str], code: int, message: str
) -> None:
    """Each message names the option, or says where to find what is missing."""
    monkeypatch.setattr("cepheid.hosts.spark.kafka.JARS", folder / "none")
    for name in ("in", "empty", "jars"):
        (folder / name).mkdir()
    (folder / "in" / "a.jsonl").write_text("{}")
    (folder / "jars" / "a.jar").touch()
    done = cepheid("stream", "rising.yaml", *given, "--time", "at", "--lateness", "1 hour")
    assert done.returncode == code
    assert message in " ".join(re.sub(r"[│╭╮╰╯─]", " ", done.stderr).split()), done.stderr


def test_an_invalid_lateness(cepheid: Cepheid) -> None:
    """The message comes before Spark starts, and names the option."""
    done = cepheid("stream", "rising.yaml", "--from", "rate://1", "--time", "timestamp", "--lateness", "2 minuts")
    assert done.returncode == 2
    assert "not a length of time: '2 minuts'" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--time", "at"], "--lateness: say how late an event of the stream may come, as '2 minutes'"),
        (["--arrival", "--time", "at"], "--arrival: it is given together with columns of times: choose one"),
        (["--arrival", "--lateness", "1 hour"], "--lateness: with --arrival no event is late: leave it out"),
    ],
)
def test_times_and_lateness(cepheid: Cepheid, given: list[str], message: str) -> None:
    """Each message names the option; files have no times of arrival."""
    done = cepheid("stream", "rising.yaml", "--from", "rate://1", *given)
    assert done.returncode == 2
    assert message in " ".join(re.sub(r"[│╭╮╰╯─]", " ", done.stderr).split()), done.stderr
    done = cepheid("detect", "rising.yaml", "events.jsonl", "--arrival")
    assert done.returncode == 2
    assert "--arrival: files have no times of arrival" in " ".join(re.sub(r"[│╭╮╰╯─]", " ", done.stderr).split())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "PATTERN: give a pattern file, or a folder of them with --patterns"),
        (["rising.yaml", "--patterns", "."], "PATTERN: give a pattern file, or a folder of them with --patterns"),
        (["--patterns", "nowhere"], "--patterns: there is no folder nowhere"),
        (["--patterns", "."], "name a folder, so that the stream with other patterns continues where - ends"),
        (["--patterns", ".", "--event-id", "id"], "--event-id: with --patterns no row opens an event, as the patterns"),
        (["--patterns", ".", "--standbys", "1"], "--standbys: with --patterns keys have no copies, as the patterns"),
        (["--patterns", ".", "--measure", "n=1"], "--measure: rows have the columns of several patterns, which have"),
        (["--patterns", ".", "--type", "kind"], "--type: with --patterns each file names the column of types itself"),
    ],
)  # fmt: skip
def test_options_for_folders(cepheid: Cepheid, given: list[str], message: str) -> None:
    """Each message names the option."""
    done = cepheid("stream", *given, "--from", "rate://1", "--time", "timestamp", "--lateness", "1 hour")
    assert done.returncode == 2
    assert message in " ".join(re.sub(r"[│╭╮╰╯─]", " ", done.stderr).split()), done.stderr
