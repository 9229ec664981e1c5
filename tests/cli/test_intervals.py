"""Pattern files of intervals on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Cepheid = Callable[..., Any]

CHAIN = """\
name: chain
taxonomy: {column: kind}
interval: >
  EVENT PAL((heat h overlap spin s) before alarm a)
  WHERE h.machine = s.machine
  WITHIN 2 hours
"""
EVENTS = """\
kind,begin,end,machine
heat,2024-05-01T10:00:00Z,2024-05-01T10:40:00Z,m1
spin,2024-05-01T10:30:00Z,2024-05-01T10:50:00Z,m1
alarm,2024-05-01T11:00:00Z,2024-05-01T11:02:00Z,m1
alarm,2024-05-01T11:00:00Z,2024-05-01T10:02:00Z,m1
"""
TIMES = ("--start", "begin", "--end", "end")


@pytest.fixture(autouse=True)
def chain(folder: Path) -> Path:
    (folder / "works.csv").write_text(EVENTS)
    file = folder / "chain.yaml"
    file.write_text(CHAIN)
    return file


def test_detect(cepheid: Cepheid) -> None:
    """Matches are found as for any pattern file; times in text files are read, and dropped events are reported."""
    arguments = ("detect", "chain.yaml", "works.csv", *TIMES, "--columns", "kind", "--nulls", "drop", "--json")
    done = cepheid(*arguments)
    printed = json.loads(done.stdout)
    (match,) = printed["matches"]
    assert (match["match_start"], match["a"]) == ("2024-05-01T10:00:00+00:00", {"kind": "alarm"})
    assert (printed["match_count"], printed["counts"]["reversed"]) == (1, 1)
    assert "dropped: 1 event that ends before it starts, of 4" in done.stderr


def test_rows_that_open_and_close_events(cepheid: Cepheid, folder: Path) -> None:
    """`--event-id` joins the two rows of an event; messages name the option."""
    (folder / "works.csv").write_text(
        "id,kind,begin,end,machine\n"
        "h,heat,2024-05-01T10:00:00Z,,m1\ns,spin,2024-05-01T10:30:00Z,2024-05-01T10:50:00Z,m1\n"
        "h,,,2024-05-01T10:40:00Z,\na,alarm,2024-05-01T11:00:00Z,2024-05-01T11:02:00Z,m1\n"
    )
    arguments = ("detect", "chain.yaml", "works.csv", *TIMES, "--json")
    (match,) = json.loads(cepheid(*arguments, "--event-id", "id").stdout)["matches"]
    assert (match["h"]["machine"], match["h"]["end"]) == ("m1", "2024-05-01T10:40:00+00:00")
    for command in (
        arguments,
        *((name, "chain.yaml", "--events", "works.csv", *TIMES) for name in ("check", "explain")),
    ):
        assert cepheid(*command, "--event-id", "id").returncode == 0
        wrong = cepheid(*command, "--event-id", "ids")
        assert (wrong.returncode, "--event-id: no column named 'ids'" in wrong.stderr + wrong.stdout) == (1, True)


def test_rows_that_revise_and_withdraw_events(cepheid: Cepheid, folder: Path) -> None:
    """`--changes` names the column that says what rows do; matches are those of the events that are left."""
    (folder / "works.csv").write_text(
        "id,kind,begin,end,machine,change\n"
        "h,heat,2024-05-01T10:00:00Z,2024-05-01T10:55:00Z,m1,insertion\n"
        "s,spin,2024-05-01T10:30:00Z,2024-05-01T10:50:00Z,m1,insertion\n"
        "a,alarm,2024-05-01T11:00:00Z,2024-05-01T11:02:00Z,m1,insertion\n"
        "b,alarm,2024-05-01T11:01:00Z,2024-05-01T11:02:00Z,m1,insertion\n"
        "h,,,2024-05-01T10:40:00Z,,insertion\nb,,,,,retraction\n"
    )
    files, options = ("works.csv", *TIMES), ("--event-id", "id", "--changes", "change")
    (match,) = json.loads(cepheid("detect", "chain.yaml", *files, *options, "--json").stdout)["matches"]
    assert (match["h"]["end"], match["a"]["id"]) == ("2024-05-01T10:40:00+00:00", "a")
    for name in ("check", "explain"):
        assert cepheid(name, "chain.yaml", "--events", *files, *options).returncode == 0
        wrong = cepheid(name, "chain.yaml", "--events", *files, *options[:2], "--changes", "changed")
        assert "--changes: no column named 'changed'. Did you mean 'change'" in wrong.stderr + wrong.stdout
    wrong = cepheid("detect", "chain.yaml", *files, "--changes", "change")
    assert wrong.stderr == (
        "--changes: rows change the event that has their id: name the column of ids with --event-id\n"
    )
    wrong = cepheid("detect", "chain.yaml", *files, "--event-id", "id", "--changes", "kind")
    assert wrong.stderr.startswith("row 1: the column 'kind' of changes has 'heat'. It may be 'insertion'")
    with (folder / "works.csv").open("a") as file:
        file.write("c,,,,,retraction\n")
    wrong = cepheid("detect", "chain.yaml", *files, *options)
    assert wrong.stderr.startswith("row 7 (id: 'c', begin: NULL, end: NULL) withdraws an event that is not there.")


def test_rows_with_wrong_ids_are_counted_from_one(cepheid: Cepheid, folder: Path) -> None:
    """Messages about ids name rows as readers of files count them."""
    (folder / "works.csv").write_text(
        "id,kind,begin,end,machine\n"
        "h,heat,2024-05-01T10:00:00Z,2024-05-01T10:40:00Z,m1\nh,spin,2024-05-01T10:30:00Z,2024-05-01T10:50:00Z,m1\n"
        "h,spin,2024-05-01T10:32:00Z,2024-05-01T10:50:00Z,m1\nh,,,2024-05-01T10:55:00Z,\n,alarm,2024-05-01T11:00:00Z,2024-05-01T11:02:00Z,m1\n"
    )
    done = cepheid("detect", "chain.yaml", "works.csv", *TIMES, "--event-id", "id")
    assert done.returncode == 1
    assert done.stderr == (
        "1 row has no id (id is NULL): row 5; 2 rows have the id of an event that is there already (id): row 2 ('h'), "
        "row 3 ('h'); 1 row has an end and no start, and no open event (id): row 4 ('h'). "
        "Drop such rows before, or with --nulls drop, which counts them\n"
    )


def test_wrong_arguments(cepheid: Cepheid) -> None:
    """Messages name wrong arguments by their option."""
    done = cepheid("detect", "chain.yaml", "works.csv", *TIMES, "--type", "kind")
    assert (done.returncode, done.stderr) == (
        1,
        "--type kind: the file says already that 'kind' holds the types; leave it out\n",
    )
    done = cepheid("detect", "chain.yaml", "works.csv", "--time", "begin", "--start", "begin")
    assert done.returncode == 2
    assert "Invalid value for --start, --end: they belong together: give both" in done.stderr
    done = cepheid("detect", "chain.yaml", "works.csv")
    assert "for an interval pattern give --start and --end" in " ".join(done.stderr.replace("│", " ").split())
    done = cepheid("detect", "rising.yaml", "events.csv", "--time", "at", "--start", "at", "--end", "at")
    assert done.stderr == "--start, --end: events of a Pattern have one time: name its column by --time\n"
    done = cepheid("check", "chain.yaml", "--parameter", "x=1")
    assert done.stderr == (
        "the parameter 'x' is not used: no condition, measure, length or count has $x (parameter 'x')\n"
        "Nothing in the pattern is a parameter: leave it out.\n"
    )


def test_check(cepheid: Cepheid, chain: Path) -> None:
    """Problems are reported with their position in the file, with and without events."""
    assert cepheid("check", "chain.yaml", "--events", "works.csv", *TIMES).returncode == 0
    chain.write_text(CHAIN.replace("s.machine", "spin.machine"))
    for events in ([], ["--events", "works.csv", *TIMES]):
        done = cepheid("check", "chain.yaml", *events)
        assert done.returncode == 1
        assert "no event has the variable 'spin' (chain.yaml, where, line 5, column 21)" in done.stderr
    chain.write_text(CHAIN.replace("s.machine", "s.machin"))
    assert cepheid("check", "chain.yaml").returncode == 0
    done = cepheid("check", "chain.yaml", "--events", "works.csv", *TIMES)
    assert "no column named 'machin' (chain.yaml, where, line 5, column 23)" in done.stderr


def test_explain(cepheid: Cepheid, chain: Path) -> None:
    """The pattern is printed. With events, the order of joins is, too, and can be drawn; without events drawing is
    refused.
    """
    text = cepheid("explain", "chain.yaml").stdout
    query = "Pattern 'chain': intervals of\n  EVENT PAL((heat h overlap spin s) before alarm a)\n"
    assert text.startswith(query)
    assert text.endswith("\nTypes: column 'kind'\n")
    planned = cepheid("explain", "chain.yaml", "--events", "works.csv", *TIMES).stdout
    assert planned.startswith(query)
    assert "\nJoins:\n  when h comes: h ⋈ s ⋈ a, about " in planned
    drawn = cepheid("explain", "chain.yaml", "--events", "works.csv", *TIMES, "--mermaid").stdout
    assert drawn.startswith('flowchart BT\n    v0_0["h comes"]\n')
    done = cepheid("explain", "chain.yaml", "--mermaid")
    assert (done.returncode, done.stdout) == (2, "")
    assert "name a file of them with --events" in " ".join(done.stderr.replace("│", " ").split())
    assert json.loads(cepheid("explain", "chain.yaml", "--json").stdout)["mermaid"] is None
    chain.write_text(CHAIN.replace("h.machine", "x.machine"))
    assert "no event has the variable 'x'" in cepheid("explain", "chain.yaml").stderr


def test_warnings_about_endless_input(cepheid: Cepheid, chain: Path) -> None:
    """State that would be stored for ever and matches that would never be certain cause a warning in check and explain,
    with and without events. It is not an error, since a table ends.
    """
    chain.write_text(CHAIN.replace("  WITHIN 2 hours\n", "  WITHOUT (stop s2 ORDER start(s2) > end(a))\n"))
    uncertain = "the negation of 's2': an event with any later start may still forbid a match, so that no "
    ways = "choose a scope that bounds them (gap, seq_between or during_span), or let the pattern emit in real time."
    warnings = [
        f"{uncertain}match is ever certain. Either {ways}",
        "without within an interval pattern stores all its events for ever. Add within.",
    ]
    for events in ([], ["--events", "works.csv", *TIMES]):
        lines = [f"Warning: {warning}" for warning in warnings]
        assert cepheid("check", "chain.yaml", *events).stdout.splitlines() == lines
        assert cepheid("explain", "chain.yaml", *events).stdout.splitlines()[-2:] == lines
        for command in ("check", "explain"):
            result = json.loads(cepheid(command, "chain.yaml", *events, "--json").stdout)
            assert (result["ok"], result["warnings"]) == (True, warnings)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_stream(cepheid: Cepheid, folder: Path) -> None:
    """Matches are printed as lines, with their kind."""
    (folder / "in").mkdir()
    later = "idle,2024-05-01T12:00:00Z,2024-05-01T12:00:00Z,m2\n"
    (folder / "in" / "works.csv").write_text(EVENTS.rpartition("alarm")[0] + later)
    schema = "kind STRING, begin TIMESTAMP, end TIMESTAMP, machine STRING"
    command = ["stream", "chain.yaml", "--from", f"files://{folder}/in", "--schema", schema, "--once", "--shards", "1"]
    done = cepheid(*command, *TIMES, "--time", "end", "--key", "machine", "--lateness", "0 seconds")
    assert done.returncode == 0, done.stderr
    (match,) = map(json.loads, done.stdout.splitlines())
    assert (match["kind"], match["pattern"], match["a"]["machine"]) == ("insertion", "chain", "m1")


def test_a_stream_needs_times(cepheid: Cepheid) -> None:
    """A stream needs a time column, or start and end columns."""
    done = cepheid("stream", "chain.yaml", "--from", "rate://5", "--lateness", "1 second")
    assert done.returncode == 2
    assert "Invalid value for --time: name the column of the event time" in done.stderr


@pytest.mark.spark
def test_rows_that_open_events_on_a_stream(cepheid: Cepheid, folder: Path, spark: SparkSession) -> None:
    """`cepheid stream` has `--event-id`, and `--open-for`, which needs it."""
    assert spark.getActiveSession() is not None
    (folder / "chain.yaml").write_text(CHAIN.replace("WITHIN 2 hours", "WITHIN 2 hours OF STARTS CONSISTENCY earliest"))
    (folder / "in").mkdir()
    rows = [
        ("h", "heat", "10:00", None),
        ("s", "spin", "10:30", None),
        ("h", None, None, "10:40"),
        ("s", None, None, "10:50"),
        ("a", "alarm", "11:00", None),
        ("a", None, None, "11:02"),
        ("z", "end", "20:00", "20:01"),
    ]
    for number, (id_, kind, *times) in enumerate(rows):
        begin, end = (None if time is None else f"2024-05-01T{time}:00Z" for time in times)
        line = {"id": id_, "kind": kind, "begin": begin, "end": end, "machine": "m1"}
        (folder / "in" / f"{number}.jsonl").write_text(f"{json.dumps(line)}\n")
    schema = "id STRING, kind STRING, begin TIMESTAMP, end TIMESTAMP, machine STRING"
    command = ["stream", "chain.yaml", "--from", f"files://{folder}/in", "--schema", schema, *TIMES, "--once"]
    command += ["--key", "machine", "--lateness", "1 minute", "--shards", "2", "--event-id", "id"]
    done = cepheid(*command, "--open-for", "3 hours")
    assert done.returncode == 0, done.stderr
    (match,) = map(json.loads, done.stdout.splitlines())
    assert (match["kind"], match["h"]["end"][:16], match["a"]["end"][:16]) == (
        "insertion",
        "2024-05-01T10:40",
        "2024-05-01T11:02",
    )
    wrong = cepheid(*command[:-2], "--open-for", "3 hours")
    assert (wrong.returncode, "without --event-id no row opens an event" in wrong.stderr) == (2, True)
