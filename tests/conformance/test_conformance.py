"""Cepheid answers as FlinkCEP does, as far as FlinkCEP's patterns go."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.conformance.case import read_case, read_cases
from tests.conformance.check import (
    Failed,
    Host,
    NotSupported,
    Passed,
    Result,
    check,
    check_all,
    checked_in_groups,
    in_process,
    spark_batch,
    spark_stream,
)
from tests.conformance.condition import parse, to_sql
from tests.conformance.reference import reference
from tests.conformance.run import failure_text, main, split_text
from tests.conformance.translate import BEFORE, EPOCH, FAR, translate

from cepheid import Pattern, Skip

MILLISECONDS_3 = timedelta(milliseconds=3)
FILES = sorted((Path(__file__).parent / "flinkcep").glob("*.jsonl"))
DAY = datetime.now(UTC).toordinal()
"""Decides which third of the random cases the matcher is asked."""
RANDOM = [file for file in FILES if file.stem.startswith("random")]


def line(**changes: Any) -> dict[str, Any]:
    """A case that passes: `a` directly followed by `b`, without a key and without an operator."""
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


@pytest.mark.parametrize(
    ("file", "host", "every"),
    [
        *(pytest.param(file, reference, 1, id=f"{file.stem}-reference") for file in FILES),
        # The reference has all cases, and the kernel equals it; `make conformance` asks the matcher all, too.
        *(pytest.param(file, in_process, 3 if file in RANDOM else 1, id=f"{file.stem}-in_process") for file in FILES),
    ],
)
def test_answers_are_those_of_flinkcep(file: Path, host: Host, every: int) -> None:
    """Every case, or every third random one, gives the same matches and timeouts at the same events, or is refused if
    FlinkCEP refuses it. Which third it is changes from day to day; the message of a failure has it.
    """
    results = [*check_all(islice(read_cases(file), DAY % every, None, every), host)]
    failures = [failure_text(case, result.got) for case, result in results if isinstance(result, Failed)]
    assert not failures, "\n".join([*failures, f"These are the cases of DAY = {DAY}"])
    assert not [case.name for case, result in results if isinstance(result, NotSupported)]


def test_a_failure_is_shown_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints pattern, events, expected and actual answer and the counts, and its exit code says that one
    failed.
    """
    file = tmp_path / "cases.jsonl"
    wrong = line(name="wrong", expected=[{"a": [0], "b": [2]}])
    waiting = line(pattern={"stages": [{"name": "a", "contiguity": "begin", "calls": [["unheardOf"]]}]})
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
        "1 cases use what is not there yet: unheardOf 1\n"
        "1 passed, 1 failed\n"
    )


def test_nothing_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 0 where all cases pass."""
    file = tmp_path / "cases.jsonl"
    file.write_text(json.dumps(line()))
    assert main([str(file)]) == 0
    assert capsys.readouterr().out == "1 passed, 0 failed\n"


def test_repeated_matches_are_counted() -> None:
    """A match that is expected twice and found once is reported as missing once."""
    twice = check(read_case(line(expected=[{"a": [1], "b": [2]}] * 2)), in_process)
    assert twice == Failed("{a: 1, b: 2}\nmissing: {a: 1, b: 2}")


def test_a_pattern_that_should_be_refused() -> None:
    """If FlinkCEP refuses a pattern that Cepheid accepts, the case fails, unless the difference is listed."""
    refused = {"phase": "build", "exception": "MalformedPatternException", "message": "No such pattern."}
    assert check(read_case(line(rejected=refused)), in_process) == Failed("accepted, with {a: 1, b: 2}")
    listed = refused | {"message": "Optional already applied!"}
    assert check(read_case(line(rejected=listed)), in_process) == Passed()


def test_a_stage_in_a_group_can_be_skipped_to() -> None:
    """FlinkCEP's message for such a stage is that for a missing stage, which both refuse."""
    message = "The pattern name specified in AfterMatchSkipStrategy can not be found in the given Pattern"
    refused = {"phase": "compile", "exception": "MalformedPatternException", "message": message}
    group = [{"contiguity": "begin", "group": line()["pattern"]}]

    def checked(stage: str) -> object:
        pattern = {"stages": group, "skip": {"strategy": "SKIP_TO_LAST", "stage": stage}}
        return check(read_case(line(pattern=pattern, rejected=refused)), reference)

    assert checked("b") == checked("nowhere") == Passed()
    nothing_to_refuse = {"stages": line()["pattern"]["stages"]}
    assert isinstance(check(read_case(line(pattern=nothing_to_refuse, rejected=refused)), reference), Failed)


def test_a_case_that_should_fail() -> None:
    """If FlinkCEP fails at run time and Cepheid does not, the case fails."""
    error = {"exception": "FlinkRuntimeException", "message": "Could not skip.", "partial_expected": []}
    assert check(read_case(line(error=error)), in_process) == Failed("no failure, but {a: 1, b: 2}")


