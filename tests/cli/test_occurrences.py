"""Pattern files of the event algebra on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cepheid = Callable[..., Any]

RISE = """\
name: rise
taxonomy: {column: symbol}
types:
  Dear: "?p: a [p.price > 12]"
occurrence: >
  (?low: b; ?high: Dear)
  [low.price < high.price]
"""


@pytest.fixture(autouse=True)
def rise(folder: Path) -> Path:
    file = folder / "rise.yaml"
    file.write_text(RISE)
    return file


def test_detect(cepheid: Cepheid) -> None:
    """Occurrences are found as matches of any pattern file are."""
    done = cepheid("detect", "rise.yaml", "events.csv", "--time", "at", "--columns", "price", "--json")
    printed = json.loads(done.stdout)
    assert (done.returncode, printed["match_count"]) == (0, 3)
    assert [match["low"]["price"] for match in printed["matches"]] == [8, 7, 11]


def test_check(cepheid: Cepheid, rise: Path) -> None:
    """Problems are reported with their position in the file, with and without events."""
    assert cepheid("check", "rise.yaml", "--events", "events.csv").returncode == 0
    rise.write_text(RISE.replace("low.price", "lowest.price"))
    for events in ([], ["--events", "events.csv"]):
        done = cepheid("check", "rise.yaml", *events)
        assert done.returncode == 1
        assert "no variable is named 'lowest' (rise.yaml, condition, line 7, column 4)" in done.stderr
    rise.write_text(RISE.replace("p.price", "p.prize"))
    done = cepheid("check", "rise.yaml", "--events", "events.csv")
    assert "no column named 'prize' (rise.yaml, type 'Dear', line 4, column 19)" in done.stderr


def test_explain(cepheid: Cepheid) -> None:
    """The pattern is printed and can be drawn; with events, its operators are printed."""
    text = cepheid("explain", "rise.yaml").stdout
    assert text.startswith("Pattern 'rise': occurrences of\n  Dear = ?p:a[p.price > 12]\n  (?low:b; ?high:Dear)[")
    planned = cepheid("explain", "rise.yaml", "--events", "events.csv").stdout
    assert "   4  then of 1 and 3\n   5  where of 4\n" in planned
    drawn = cepheid("explain", "rise.yaml", "--events", "events.csv", "--mermaid").stdout
    assert drawn.startswith(
        'flowchart BT\n    n0["event #96;symbol#96; IN (\'b\')"]\n    n1["as low"]\n    n0 --> n1\n'
    )
    assert cepheid("explain", "rise.yaml", "--mermaid").stdout == (
        'flowchart BT\n    n0["event b"]\n    n1["as low"]\n    n0 --> n1\n    n2["event Dear"]\n    n3["as high"]\n'
        '    n2 --> n3\n    n4["then"]\n    n1 --> n4\n    n3 --> n4\n'
        '    n5["where low.price #lt; high.price"]\n    n4 --> n5\n'
    )


def test_outputs(cepheid: Cepheid) -> None:
    """Late events can be requested, of which a file has none; occurrences have no timeouts."""
    events = ("rise.yaml", "events.csv", "--time", "at")
    done = cepheid("detect", *events, "--outputs", "matches,late")
    assert [json.loads(line)["kind"] for line in done.stdout.splitlines()] == ["match"] * 3
    done = cepheid("detect", *events, "--outputs", "timeouts")
    assert (done.returncode, done.stderr) == (
        1,
        "--outputs: occurrences have no timeouts; ask for 'matches', 'inconsistent', 'late' or several\n",
    )
