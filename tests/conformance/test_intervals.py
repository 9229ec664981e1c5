"""Cepheid answers as the facts about interval patterns and out-of-order arrival require."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.algebra_check import check_all_algebra, read_algebra
from tests.conformance.check import Failed, Passed
from tests.conformance.interval_answers import wrong_fields
from tests.conformance.interval_check import check_all_intervals, check_intervals, interval_failure, read_intervals
from tests.conformance.interval_reference import answer
from tests.conformance.run import main

FILES = {name: Path(__file__).parent / "algebra" / f"{name}.jsonl" for name in ("intervals", "outoforder")}


def case(**changes: Any) -> dict[str, Any]:
    """A case that passes."""
    return {
        "id": "given",
        "text": "SEQ(A a, B b)",
        "pattern": {"mode": "SEQ", "pos": [["a", "A"], ["b", "B"]], "within": None},
        "events": [{"id": "a1", "type": "A", "s": 0, "e": 1}, {"id": "b1", "type": "B", "s": 2, "e": 3}],
        "expected": {"matches": [["a1", "b1"]]},
    } | changes


@pytest.mark.parametrize("name", FILES)
def test_a_sample_of_the_facts(name: str) -> None:
    """Every fourth fact; `make conformance` checks all."""
    results = [*check_all_intervals(read_intervals(FILES[name])[::4], "process")]
    failures = [interval_failure(case, result.got) for case, result in results if isinstance(result, Failed)]
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("name", FILES)
def test_the_reference_answers_a_sample(name: str) -> None:
    """The reference, with every tenth fact about intervals."""
    cases = [case for case in read_intervals(FILES[name]) if case.get("subject") != "algebra"]
    assert not [
        (case["id"], wrong) for case in cases[::10] if (wrong := [*wrong_fields(case["expected"], answer(case))])
    ]


def test_values_of_several_kinds_under_one_name() -> None:
    """A comparison of a number with a text is false, even with `!=`; numbers are compared with numbers."""
    events = [
        {"id": "a1", "type": "A", "s": 0, "e": 1, "attrs": {"u": "x"}},
        {"id": "a2", "type": "A", "s": 0, "e": 1, "attrs": {"u": 2}},
        {"id": "b1", "type": "B", "s": 2, "e": 3, "attrs": {"u": 2.5}},
        {"id": "b2", "type": "B", "s": 2, "e": 3},
    ]
    where = [["!=", ["attr", "a", "u"], ["attr", "b", "u"]]]
    mixed = case(events=events, pattern=case()["pattern"] | {"where": where}, expected={"matches": [["a2", "b1"]]})
    assert check_intervals(mixed) == Passed()


def test_a_failure_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints the actual answer, and the counts."""
    file = tmp_path / "cases.jsonl"
    file.write_text("\n".join(map(json.dumps, [case(), case(expected={"matches": []})])))
    assert main([str(file)]) == 1
    assert capsys.readouterr().out == (
        "FAILED given\n"
        "  pattern:  SEQ(A a, B b)\n"
        "  events:   a1:A[0,1], b1:B[2,3]\n"
        "  got:      matches: [['a1', 'b1']]\n"
        "\n"
        "1 passed, 1 failed\n"
    )


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_sample_on_spark() -> None:
    """Three facts from each file; `make conformance` checks all."""
    cases = [case for file in FILES.values() for case in read_intervals(file)[20::60][:3]]
    split: list[Exception] = []
    assert [result for _, result in check_all_intervals(cases, "spark", split)] == [Passed()] * 6
    assert not split


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_sample_on_a_stream() -> None:
    """One fact from each file and from the event algebra, in several micro-batches."""
    cases = [read_intervals(file)[20] for file in FILES.values()]
    split: list[Exception] = []
    assert [result for _, result in check_all_intervals(cases, "stream", split)] == [Passed()] * 2
    assert not split
    occurrences = [*read_algebra(FILES["intervals"].with_name("algebra.jsonl"))][40:41]
    assert [result for _, result in check_all_algebra(occurrences, "stream")] == [Passed()]