def test_events_out_of_order() -> None:
    """Without an operator, FlinkCEP's automaton gets events in their listed order; Cepheid's hosts sort them."""
    events = [{"id": 0, "ts": 5, "kind": "a"}, {"id": 1, "ts": 4, "kind": "b"}]
    case = read_case(line(events=events, expected=[{"a": [0], "b": [1]}], expected_at=[1]))
    assert check(case, reference) == Passed()
    assert check(case, in_process) == NotSupported("events out of the order of time, without an operator")


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_sample_on_spark() -> None:
    """Two cases from each file give the same matches and timeouts; `make conformance` checks all."""
    assert not failures(2, spark_batch)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_a_sample_on_streams() -> None:
    """One case from every second file, in micro-batches; `make conformance` checks all."""
    assert not failures(1, spark_stream, FILES[::2])


def failures(count: int, host: Host, files: Sequence[Path] = FILES) -> str:
    """The texts of the failed cases, among this number of cases from each file."""
    sample = []
    for file in files:
        cases = [*read_cases(file)]
        sample += cases[:: len(cases) // count][:count]
    split: list[Exception] = []
    results = [*check_all(sample, host, split)]
    assert not split
    assert sum(isinstance(result, Passed) for _, result in results) >= len(sample) // 2
    return "\n".join(failure_text(case, result.got) for case, result in results if isinstance(result, Failed))


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.filterwarnings("ignore:no key")
def test_spark_answers_are_compared() -> None:
    """With and without a key, alone and in one query, Spark's answer is compared in the same way as that in process."""
    events = [event | {"user": i % 2} for i, event in enumerate(line()["events"])]
    keyed = line(mode="operator", keyBy="user", events=events, expected=[{"a": [0], "b": [2]}])
    assert check(read_case(keyed), spark_batch) == Passed()
    together = check_all([read_case(line()), read_case(line(expected=[]))], spark_batch)
    assert [result for _, result in together] == [Passed(), Failed("{a: 1, b: 2}\nnot expected: {a: 1, b: 2}")]


def test_groups_that_are_split() -> None:
    """If a query with several cases fails, each case is asked alone, and the command prints the number of such
    groups.
    """

    def together(cases: Sequence[int]) -> list[Result]:
        if 3 in cases:
            raise ValueError("3 is refused")
        return [Passed() for _ in cases]

    def alone(case: int) -> Result:
        return Failed("refused") if case == 3 else Passed()

    split: list[Exception] = []
    found = dict(checked_in_groups([[0, 1], [2, 3, 4], [5]], together, alone, split))
    assert found == {0: Passed(), 1: Passed(), 2: Passed(), 3: Failed("refused"), 4: Passed(), 5: Passed()}
    assert split_text(split) == "1 groups were asked case by case, the first because of ValueError: 3 is refused"


@pytest.mark.parametrize(
    ("quantifier", "calls"),
    [
        ({"oneOrMore": True, "window": 3}, lambda a: a.one_or_more(window=MILLISECONDS_3)),
        ({"times": [2, 2], "window": 3}, lambda a: a.times(2, window=MILLISECONDS_3)),
        ({"timesOrMore": 2, "greedy": True}, lambda a: a.times_or_more(2).greedy()),
        ({"times": [0, 2], "allowCombinations": True}, lambda a: a.times(1, 2).optional().allow_combinations()),
    ],
)
def test_quantifiers(quantifier: dict[str, Any], calls: Callable[[Pattern], Pattern]) -> None:
    """Each call has a counterpart of the same meaning; a loop's window is not another window."""
    stage = {"name": "a", "contiguity": "begin", "quantifier": quantifier}
    assert translate(read_case(line(pattern={"stages": [stage]}))).pattern == calls(Pattern.begin("a"))


def test_groups() -> None:
    """`within` on an inner stage of a group counts for the whole pattern, except on the last; a group has no skip
    strategy.
    """
    inner = [{"name": "a", "contiguity": "begin", "within": 3}, {"name": "b", "contiguity": "notNext", "within": 2}]
    group = {"stages": inner, "skip": {"strategy": "SKIP_TO_NEXT"}}
    stages = [
        {"contiguity": "begin", "group": group, "quantifier": {"times": [2, 2]}, "until": "x", "within": 5},
        {"name": "c", "contiguity": "followedBy", "withinPrevious": 4},
    ]
    skip = {"strategy": "SKIP_TO_LAST", "stage": "c", "throwOnMiss": True}
    translated = translate(read_case(line(pattern={"stages": stages, "within": 9, "skip": skip})))
    assert translated.pattern == (
        Pattern.begin(Pattern.begin("a").not_next("b"))
        .times(2)
        .until("coalesce(`x`, FALSE)")
        .followed_by("c")
        .within_previous(timedelta(milliseconds=4))
        .within(MILLISECONDS_3)
        .skip(Skip.to_last("c", error_on_miss=True))
    )
    assert translated.events.column("x").null_count == 3


def test_a_group_is_not_skipped_to() -> None:
    """FlinkCEP's name for groups is not the name of a stage, so it cannot be skipped to."""
    pattern = line()["pattern"] | {"skip": {"strategy": "SKIP_TO_FIRST", "stage": "GroupPattern"}}
    assert check(read_case(line(pattern=pattern)), reference) == NotSupported("skip to a group")


def test_ties_are_ordered_by_the_comparator() -> None:
    """Events of equal time are ordered by the comparator's field, then by arrival; events of other times by
    their time.
    """
    events = [{"id": i, "ts": ts, "rank": rank} for i, (ts, rank) in enumerate([(5, 2), (5, 1), (4, 9), (5, 1)])]
    stages = [{"name": "a", "contiguity": "begin"}, {"name": "b", "contiguity": "next"}]
    expected = [{"a": [2], "b": [1]}, {"a": [1], "b": [3]}, {"a": [3], "b": [0]}]
    case = line(mode="operator", comparator="rank", events=events, pattern={"stages": stages}, expected=expected)
    case["expected_at"] = [1, 3, 0]
    assert [check(read_case(case), host) for host in (reference, in_process)] == [Passed()] * 2


@pytest.mark.parametrize("host", [reference, in_process], ids=lambda host: host.__name__)
def test_arrival_orders_ties_whatever_the_ids(host: Host) -> None:
    """Events of equal time count in the order of arrival, whatever their ids; skips go by that, too."""
    events = [{"id": i, "ts": ts} for i, ts in [(7, 5), (2, 5), (9, 4), (0, 5)]]
    stages = [{"name": "a", "contiguity": "begin"}, {"name": "b", "contiguity": "next"}]
    pattern = {"stages": stages, "skip": {"strategy": "SKIP_PAST_LAST_EVENT"}}
    expected = [{"a": [9], "b": [7]}, {"a": [2], "b": [0]}]
    late = [{"watermark": 6}, {"id": 1, "ts": 6}]
    case = line(mode="operator", events=[*events, *late], pattern=pattern, expected=expected)
    assert check(read_case(case | {"expected_at": [7, 0], "expected_late": [1]}), host) == Passed()


def test_causes_of_matches_and_timeouts() -> None:
    """The reference reports the event that caused each match and timeout, or time alone, and which events were late."""
    events = [*line()["events"], {"id": 3, "ts": 11, "kind": "a"}, {"watermark": 20}, {"id": 4, "ts": 20, "kind": "a"}]
    answers = {
        "expected_at": [2],
        "expected_timeouts": [{"match": {"a": [3]}, "ts": 17}],
        "expected_timeouts_at": [-1],
        "expected_late": [4],
    }
    case = line(mode="operator", events=events, pattern=line()["pattern"] | {"within": 6}) | answers
    assert check(read_case(case), reference) == Passed()
    wrong = answers | {"expected_at": [1], "expected_timeouts_at": [2], "expected_late": []}
    assert check(read_case(case | wrong), reference) == Failed(
        "{a: 1, b: 2}\n"
        "missing: {a: 1, b: 2} by 1\n"
        "not expected: {a: 1, b: 2} by 2\n"
        "missing: {a: 3} timed out @17 by 2\n"
        "not expected: {a: 3} timed out @17 by -1\n"
        "not expected: 4 late"
    )


def test_the_end_of_time() -> None:
    """Time ends at advance_to or the last item; with the operator at the last watermark, or after everything."""

    def milliseconds(**changes: Any) -> float:
        return (translate(read_case(line(**changes))).as_of - EPOCH).total_seconds() * 1000

    late = [{"watermark": 3}, *line()["events"]]
    assert milliseconds() == 10
    assert milliseconds(advance_to=17) == 17
    assert milliseconds(mode="operator", events=late, final_watermark=False) == 3
    assert translate(read_case(line(mode="operator"))).as_of == FAR
    assert translate(read_case(line(mode="operator", final_watermark=False))).as_of == BEFORE


def test_events_become_a_table() -> None:
    """A field that no event has becomes a column of NULLs, of type text if a condition uses it as text."""
    stages = [{"name": "a", "contiguity": "begin", "where": "missing > 1 || startsWith(note, 'x')"}]
    table = translate(read_case(line(pattern={"stages": stages}))).events
    assert table.drop_columns(["event_time", "event_order"]).slice(1, 1).to_pylist() == [
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
    """Precedence is that of the cases' language; no result is unknown."""
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
def test_invalid_conditions(text: str, message: str) -> None:
    """A text that is not a condition is refused."""
    with pytest.raises(ValueError, match=re.escape(message)):
        parse(text)
