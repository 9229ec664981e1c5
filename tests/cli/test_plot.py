"""`cepheid detect --plot`: a picture of what was found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cepheid = Callable[..., Any]
ARGUMENTS = ["detect", "rising.yaml", "events.csv", "--key", "symbol", "--time", "at"]


def test_a_picture_beside_the_matches(folder: Path, cepheid: Cepheid) -> None:
    """The picture is written, and the matches are printed as without it."""
    plain = cepheid(*ARGUMENTS)
    drawn = cepheid(*ARGUMENTS, "--plot", "found.svg", "--plot-y", "price")
    assert (drawn.returncode, drawn.stdout, drawn.stderr) == (0, plain.stdout, "")
    svg = (folder / "found.svg").read_text("utf-8")
    assert all(f">{word}<" in svg for word in ("2 matches", "low", "high", "a", "b"))


def test_one_key(folder: Path, cepheid: Cepheid) -> None:
    """--plot-only draws one key: its stages are lanes."""
    cepheid(*ARGUMENTS, "--plot", "found.svg", "--plot-only", "symbol=b")
    svg = (folder / "found.svg").read_text("utf-8")
    assert all(f">{word}<" in svg for word in ("b: 1 match", "low", "high", "in no match"))


def test_many_keys_are_an_overview(folder: Path, cepheid: Cepheid) -> None:
    """The matches of many keys are drawn as an overview."""
    rows = [f"k{n},2026-03-02T{n % 24:02}:0{m}:00,{price}" for n in range(40) for m, price in ((0, 5), (1, 12))]
    (folder / "events.csv").write_text("\n".join(["symbol,at,price", *rows]), "utf-8")
    assert cepheid(*ARGUMENTS, "--plot", "found.svg").returncode == 0
    assert ">How long they are<" in (folder / "found.svg").read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--plot", "found.gif"], 2, "a picture is written as .html, .png, .svg; 'found.gif' is none of these"),
        (["--plot", "no/found.svg"], 3, "the folder no does not exist: make it first, or choose another --plot"),
        (["--plot-y", "price"], 2, "give --plot FILE, too"),
        (["--plot", "f.svg", "--plot-only", "b"], 2, "'b' is not COLUMN=VALUE, as in symbol=IBM"),
        (["--plot", "f.svg", "--plot-y", "prise"], 1, "no column named 'prise'"),
        (["--plot", "f.svg", "--columns", "price"], 1, "their events have no column 'at'"),
    ],
)
def test_what_is_refused(cepheid: Cepheid, options: list[str], code: int, message: str) -> None:
    done = cepheid(*ARGUMENTS, *options)
    assert (done.returncode, message in " ".join(done.stderr.replace("│", " ").split())) == (code, True), done.stderr


def test_a_picture_that_fails_loses_no_matches(folder: Path, cepheid: Cepheid) -> None:
    """The matches are written and printed before the picture is drawn."""
    plain = cepheid(*ARGUMENTS, "--columns", "price")
    failed = cepheid(*ARGUMENTS, "--columns", "price", "--plot", "f.svg")
    assert (failed.returncode, failed.stdout) == (1, plain.stdout)
    assert cepheid(*ARGUMENTS, "--columns", "price", "--plot", "f.svg", "--output", "found.csv").returncode == 1
    assert (folder / "found.csv").exists()
    as_json = cepheid(*ARGUMENTS, "--columns", "price", "--plot", "f.svg", "--json")
    assert json.loads(as_json.stdout)["ok"] is False


def test_columns_of_the_picture_are_checked_first(folder: Path, cepheid: Cepheid) -> None:
    """A misspelt column is reported before the work is done."""
    for option in ("--plot-y", "--plot-lanes"):
        failed = cepheid(*ARGUMENTS, "--plot", "f.svg", option, "prise", "--output", "found.csv")
        assert (failed.returncode, "no column named 'prise'" in failed.stderr) == (1, True), failed.stderr
    assert not (folder / "found.csv").exists()


def test_a_key_of_numbers(folder: Path, cepheid: Cepheid) -> None:
    """--plot-only takes the text of a number."""
    text = (folder / "events.csv").read_text("utf-8").replace('"a"', "1").replace('"b"', "2")
    (folder / "events.csv").write_text(text, "utf-8")
    done = cepheid(*ARGUMENTS, "--plot", "found.svg", "--plot-only", "symbol=2")
    assert (done.returncode, ">2: 1 match<" in (folder / "found.svg").read_text("utf-8")) == (0, True), done.stderr
