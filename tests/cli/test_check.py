"""`cepheid check`: all problems with their places, and nothing where there are none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cepheid = Callable[..., Any]


@pytest.mark.parametrize("events", [[], ["--events", "events.csv"], ["--events", "events.parquet"]])
def test_a_good_pattern(cepheid: Cepheid, events: list[str]) -> None:
    """A pattern without problems ends with 0, and is quiet in a pipe."""
    done = cepheid("check", "rising.yaml", *events)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert json.loads(cepheid("check", "rising.yaml", *events, "--json").stdout) == {
        "ok": True,
        "exit_code": 0,
        "problems": [],
    }


def test_unknown_names_are_placed_in_the_file(folder: Path, cepheid: Cepheid) -> None:
    """Columns and stages that do not exist are all reported at their line and column of the pattern file."""
    text = (folder / "rising.yaml").read_text()
    (folder / "rising.yaml").write_text(text.replace("price < 10", "prise < 10").replace("low.price", "lo.price"))
    done = cepheid("check", "rising.yaml", "--events", "events.csv", "--json")
    assert done.returncode == 1
    problems = json.loads(done.stdout)["problems"]
    assert [(problem["line"], problem["column"]) for problem in problems] == [(5, 12), (8, 17)]
    assert "prise" in problems[0]["message"]


def test_sql_is_checked_without_events(folder: Path, cepheid: Cepheid) -> None:
    """What is no SQL is found without any events, at its place."""
    (folder / "p.yaml").write_text("stages:\n- begin: a\n  where: price > > 1\n")
    done = cepheid("check", "p.yaml")
    assert done.returncode == 1
    assert "line 3" in done.stderr
