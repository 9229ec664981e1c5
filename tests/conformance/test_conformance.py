"""Cepheid answers as FlinkCEP does, as far as its patterns go."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.conformance.case import read_case, read_cases
from tests.conformance.check import Failed, NotThere, Passed, check, in_process, spark_batch
from tests.conformance.condition import parse, to_sql
from tests.conformance.run import failure_text, main
from tests.conformance.translate import BEFORE, EPOCH, FAR, Unsupported, translate

FILES = sorted((Path(__file__).parent / "flinkcep").glob("*.jsonl"))
NOT_THERE = {
    "SKIP_TO_FIRST",
    "SKIP_TO_LAST",
    "SKIP_TO_NEXT",
    "allowCombinations",
    "comparator (columns that order ties)",
    "greedy",
    "group",
    "notFollowedBy",
    "notNext",
    "timesOrMore",
    "until",
    "within between events",
}


def line(**changes: Any) -> dict[str, Any]:
    """A case that passes: `a` directly followed by `b`, keyless, without an operator."""
    stages = [
        {"name": "a", "contiguity": "begin", "where": "kind == 'a'"},
        {"name": "b", "contiguity": "next", "where": "kind == 'b'"},
    ]
    events = [{"id": i, "ts": 5 * i, "kind": kind} for i, kind in enumerate("aab")]
    return {
        "name": "given",
        "pattern": {"stages": stages},
        "events": events,
        "expected": [{"a": [1], "b": [2]}],
    } | changes


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_answers_are_those_of_flinkcep(file: Path) -> None:
    """Every case that can be asked has the same matches, or is refused where FlinkCEP refuses it."""
    results = [(case, check(case, in_process)) for case in read_cases(file)]
    failures = [failure_text(case, result.got) for case, result in results if isinstance(result, Failed)]
    assert not failures, "\n".join(failures)


def test_what_is_not_there_yet() -> None:
    """The features that cases wait for are these and no others, so that a gap that closes is noticed."""
    gaps: Counter[str] = Counter()
    for case in (case for file in FILES for case in read_cases(file)):
        try:
            translate(case)
        except Unsupported as gap:
            gaps[gap.feature] += 1
        except ValueError:
            pass  # refused, as the test above says
    assert set(gaps) == NOT_THERE


def test_a_failure_is_shown_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command shows pattern, events, expected and got, counts, and says by its exit code that one failed."""
    file = tmp_path / "cases.jsonl"
    wrong = line(name="wrong", expected=[{"a": [0], "b": [2]}])
    waiting = line(pattern={"stages": [{"contiguity": "begin", "group": {"stages": []}}]})
    file.write_text("\n".join(map(json.dumps, [line(), wrong, waiting])))
    assert main([str(file)]) == 1
    assert capsys.readouterr().out == (
        "FAILED wrong\n"
        "  pattern:  begin('a').where(\"kind == 'a'\").next('b').where(\"kind == 'b'\")\n"
        "  events:   0@0 kind=a, 1@5 kind=a, 2@10 kind=b\n"
        "  expected: {a: 0, b: 2}\n"
        "  got:      {a: 1, b: 2}\n"
        "            missing: {a: 0, b: 2}\n"
        "            not expected: {a: 1, b: 2}\n"
        "\n"
        "1 cases use what is not there yet: group 1\n"
        "1 passed, 1 failed\n"
    )


def test_nothing_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 0 where all cases pass."""
    file = tmp_path / "cases.jsonl"
    file.write_text(json.dumps(line()))
    assert main([str(file)]) == 0
    assert capsys.readouterr().out == "1 passed, 0 failed\n"


def test_matches_count_as_often_as_they_are_there() -> None:
    """A match that is expected twice and comes once is missing once."""
    twice = check(read_case(line(expected=[{"a": [1], "b": [2]}] * 2)), in_process)
    assert twice == Failed("{a: 1, b: 2}\nmissing: {a: 1, b: 2}")


def test_a_pattern_that_should_be_refused() -> None:
    """A pattern that FlinkCEP refuses and Cepheid takes is a failure, unless it is listed as a difference."""
    refused = {"phase": "build", "exception": "MalformedPatternException", "message": "No such pattern."}
    assert check(read_case(line(rejected=refused)), in_process) == Failed("accepted, with {a: 1, b: 2}")
    listed = refused | {"message": "Optional already applied!"}
    assert check(read_case(line(rejected=listed)), in_process) == Passed()


def test_a_case_that_should_fail() -> None:
    """A case in which FlinkCEP fails while it runs, and Cepheid does not, is a failure."""
    error = {"exception": "FlinkRuntimeException", "message": "Could not skip.", "partial_expected": []}
    assert check(read_case(line(error=error)), in_process) == Failed("no failure, but {a: 1, b: 2}")


def test_events_out_of_order() -> None:
    """Events that go into the automaton out of the order of time cannot be asked yet."""
    events = [{"id": 0, "ts": 5, "kind": "a"}, {"id": 1, "ts": 4, "kind": "b"}]
    waiting = NotThere("events out of the order of time, without an operator")
    assert check(read_case(line(events=events)), in_process) == waiting


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_spark_is_asked_the_same() -> None:
    """With and without a key, Spark's answer is compared as that of this process is."""
    events = [event | {"user": i % 2} for i, event in enumerate(line()["events"])]
    keyed = line(mode="operator", keyBy="user", events=events, expected=[{"a": [0], "b": [2]}])
    assert check(read_case(keyed), spark_batch) == Passed()
    wrong = check(read_case(line(expected=[])), spark_batch)
    assert wrong == Failed("{a: 1, b: 2}\nnot expected: {a: 1, b: 2}")


