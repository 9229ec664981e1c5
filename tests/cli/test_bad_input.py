"""Wrong patterns of intervals and occurrences get the same message as text, in Python, in a file and from commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cepheid import (
    IntervalMatcher,
    IntervalPattern,
    Matcher,
    OccurrencePattern,
    PatternError,
    SchemaError,
    detect,
    event,
)
from cepheid.cli.files import read_events
from cepheid.intervals import interval_pattern

Cepheid = Callable[..., Any]
TIMES = ("--start", "begin", "--end", "end")
INTERVALS: dict[str, tuple[Callable[[], IntervalPattern], str]] = {
    "EVENT PAL(heat a) RELATE a before x": (
        lambda: IntervalPattern.pal(a="heat").relate("a", "before", "x"),
        "no event has the variable 'x'",
    ),
    "EVENT PAL(heat a, spin b) ORDER start(a) < start(b), end(b) < start(a)": (
        lambda: IntervalPattern.pal(a="heat", b="spin").ordered("start(a) < start(b), end(b) < start(a)"),
        "these cannot hold together: ",
    ),
    "EVENT PAL(heat a before[0, 0, 0, 0, 0] (spin b before alarm c))": (
        lambda: IntervalPattern.pal(a="heat", b="spin", c="alarm").nested("a before[0, 0, 0, 0, 0] (b before c)"),
        "the right part of before[…] is not one event but b, c: it cannot be counted",
    ),
    "EVENT PAL(heat a nearby spin b)": (
        lambda: IntervalPattern.pal(a="heat", b="spin").nested("a nearby b"),
        "no relation is named 'nearby'",
    ),
    "EVENT PAL(heat a) WHERE a.age > 1": (
        lambda: IntervalPattern.pal(a="heat").where("a.age > 1"),
        "no column named 'age'",
    ),
    "EVENT PAL(heat a) WHERE b.kind = 'x'": (
        lambda: IntervalPattern.pal(a="heat").where("b.kind = 'x'"),
        "no event has the variable 'b'",
    ),
}
OCCURRENCES: dict[str, tuple[Callable[[], OccurrencePattern], str]] = {
    "?a:heat[a.age > 1]": (
        lambda: OccurrencePattern.of(event("heat").named("a").where("a.age > 1")),
        "no column named 'age'",
    ),
    "(?a:heat; spin)[b.kind = 'x']": (
        lambda: OccurrencePattern.of((event("heat").named("a") >> event("spin")).where("b.kind = 'x'")),
        "no variable is named 'b'",
    ),
}


@pytest.fixture
def works(folder: Path) -> pa.Table:
    """Events with a start and an end, also as works.parquet."""
    rows = ["heat,2024-05-01T10:00:00Z,2024-05-01T10:40:00Z", "spin,2024-05-01T10:30:00Z,2024-05-01T10:31:00Z"]
    (folder / "works.csv").write_text("\n".join(["kind,begin,end", *rows]))
    events = read_events([folder / "works.csv"], times=["begin", "end"])
    pq.write_table(events, folder / "works.parquet")
    return events


def first_problem(make: Callable[[], object]) -> str:
    """The message of the first problem, without its position."""
    with pytest.raises(PatternError) as raised:
        make()
    return raised.value.problems[0].message.split(". ")[0]


def assert_commands_report(cepheid: Cepheid, message: str, *times: str) -> None:
    """Each command reports the message with the position in the file, and ends with the exit code for problems."""
    for command in (
        ("check", "bad.yaml", "--events", "works.parquet"),
        ("explain", "bad.yaml", "--events", "works.parquet"),
        ("detect", "bad.yaml", "works.parquet"),
    ):
        done = cepheid(*command, *times)
        assert (done.returncode, done.stdout) == (1, ""), done
        assert message in done.stderr, done.stderr
        assert "(bad.yaml, " in done.stderr, done.stderr


@pytest.mark.parametrize("query", INTERVALS)
def test_intervals(folder: Path, cepheid: Cepheid, works: pa.Table, query: str) -> None:
    """Every way to give the query reports the problem with the same message."""
    in_python, message = INTERVALS[query]
    times: dict[str, Any] = {"time": ("begin", "end")}
    assert first_problem(lambda: detect(works, interval_pattern(query).taxonomy("kind"), **times)).startswith(message)
    assert first_problem(lambda: detect(works, in_python().taxonomy("kind"), **times)).startswith(message)
    (folder / "bad.yaml").write_text(f"taxonomy: {{column: kind}}\ninterval: {json.dumps(query)}\n")
    assert_commands_report(cepheid, message, *TIMES)


@pytest.mark.parametrize("text", OCCURRENCES)
def test_occurrences(folder: Path, cepheid: Cepheid, works: pa.Table, text: str) -> None:
    """Every way to give the expression reports the problem with the same message."""
    in_python, message = OCCURRENCES[text]
    assert first_problem(lambda: detect(works, OccurrencePattern.of(text).taxonomy("kind"), time="begin")).startswith(
        message
    )
    assert first_problem(lambda: detect(works, in_python().taxonomy("kind"), time="begin")).startswith(message)
    (folder / "bad.yaml").write_text(f"taxonomy: {{column: kind}}\noccurrence: {json.dumps(text)}\n")
    assert_commands_report(cepheid, message, "--time", "begin")


def test_unknown_policy(folder: Path, cepheid: Cepheid) -> None:
    """The message for an unknown policy names the known ones; the expression itself has no policy."""
    with pytest.raises(PatternError, match="policy: 'last' is not known; allowed are 'unrestricted', 'recent', 'snoop"):
        OccurrencePattern.of("A").policy("last")
    (folder / "bad.yaml").write_text("taxonomy: {column: kind}\npolicy: last\noccurrence: A\n")
    done = cepheid("check", "bad.yaml")
    assert done.returncode == 1
    assert "'policy' must be unrestricted, recent, snoop_recent, chronicle, continuous or cumulative" in done.stderr
    assert "line 2" in done.stderr


def test_events(folder: Path, cepheid: Cepheid, works: pa.Table) -> None:
    """Events without an end and events that end before they start are an error by default, or dropped and counted."""
    (folder / "good.yaml").write_text("taxonomy: {column: kind}\ninterval: EVENT PAL(heat a)\n")
    done = cepheid("detect", "good.yaml", "works.parquet", "--start", "begin")
    assert done.returncode == 2
    assert "Invalid value for --start, --end: they belong together: give both" in done.stderr
    done = cepheid("detect", "good.yaml", "works.parquet", "--start", "begin", "--end", "ends")
    assert (done.returncode, done.stderr) == (1, "--end: no column named 'ends'. Did you mean 'end'?\n")
    turned = works.rename_columns(["kind", "end", "begin"])
    pq.write_table(turned, folder / "turned.parquet")
    done = cepheid("detect", "good.yaml", "turned.parquet", *TIMES)
    assert done.returncode == 1
    assert "2 that end before they start ('end' is before 'begin')" in done.stderr
    assert "are the columns of start and end swapped?" in done.stderr
    done = cepheid("detect", "good.yaml", "turned.parquet", *TIMES, "--nulls", "drop")
    assert (done.returncode, done.stdout) == (0, "")
    assert "dropped: 2 events that end before they start" in done.stderr


def test_negative_delays(works: pa.Table) -> None:
    """A lateness cannot be negative."""
    pattern = interval_pattern("EVENT PAL(heat a)").taxonomy("kind")
    with pytest.raises(SchemaError, match="lateness: "):
        IntervalMatcher(pattern, works, time=("begin", "end"), lateness="-1 seconds")
    with pytest.raises(SchemaError, match="lateness: "):
        Matcher(OccurrencePattern.of("heat").taxonomy("kind"), works, time="begin", lateness="-1 seconds")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["interval", "--start", "kind", "--end", "end"], "--start: 'kind' is of type STRING; event time is a"),
        (["interval", "--start", "begins", "--end", "end"], "--start: no column named 'begins'. Did you mean 'begin'?"),
        (["interval", "--no-time"], "--no-time: name the columns in which events start and end by --start and --end\n"),
        (["interval", "--time", "begin"], "--time: name the columns in which events start and end by"),
        (["interval", *TIMES, "--max-partial-matches", "1"], "--max-partial-matches: intervals have no such limit"),
        (["occurrence", "--no-time"], "--no-time: occurrences have a start and an end, so event times are needed"),
        (["occurrence", *TIMES], "--start, --end: events of an OccurrencePattern have one time: name its column by"),
        (["occurrence", "--time", "began"], "--time: no column named 'began'. Did you mean 'begin'?"),
    ],
)
def test_options_in_messages(folder: Path, cepheid: Cepheid, works: pa.Table, command: list[str], message: str) -> None:
    """A message names the option that was typed, not the argument in Python."""
    assert works.num_rows == 2
    file, *options = command
    (folder / "interval.yaml").write_text("taxonomy: {column: kind}\ninterval: EVENT PAL(heat a)\n")
    (folder / "occurrence.yaml").write_text("taxonomy: {column: kind}\noccurrence: heat\n")
    done = cepheid("detect", f"{file}.yaml", "works.parquet", *options)
    assert done.returncode == 1
    assert done.stderr.startswith(message)
    done = cepheid("detect", f"{file}.yaml", "works.parquet", "--json", *options)
    assert json.loads(done.stdout)["problems"][0]["message"].startswith(message.strip())


def test_a_type_column_without_subtype(folder: Path, cepheid: Cepheid) -> None:
    """--type is refused for stages without a subtype; with a subtype it names the column of types."""
    (folder / "typed.yaml").write_text("stages:\n  - begin: a\n    subtype: b\n")
    for command in (("detect", "rising.yaml", "events.parquet", "--time", "at"), ("check", "rising.yaml")):
        done = cepheid(*command, "--type", "symbol")
        assert done.returncode == 1
        assert done.stderr == ("--type symbol: no stage asks for a type, as subtype does; leave it out\n")
    done = cepheid("detect", "typed.yaml", "events.parquet", "--time", "at", "--type", "symbol")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 3), done
