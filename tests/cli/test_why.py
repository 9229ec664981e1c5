"""`cepheid why`: what `why` says, as a text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cepheid = Callable[..., Any]
OPTIONS = ["--key", "symbol", "--time", "at"]


def test_text(cepheid: Cepheid) -> None:
    """Without --json the funnel is a text."""
    done = cepheid("why", "rising.yaml", "events.csv", *OPTIONS)
    assert (done.returncode, done.stderr) == (0, "")
    assert [" ".join(line.split()) for line in done.stdout.splitlines()[-2:]] == [
        "did not match 1 33.3%",
        "broken, after low 1 33.3%",
    ]


def test_json(cepheid: Cepheid) -> None:
    """--json prints the numbers as one object, with the options that detect has."""
    done = cepheid("why", "rising.yaml", "events.parquet", *OPTIONS, "--as-of", "2024-05-01T10:02:00", "--json")
    found = json.loads(done.stdout)
    assert (found["ok"], found["events"], found["starts"], found["matched"]) == (True, 3, 2, 1)
    assert found["stopped"] == [{"fate": "still open", "reached": "low", "by": None, "starts": 1}]


def test_the_time_is_required(cepheid: Cepheid) -> None:
    """Without --time and --no-time the message says so."""
    done = cepheid("why", "rising.yaml", "events.csv")
    assert done.returncode == 2
    assert "name the column of the event time, or give --no-time" in " ".join(done.stderr.replace("│", " ").split())


def test_trace(cepheid: Cepheid) -> None:
    """--trace shows one key step by step, as a text or as JSON."""
    done = cepheid("why", "rising.yaml", "events.csv", *OPTIONS, "--trace", "symbol=b")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1] == "    - → taken by low  (low: price < 10: true)"
    done = cepheid("why", "rising.yaml", "events.csv", *OPTIONS, "--trace", "symbol=b", "--json")
    assert json.loads(done.stdout)["steps"][0]["outcome"] == "taken by low"
    for key, message in (
        ("symbol=z", "--trace: no event has the key {'symbol': 'z'}\n"),
        ("symbl=b", "--trace: the key has symbol; repeat the option for each, as in --trace column=value\n"),
    ):
        assert cepheid("why", "rising.yaml", "events.csv", *OPTIONS, "--trace", key).stderr == message


@pytest.mark.filterwarnings("ignore:2 events agree")
def test_the_columns_that_order_ties(folder: Path, cepheid: Cepheid) -> None:
    """As for detect, --columns decides the order of tied events where no sequence does."""
    rows = ["symbol,at,price,note", "a,2026-01-01T00:00:00Z,1,", *(f"a,2026-01-02T00:00:00Z,{p}," for p in (25, 15))]
    (folder / "tied.csv").write_text("\n".join(rows))
    (folder / "direct.yaml").write_text(
        "stages:\n- {begin: low, where: price < 10}\n- {next: high, where: price > 20}\n"
    )
    for columns, matched in (([], 1), (["--columns", "price"], 0)):
        done = cepheid("why", "direct.yaml", "tied.csv", *OPTIONS, *columns, "--json")
        assert json.loads(done.stdout)["matched"] == matched


def test_why_is_for_stages(folder: Path, cepheid: Cepheid) -> None:
    """A pattern of another kind is refused before its times are asked for."""
    (folder / "overlap.yaml").write_text(
        "name: overlap\ntaxonomy: {column: kind}\ninterval: EVENT PAL(A a overlap B b)\n"
    )
    done = cepheid("why", "overlap.yaml", "events.csv")
    assert (done.returncode, done.stderr) == (
        1,
        "why explains patterns of stages; 'overlap' is a pattern of intervals\n",
    )
