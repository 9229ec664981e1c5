"""`cepheid explain`: the pattern without events, the plan with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Cepheid = Callable[..., Any]


def test_pattern_without_events(cepheid: Cepheid) -> None:
    """Without events, the stages and their conditions are printed."""
    done = cepheid("explain", "rising.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Pattern rising\n\n  1. low: begins with\n     where price < 10\n")


def test_plan_with_events(cepheid: Cepheid) -> None:
    """With events, conditions are split into lifted columns and scripts, with types."""
    done = cepheid("explain", "rising.yaml", "--events", "events.parquet", "--key", "symbol", "--time", "at")
    assert (done.returncode, done.stderr) == (0, "")
    assert "lifted: bit 0, price < 10" in done.stdout
    assert "price  (double)" in done.stdout
    assert "low.price" in done.stdout
    assert "Key: symbol" in done.stdout


def test_plan_for_machines(cepheid: Cepheid) -> None:
    """--json contains the same text in an object."""
    text = cepheid("explain", "rising.yaml").stdout
    printed = json.loads(cepheid("explain", "rising.yaml", "--json").stdout)
    diagram = cepheid("explain", "rising.yaml", "--mermaid").stdout
    assert printed == {
        "ok": True,
        "exit_code": 0,
        "plan": text,
        "mermaid": diagram.removesuffix("\n"),
        "warnings": [],
    }


def test_warning_about_growth(folder: Path, cepheid: Cepheid) -> None:
    """If partial matches can grow without bound, explain names the stage and the remedy, also with events."""
    text = (folder / "rising.yaml").read_text()
    (folder / "rising.yaml").write_text(text.replace("within: 1 hour\n", "").replace("next:", "followed_by:"))
    warning = "stage 'high': partial matches wait for it until an event matches, however long that takes"
    assert f"\nWarning: {warning}" in cepheid("explain", "rising.yaml").stdout
    assert f"\nWarning: {warning}" in cepheid("explain", "rising.yaml", "--events", "events.csv").stdout
    (printed,) = json.loads(cepheid("explain", "rising.yaml", "--json").stdout)["warnings"]
    assert printed.startswith(warning)


def test_automaton_as_text_and_as_a_diagram(cepheid: Cepheid) -> None:
    """The automaton is printed with the target of each state; --mermaid prints only a state diagram."""
    assert "Automaton\n  low (start)\n    take [low] → high" in cepheid("explain", "rising.yaml").stdout
    diagram = cepheid("explain", "rising.yaml", "--mermaid").stdout
    assert diagram.startswith("stateDiagram-v2\n")
    assert "take (low)" in diagram


def test_a_pattern_with_problems(folder: Path, cepheid: Cepheid) -> None:
    """A wrong pattern cannot be explained: its problems are reported with their positions, as by check."""
    (folder / "open.yaml").write_text("stages:\n- begin: a\n- next: b\n  where: x > 'a\n  times: 2\n")
    done = cepheid("explain", "open.yaml")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == cepheid("check", "open.yaml").stderr
    assert done.stderr.startswith("a quote or comment is not closed (open.yaml, stage 'b', where, line 4, column 10)")