@pytest.mark.parametrize(("call", "feature"), [("times", "window of times"), ("oneOrMore", "window of oneOrMore")])
def test_windows_of_quantifiers(call: str, feature: str) -> None:
    """The window of a quantifier is not taken for anything else."""
    quantifier = {call: [1, 2] if call == "times" else True, "window": 3}
    stage = {"name": "a", "contiguity": "begin", "quantifier": quantifier}
    assert check(read_case(line(pattern={"stages": [stage]})), in_process) == NotThere(feature)


def test_time_stands_where_the_case_leaves_it() -> None:
    """At advance_to or the last item; with the operator at the last watermark, or after everything."""

    def milliseconds(**changes: Any) -> float:
        return (translate(read_case(line(**changes))).as_of - EPOCH).total_seconds() * 1000

    late = [{"watermark": 3}, *line()["events"]]
    assert milliseconds() == 10
    assert milliseconds(advance_to=17) == 17
    assert milliseconds(mode="operator", events=late, final_watermark=False) == 3
    assert translate(read_case(line(mode="operator"))).as_of == FAR
    assert translate(read_case(line(mode="operator", final_watermark=False))).as_of == BEFORE


def test_events_become_a_table() -> None:
    """Late events are left out; a field that no event has is a column of NULLs, of text where it is used as one."""
    stages = [{"name": "a", "contiguity": "begin", "where": "missing > 1 || startsWith(note, 'x')"}]
    case = line(pattern={"stages": stages}, mode="operator", expected=[], expected_late=[0, 2])
    table = translate(read_case(case)).events
    assert table.drop_columns("event_time").to_pylist() == [
        {"id": 1, "ts": 5.0, "kind": "a", "missing": None, "note": None}
    ]
    assert table.schema.field("missing").type == pa.float64()
    assert table.schema.field("note").type == pa.string()


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("price > 3", "coalesce(`price` > 3.0D, FALSE)"),
        ("a == 1 || b == 2 && c != 3", "((`a` <=> 1.0D) OR ((`b` <=> 2.0D) AND (NOT (`c` <=> 3.0D))))"),
        ("! a == null", "(NOT (`a` IS NULL))"),
        ("not (null != a)", "(NOT (`a` IS NOT NULL))"),
        ("1 - 2 - -x * 3 <= abs(y) % 2", "coalesce(((1.0D - 2.0D) - ((-`x`) * 3.0D)) <= (abs(`y`) % 2.0D), FALSE)"),
        ("sum(s.p) + p < 5", "coalesce((coalesce(sum(`s`.`p`), 0D) + `p`) < 5.0D, FALSE)"),
        ("count(`a b`) >= s.p", "coalesce(count(`a b`) >= last(`s`.`p`), FALSE)"),
        ("startsWith(n, 'a') and true", "(coalesce(startswith(`n`, 'a'), FALSE) AND TRUE)"),
        ("n == 'it\\s'", r"(`n` <=> 'it\\s')"),
        ("flag", "coalesce(`flag`, FALSE)"),
        ("order == 1.5e3", "(`order` <=> 1500.0D)"),
    ],
)
def test_conditions_become_sql(text: str, sql: str) -> None:
    """Precedence as in the cases' language; nothing is left unknown."""
    assert to_sql(parse(text)) == sql


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a == ", "'the end' is not expected there, in 'a == '"),
        ("(a", "'the end' is not expected there, in '(a'"),
        ("a b", "'b' is not expected there, in 'a b'"),
        ("f(a)", "'f' is no function, in 'f(a)'"),
        ("a ? b", "'? b' is no token, in 'a ? b'"),
    ],
)
def test_what_is_no_condition(text: str, message: str) -> None:
    """A text that cannot be read is refused."""
    with pytest.raises(ValueError, match=re.escape(message)):
        parse(text)
