"""`cepheid detect` with outputs, limits and processing order; messages use the words of the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cepheid.cli.failure import in_options

Cepheid = Callable[..., Any]
OPTIONS = ["--key", "symbol", "--time", "at"]
ORDERED = """\
stages:
  - begin: low
    where: price < 10
  - next: high
    where: price >= 10
"""
ANY = "stages:\n- begin: a\n- followed_by_any: b\n- followed_by: c\n  where: price > 100\nwithin: 1 hour\n"


def test_outputs(folder: Path, cepheid: Cepheid) -> None:
    """The requested outputs have the same columns, and are counted."""
    command = ["detect", "rising.yaml", "events.csv", *OPTIONS, "--outputs"]
    rows = [json.loads(line) for line in cepheid(*command, "matches, timeouts,late").stdout.splitlines()]
    assert [(row["kind"], row["symbol"]) for row in rows] == [("match", "a"), ("match", "b")]
    (folder / "any.yaml").write_text(ANY)
    done = cepheid("detect", "any.yaml", "events.csv", *OPTIONS, "--outputs", "timeouts", "--json")
    result = json.loads(done.stdout)
    assert {row["kind"] for row in result["rows"]} == {"timeout"}
    assert (result["match_count"], result["counts"]["timeouts"]) == (0, len(result["rows"]))


def test_counts_of_outputs_that_were_not_requested(cepheid: Cepheid) -> None:
    """Without timeouts among the outputs, the summary has no number of timeouts."""
    for outputs in ([], ["--outputs", "matches"]):
        done = cepheid("detect", "rising.yaml", "events.csv", *OPTIONS, *outputs, "--json")
        assert "timeouts" not in json.loads(done.stdout)["counts"]


def test_limits(folder: Path, cepheid: Cepheid) -> None:
    """Exceeding a limit is an error that names the options, or partial matches are dropped and the number is
    reported.
    """
    (folder / "any.yaml").write_text(ANY)
    command = ["detect", "any.yaml", "events.csv", *OPTIONS, "--max-partial-matches", "1"]
    done = cepheid(*command)
    assert done.returncode == 1
    assert "more than 1 partial matches are open for one key (--max-partial-matches)" in done.stderr
    assert "or let it drop the oldest with --on-limit drop" in done.stderr
    done = cepheid(*command, "--on-limit", "drop")
    assert (done.returncode, done.stdout) == (0, "")
    dropped, unheld = done.stderr.splitlines()
    assert dropped == "dropped: 8 partial matches over the limits"
    assert unheld.endswith(" held for no event")
    (folder / "each.yaml").write_text("stages:\n- begin: a\n- followed_by_any: b\n")
    done = cepheid("detect", "each.yaml", "events.csv", "--time", "at", "--max-matches-per-event", "1")
    assert (done.returncode, done.stdout) == (1, "")
    assert "(--max-matches-per-event)" in done.stderr


def test_processing_order(folder: Path, cepheid: Cepheid) -> None:
    """With --no-time, events count in their order, and matches have no times."""
    (folder / "ordered.yaml").write_text(ORDERED)
    done = cepheid("detect", "ordered.yaml", "events.csv", "--key", "symbol", "--no-time")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["symbol"], row["low"]["price"], row["match_start"]) for row in rows] == [
        ("a", 5.0, None),
        ("b", 7.0, None),
    ]
    (folder / "untimed.csv").write_text("price\n5\n12\n")
    for command in ("check", "explain"):
        done = cepheid(command, "ordered.yaml", "--events", "untimed.csv", "--no-time")
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["detect", "rising.yaml", "events.csv"], 2, "name the column of the event time, or give --no-time"),
        (["detect", "rising.yaml", "events.csv", "--time", "at", "--no-time"], 2, "it is given together with --time"),
        (
            ["detect", "rising.yaml", "events.csv", "--time", "at", "--start", "at"],
            2,
            "they belong together: give both",
        ),
        (
            ["detect", "rising.yaml", "events.csv", "--no-time", "--start", "at", "--end", "to"],
            2,
            "it is given together with --start and --end",
        ),
        (
            ["detect", "rising.yaml", "events.csv", "--time", "when", "--start", "at", "--end", "to"],
            2,
            "neither --start nor --end",
        ),
        (
            ["detect", "rising.yaml", "events.csv", *OPTIONS, "--outputs", "match"],
            2,
            "'match' is none of matches, time",
        ),
        (
            ["detect", "rising.yaml", "events.csv", *OPTIONS, "--max-partial-matches", "0"],
            2,
            "Invalid value for '--max-partial-matches': expected is at least 1",
        ),
        (
            ["detect", "rising.yaml", "events.csv", *OPTIONS, "--max-matches-per-event", str(2**63)],
            2,
            "expected is at most 9223372036854775807",
        ),
        (
            ["detect", "rising.yaml", "events.csv", *OPTIONS, "--max-matches-per-event", "many"],
            2,
            "Invalid value for '--max-matches-per-event': expected is a whole number",
        ),
        (
            ["detect", "rising.yaml", "events.csv", *OPTIONS, "--on-limit", "stop"],
            2,
            "'stop' is not one of 'raise', 'dr",
        ),
        (["check", "rising.yaml", "--events", "events.csv", "--no-time"], 1, "event times with --time, or take"),
        (
            ["detect", "rising.yaml", "events.csv", "--no-time", "--as-of", "2024-05-01"],
            2,
            "--as-of: without times there",
        ),
        (["detect", "rising.yaml", "events.csv", *OPTIONS, "--as-of", "soon"], 2, "--as-of: 'soon' is not a time"),
        (["detect", "rising.yaml", "events.csv", *OPTIONS, "--time-zone", "Mars"], 2, "--time-zone: 'Mars' is not kn"),
        (["detect", "rising.yaml", "events.csv", "--time", "att"], 1, "--time: no column named 'att'"),
        (["detect", "rising.yaml", "nulls.csv", *OPTIONS], 1, "Drop them before, or with --nulls drop, which"),
    ],
)
def test_messages_have_the_options(
    folder: Path, cepheid: Cepheid, arguments: list[str], code: int, message: str
) -> None:
    """A message says what to give on the command line, not what to call in Python."""
    (folder / "nulls.csv").write_text("symbol,at,price\na,,5\n,2024-05-01T10:00:00,5\n")
    done = cepheid(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in " ".join(done.stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    "message",
    [
        "no column named 'as_of'",
        "time = 3 is no condition",
        "the time: none",
        "a.time_zone",
        "$as_of",
        "division by zero in '(as_of / n > 1) AND (time=5)', at the event with note = 'as_of nulls=drop', time = 5",
        "division by zero in \"where nulls='drop' AND (max_partial_matches) > 0\\nAND time_zone = 'time=…'\"",
    ],
)
def test_other_words_stay(message: str) -> None:
    """Columns, SQL, events and prose that only look like an argument are not changed."""
    assert in_options(message) == message


def test_the_user_s_sql_stays(folder: Path, cepheid: Cepheid) -> None:
    """A failing condition is shown as the user wrote it, whatever its columns are named."""
    (folder / "named.csv").write_text("at,as_of,n,time\n2024-05-01T10:00:00,5,0,5\n")
    (folder / "named.yaml").write_text("stages:\n- begin: a\n  where: as_of / n > 1 AND time=5\n")
    done = cepheid("detect", "named.yaml", "named.csv", "--time", "at")
    assert (done.returncode, done.stderr) == (
        1,
        (
            "division by zero in 'as_of / n > 1 AND time=5' (stage 'a', where), "
            "at the event with at = 2024-05-01 10:00:00, as_of = 5, n = 0, time = 5\n"
        ),
    )


def test_a_file_named_as_an_option(folder: Path, cepheid: Cepheid) -> None:
    """The name of a file that equals an option is not changed."""
    (folder / "time").mkdir()
    done = cepheid("check", "time")
    assert (done.returncode, done.stderr) == (3, "time: is a directory\n")


def test_times_beyond_pythons(folder: Path, cepheid: Cepheid) -> None:
    """Matches at times outside of the range of Python's datetime are written like others."""
    far = pa.table({"at": pa.array([0, 1 << 60], pa.timestamp("us")), "n": [1, 2]})
    pq.write_table(far, folder / "far.parquet")
    (folder / "any.yaml").write_text("stages:\n- begin: a\n")
    rows = [
        json.loads(line) for line in cepheid("detect", "any.yaml", "far.parquet", "--time", "at").stdout.splitlines()
    ]
    assert [row["match_start"] for row in rows] == ["1970-01-01T00:00:00", "38504-08-17T21:30:06.846976"]
    assert rows[1]["a"] == {"at": "38504-08-17T21:30:06.846976", "n": 2}


def test_advice_to_say_what_becomes_of_the_old_version_names_the_option() -> None:
    """A refused deployment advises the option --old, not Python's argument."""
    message = "Say what becomes of what is open of it: old='drain' or old='drop'"
    assert in_options(message) == "Say what becomes of what is open of it: --old drain or --old drop"
