"""`detect` finds the occurrences of the facts about the event algebra."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.algebra_case import conjunction, pattern, table
from tests.conformance.algebra_check import (
    algebra_failure,
    check_algebra,
    check_all_algebra,
    is_valid_recent,
    read_algebra,
)
from tests.conformance.check import Failed, NotSupported, Passed
from tests.conformance.run import main

FILE = Path(__file__).parent / "algebra" / "algebra.jsonl"
CASES = [*read_algebra(FILE)]


def case(**changes: Any) -> dict[str, Any]:
    """A case that passes."""
    events = [{"id": name, "type": name[0].upper(), "t": t, "attrs": {"n": t}} for name, t in (("a1", 1), ("b2", 2))]
    found = [[2, 1, ["a1", "b2"]]]
    lt = {"unrestricted": found, "recent_root": found}
    expr = ["seq", ["ev", "A"], ["ev", "B"]]
    return {"id": "given", "text": "(A ; B)", "expr": expr, "events": events, "expected": {"lt": lt}} | changes


@pytest.mark.parametrize("start", range(2))
def test_a_sample_of_the_facts(start: int) -> None:
    """Every third fact, divided over two tests; `make conformance` checks all."""
    results = [*check_all_algebra(CASES[3 * start :: 6], "process")]
    failures = [algebra_failure(case, result.got) for case, result in results if isinstance(result, Failed)]
    assert not failures, "\n".join(failures)
    assert not [case["id"] for case, result in results if isinstance(result, NotSupported)]


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_sample_on_spark() -> None:
    """Four facts of different kinds; `make conformance` checks all."""
    split: list[Exception] = []
    results = [*check_all_algebra([case for case in CASES if case["kind"] != "paper"][::60], "spark", split)]
    assert [result for _, result in results] == [Passed()] * 4
    assert not split


def test_a_failure_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints what is missing and what is not expected, and the counts."""
    file = tmp_path / "cases.jsonl"
    contexts = {"chronicle": [[2, 1, ["a1"]]]}
    wrong = case(expected={"lt": {"unrestricted": [], "recent_root": []}, "contexts": contexts})
    unheard = case(expr=["unheard_of", ["ev", "A"]])
    file.write_text("\n".join(map(json.dumps, [case(), wrong, unheard])))
    assert main([str(file)]) == 1
    assert capsys.readouterr().out == (
        "FAILED given\n"
        "  pattern:  (A ; B)\n"
        "  events:   a1:A@1, b2:B@2\n"
        '  got:      unrestricted: missing none; not expected [2, 1, ["a1", "b2"]]\n'
        'recent: missing none; not expected [2, 1, ["a1", "b2"]]\n'
        'chronicle: missing [2, 1, ["a1"]]; not expected [2, 1, ["a1", "b2"]]\n'
        "\n"
        "1 cases use what is not there yet: unheard_of 1\n"
        "1 passed, 1 failed\n"
    )


def test_a_crash_is_a_failure() -> None:
    """After a crash in one case, the run continues."""
    assert isinstance(check_algebra(case(events=[{"id": "a1"}])), Failed)
    assert check_algebra(case()) == Passed()


def test_valid_answers_of_the_recent_policy() -> None:
    """A valid answer has all ends and starts, each once, and only existing occurrences."""
    everything = [[2, 1, ["a", "b"]], [2, 1, ["a", "c"]], [3, 1, ["a", "d"]]]
    expected = [[2, 1, ["a", "b"]], [3, 1, ["a", "d"]]]
    assert is_valid_recent([everything[1], everything[2]], everything, expected)
    assert not is_valid_recent(everything, everything, expected)
    assert not is_valid_recent([everything[1], [3, 1, ["d"]]], everything, expected)


@pytest.mark.parametrize(
    ("atom", "sql"),
    [
        (
            ["=", ["attr", "v", "n"], ["attr", "w", "m"]],
            "((v.`number n` = w.`number m`) OR (v.`text n` = w.`text m`) OR (v.`truth n` = w.`truth m`))",
        ),
        (["!=", ["attr", "v", "n"], ["const", "it's"]], r"((v.`text n` != 'it\'s'))"),
        (["=", ["attr", "v", "n"], ["const", True]], "((v.`truth n` = TRUE))"),
        ([">", ["+", ["attr", "v", "n"], ["const", 2]], ["const", 1.5]], "(((v.`number n` + 2D) > 1.5D))"),
        (["<=", ["-", ["end", "w"], ["start", "w"]], ["const", 6]], "(((end(w) - start(w)) <= INTERVAL '6' SECOND))"),
        (["<", ["start", "v"], ["const", 6]], "((start(v) < TIMESTAMP '1970-01-01 00:00:06+00:00'))"),
        (["=", ["start", "v"], ["const", "x"]], "FALSE"),
        (["=", ["attr", "nowhere", "n"], ["const", 1]], "FALSE"),
    ],
)
def test_atoms_become_sql(atom: list[Any], sql: str) -> None:
    """A comparison of values of two kinds is false."""
    assert conjunction([atom], frozenset({"v", "w"})) == sql


def test_kinds_of_attributes() -> None:
    """An attribute becomes one column per kind, also if no event has it."""
    events = [{"id": str(t), "type": "A", "t": t, "attrs": {"n": value}} for t, value in enumerate((1, "x", True, 2.5))]
    filtered = ["filter", ["bind", "v", ["ev", "A"]], [["=", ["attr", "v", "m"], ["const", 1]]]]
    columns = table(case(events=events, expr=filtered)).to_pydict()
    assert columns["number n"] == [1.0, None, None, 2.5]
    assert columns["text n"] == [None, "x", None, None]
    assert columns["truth n"] == [None, None, True, None]
    assert columns["number m"] == [None] * 4


def test_restricted_types_and_taxonomies() -> None:
    """Restricted types are declared; a taxonomy contains all types of the expression."""
    types = {"P": {"base": "A", "var": "x", "filter": [["<", ["attr", "x", "n"], ["const", 2]]]}}
    translated = pattern(case(types=types, taxonomy={"A": ["T"]}, expr=["seq", ["ev", "P"], ["ev", "B"]]))
    assert translated.restricted[0].condition == "((x.`number n` < 2D))"
    assert translated.types is not None
    assert translated.types.types == ("A", "T", "B")
