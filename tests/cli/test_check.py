"""`cepheid check`: all problems with their positions, and no output if there are none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cepheid = Callable[..., Any]


@pytest.mark.parametrize("events", [[], ["--events", "events.csv"], ["--events", "events.parquet"]])
def test_a_good_pattern(cepheid: Cepheid, events: list[str]) -> None:
    """A pattern without problems ends with exit code 0, and prints nothing into a pipe."""
    done = cepheid("check", "rising.yaml", *events)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert json.loads(cepheid("check", "rising.yaml", *events, "--json").stdout) == {
        "ok": True,
        "exit_code": 0,
        "problems": [],
        "warnings": [],
    }


def test_partitions_that_do_not_divide_the_shards(cepheid: Cepheid) -> None:
    """For a stream, check suggests a number of partitions over which the shards can be spread evenly."""
    assert cepheid("check", "rising.yaml", "--partitions", "8").stdout == ""
    done = cepheid("check", "rising.yaml", "--partitions", "12", "--shards", "16")
    assert done.returncode == 0
    assert done.stdout.endswith("the busiest one decides how long a micro-batch takes. Set it to 8 or 16\n")


def test_unknown_names_are_placed_in_the_file(folder: Path, cepheid: Cepheid) -> None:
    """Unknown columns and stages are all reported, with line and column in the pattern file."""
    text = (folder / "rising.yaml").read_text()
    (folder / "rising.yaml").write_text(text.replace("price < 10", "prise < 10").replace("low.price", "lo.price"))
    done = cepheid("check", "rising.yaml", "--events", "events.csv", "--json")
    assert done.returncode == 1
    problems = json.loads(done.stdout)["problems"]
    assert [(problem["line"], problem["column"]) for problem in problems] == [(5, 12), (8, 17)]
    assert "prise" in problems[0]["message"]


def test_sql_is_checked_without_events(folder: Path, cepheid: Cepheid) -> None:
    """Invalid SQL is found without any events, with its position."""
    (folder / "p.yaml").write_text("stages:\n- begin: a\n  where: price > > 1\n")
    done = cepheid("check", "p.yaml")
    assert done.returncode == 1
    assert "line 3" in done.stderr


EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples(folder: Path, cepheid: Cepheid, example: Path) -> None:
    """Each example is a valid pattern for flights."""
    (folder / "flights.csv").write_text(
        "tailnum,departed_at,arr_delay,dep_delay,origin\nN1,2024-05-01T10:00:00,50.0,40.0,JFK\n"
    )
    done = cepheid("check", str(example), "--events", "flights.csv", "--key", "tailnum", "--time", "departed_at")
    assert (done.returncode, done.stderr) == (0, "")


def test_all_problems_are_reported_at_once(folder: Path, cepheid: Cepheid) -> None:
    """Neither a missing key column nor a missing time hides the problems of the pattern."""
    text = (folder / "rising.yaml").read_text()
    (folder / "rising.yaml").write_text(text.replace("price < 10", "prise < 10"))
    events = ["--events", "events.csv", "--key", "symbl"]
    problems = json.loads(cepheid("check", "rising.yaml", *events, "--json").stdout)["problems"]
    assert [(problem["message"].split(".")[0], problem["line"]) for problem in problems] == [
        ("--key: no column named 'symbl'", None),
        ("no column named 'prise'", 5),
    ]
    (folder / "rising.yaml").write_text(text.replace("price >= 10", "price > > 10"))
    (folder / "e.csv").write_text("price\n1\n")
    problems = json.loads(cepheid("check", "rising.yaml", "--events", "e.csv", "--json").stdout)["problems"]
    assert problems[0]["message"].startswith("no column of the events is a timestamp")
    assert problems[1]["line"] == 9


def test_events_are_read_as_by_detect(folder: Path, cepheid: Cepheid) -> None:
    """With the same options, check and explain use the same columns, types and engine as detect."""
    (folder / "na.csv").write_text("at,price,n\n2024-05-01T10:00:00,NA,1\n2024-05-01T10:01:00,5.5,2\n")
    options = ["--time", "at", "--null", "NA", "--sequence", "n", "--columns", "price", "--time-zone", "Europe/Berlin"]
    assert cepheid("detect", "rising.yaml", "na.csv", *options).returncode == 0
    for command in ("check", "explain"):
        done = cepheid(command, "rising.yaml", "--events", "na.csv", *options)
        assert (done.returncode, done.stderr) == (0, "")
        for wrong in (["--sequence", "m"], ["--columns", "m"]):
            assert cepheid(command, "rising.yaml", "--events", "na.csv", *options, *wrong).returncode == 1


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_engine_is_that_of_the_host(folder: Path, cepheid: Cepheid) -> None:
    """With --on spark, functions that only Spark has are accepted, and what Spark refuses is a problem."""
    (folder / "p.yaml").write_text("stages:\n- begin: a\n  where: soundex(symbol) = 'A000'\n")
    options = ["p.yaml", "--events", "events.parquet", "--time", "at"]
    assert "available on Spark" in cepheid("check", *options).stderr
    done = cepheid("check", *options, "--on", "spark")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_a_missing_event_time(folder: Path, cepheid: Cepheid) -> None:
    """Events without a timestamp column are refused; the message lists the existing columns."""
    (folder / "e.csv").write_text("price\n1\n")
    done = cepheid("check", "rising.yaml", "--events", "e.csv")
    assert done.returncode == 1
    assert "no column of the events is a timestamp: name the event time with --time, or give --no-time" in done.stderr
    assert "; the columns are ['price']" in done.stderr
