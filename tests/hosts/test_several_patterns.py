"""Several patterns over one pass of events give what each gives alone, in one table."""

from __future__ import annotations

import warnings
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hosts.patterns_and_events import FIRST, SCHEMA, Case, Row, cases, events
from tests.searching import share

from cepheid import (
    CepheidWarning,
    ConditionError,
    LimitExceeded,
    Limits,
    Matcher,
    Pattern,
    PatternError,
    Report,
    SchemaError,
    detect,
)
from cepheid.compile.stages.compiled_plans import compile_plans
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.in_process.detect import plans_in_process
from cepheid.plan.plan_set import relevant_to_any
from cepheid.requests.request_of import request_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

BOTH = ("matches", "timeouts")
OPTIONS: dict[str, Any] = {"key": "device", "time": "at", "sequence": "id"}
SUMMED = ("ties", "matches", "timeouts", "dropped_partial_matches", "dropped_matches")
"""The counts that each pattern has for itself."""


def table(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows], schema=SCHEMA)


def of_kinds(*kinds: str) -> pa.Table:
    """For each text the events of a device, one letter each, a second apart."""
    rows = [
        {"id": i, "device": f"d{i}", "at": FIRST + timedelta(seconds=second), "kind": letter, "n": second}
        for i, letters in enumerate(kinds)
        for second, letter in enumerate(letters)
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def then(first: str, second: str) -> Pattern:
    pattern = Pattern.begin("one").where(f"kind = '{first}'").followed_by("two").where(f"kind = '{second}'")
    return pattern.within("9 seconds")


def shown(found: pa.Table) -> list[str]:
    """The rows as text, in which NaN equals itself."""
    return [repr(row) for row in found.to_pylist()]


def one_by_one(
    events: pa.Table, patterns: Mapping[str, Pattern], measures: Mapping[str, Mapping[str, str]] | None, **options: Any
) -> tuple[list[str], dict[str, int]]:
    """The rows that each pattern gives alone, with the columns of all, and the sums of the counts."""
    rows, sums, tables = [], dict.fromkeys(SUMMED, 0), []
    for name, pattern in patterns.items():
        report = Report()
        mine = None if measures is None else measures.get(name, {})
        tables.append(detect(events, replace(pattern, name=name), measures=mine, report=report, **options))
        sums = {count: sums[count] + getattr(report.counts, count) for count in SUMMED}
    names = [*dict.fromkeys(name for found in tables for name in found.column_names if name != "event"), "event"]
    for found in tables:
        rows += [repr({name: row.get(name) for name in names}) for row in found.to_pylist()]
    return rows, sums


@st.composite
def measures_of(draw: st.DrawFn, names: Sequence[str]) -> dict[str, dict[str, str]] | None:
    if draw(st.booleans()):
        return None
    known = {"n": "count(s0)", "first": "first(s0.kind)", "twice": "sum(s0.n) * 2"}
    chosen = st.lists(st.sampled_from(sorted(known)), unique=True)
    some = draw(st.lists(st.sampled_from(names), unique=True))
    return {name: {measure: known[measure] for measure in draw(chosen)} for name in some}


@share(50)
@given(
    data=st.data(),
    drawn=st.lists(cases(), min_size=1, max_size=4),
    rows=events(ties=True),
    in_sequence=st.booleans(),
    columns=st.sampled_from([None, ("kind",), ("id", "n")]),
    outputs=st.sampled_from([None, BOTH, ("matches", "timeouts", "late")]),
    as_of=st.none() | st.integers(0, 30).map(lambda seconds: FIRST + timedelta(seconds=seconds)),
)
def test_each_as_alone(
    *,
    data: st.DataObject,
    drawn: list[Case],
    rows: list[Row],
    in_sequence: bool,
    columns: tuple[str, ...] | None,
    outputs: Any,
    as_of: Any,
) -> None:
    """The rows are those of `detect` for one pattern after the other, in the same order, ids included."""
    patterns = {f"p{i}": case.pattern for i, case in enumerate(drawn)}
    measures = data.draw(measures_of([*patterns]))
    found_events = table(data.draw(st.permutations(rows)))
    options = {**OPTIONS, "sequence": "id" if in_sequence else None, "columns": columns, "as_of": as_of}
    report = Report()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CepheidWarning)
        expected, sums = one_by_one(found_events, patterns, measures, outputs=outputs or "matches", **options)
        found = detect(found_events, patterns, measures=measures, outputs=outputs, report=report, **options)
    assert shown(found) == expected
    assert {name: getattr(report.counts, name) for name in SUMMED} == sums
    assert report.counts.events == (len(rows) if as_of is None else sum(row["at"] <= as_of for row in rows))


LETTERS = of_kinds("akbmcpqv", "jvzxyiu", "fffkkf")


def ladder(first: int) -> Pattern:
    """22 events with consecutive n."""
    pattern = Pattern.begin("s0").where(f"n = {first}")
    for i in range(1, 22):
        pattern = pattern.next(f"s{i}").where(f"n = {first + i}")
    return pattern


LADDERS = {f"from {first}": ladder(first) for first in (0, 11, 22, 44)}


def test_conditions_of_many_patterns() -> None:
    """The mask has as many words as all conditions need; conditions and values of several patterns
    are computed once.
    """
    events = of_kinds("a" * 70, "akbm")
    patterns = {**LADDERS, "changed": Pattern.begin("one").where("n = 65").next("two").where("kind = one.kind")}
    patterns["changed too"] = Pattern.begin("one").where("n = 0").next("two").where("kind <> one.kind")
    plans = plans_in_process(events.schema, request_of(patterns, **OPTIONS), DuckDbEngine())
    assert sorted(bit.sql for bit in plans.bits) == sorted(f"n = {i}" for i in range(66))
    assert [value.sql for value in plans.values] == ["kind"]
    expected, _ = one_by_one(events, patterns, None, outputs="matches", **OPTIONS)
    assert shown(detect(events, patterns, **OPTIONS)) == expected
    assert len(expected) == 6


def test_events_that_matter_to_no_pattern_are_dropped() -> None:
    """An event is processed if it can matter to any pattern, and only by those patterns."""
    patterns = {"ab": then("a", "b"), "ac": then("a", "c"), "cd": then("c", "d")}
    plans = compile_plans(plans_in_process(LETTERS.schema, request_of(patterns, **OPTIONS), DuckDbEngine()))
    assert [bit.sql for bit in plans.plans.bits] == [f"kind = '{letter}'" for letter in "abcd"]
    assert relevant_to_any(plans.relevant_to) == (0b1111,)
    assert plans.relevant_to == ((0b0011,), (0b0101,), (0b1100,))
    strict = {**patterns, "any": Pattern.begin("one").next("two")}
    plans = compile_plans(plans_in_process(LETTERS.schema, request_of(strict, **OPTIONS), DuckDbEngine()))
    assert relevant_to_any(plans.relevant_to) is None


# What is refused


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        ({}, "no pattern is given: name one at least, as in {'late': Pattern.begin('departure')}"),
        (
            {"": then("a", "b"), 3: then("a", "b"), "x": "a then b"},
            (
                "a pattern's name is text that is not empty, got ''\n"
                "a pattern's name is text that is not empty, got 3\n"
                "a pattern is made with Pattern.begin(…), OccurrencePattern.of(…) or IntervalPattern.of(…), "
                "or read with read_pattern(path), got 'a then b' (pattern 'x')"
            ),
        ),
        (
            {
                "x": then("a", "b"),
                "y": then("a", "b").where("m > 1").next("one"),
                "z": Pattern.begin("a").where("n + 1"),
            },
            (
                "two stages are named 'one' (pattern 'y')\n"
                "Every stage needs a name of its own.\n"
                "no column named 'm' (pattern 'y', stage 'two', where 2, column 1)\n"
                "  m > 1\n"
                "  ^\n"
                "If it is a text, write 'm'. Known here: id, device, at, kind, n, x, price\n"
                "a condition must be BOOLEAN, this is INT (pattern 'z', stage 'a', where, column 1)\n"
                "  n + 1\n"
                "  ^^^^^"
            ),
        ),
    ],
)
def test_wrong_patterns(patterns: Any, message: str) -> None:
    """All problems of all patterns are reported, each with its pattern."""
    with pytest.raises(PatternError) as caught:
        detect(LETTERS, patterns, **OPTIONS)
    assert str(caught.value) == message


PAIRS = {"ab": then("a", "b"), "cd": then("c", "d")}


def test_wrong_columns() -> None:
    """Problems that do not depend on the pattern are reported once."""
    with pytest.raises(SchemaError) as caught:
        detect(LETTERS, PAIRS, key="no", time="at")
    assert str(caught.value) == "key: no column named 'no'. Did you mean 'n'?"
    with pytest.raises(PatternError) as both:
        detect(LETTERS, {**PAIRS, "x": Pattern.begin("a").where("m = 1")}, key="no", time="at")
    assert [problem.where for problem in both.value.problems] == [None, "pattern 'x', stage 'a', where"]


@pytest.mark.parametrize(
    ("measures", "message"),
    [
        (
            ["count(one)"],
            (
                'measures: each of several patterns has its own, as in {"late": {"legs": "count(legs)"}}, '
                "got ['count(one)']"
            ),
        ),
        (
            {"n": "count(one)", "ab": {"n": 1}},
            (
                "measures: no pattern is named 'n'. Known here: ab, cd\n"
                'measures of pattern \'n\': names and their SQL are expected, as in {"legs": "count(legs)"}, '
                "got 'count(one)'\n"
                'measures of pattern \'ab\': names and their SQL are expected, as in {"legs": "count(legs)"}, '
                "got {'n': 1}"
            ),
        ),
    ],
)
def test_invalid_measures(measures: Any, message: str) -> None:
    """Each measure belongs to one of the patterns, by its name."""
    with pytest.raises(SchemaError) as caught:
        detect(LETTERS, PAIRS, measures=measures, **OPTIONS)
    assert str(caught.value) == message


def test_measures_that_disagree() -> None:
    """A measure is one column, so it has one spelling and one type in all patterns."""
    measures = {"ab": {"n": "count(one)", "what": "one.kind"}, "cd": {"N": "count(one)", "what": "one.at"}}
    with pytest.raises(PatternError) as caught:
        detect(LETTERS, PAIRS, measures=measures, **OPTIONS)
    assert str(caught.value) == (
        "in pattern 'ab' it is written 'n', and case does not count (pattern 'cd', measure 'N')\n"
        "Write them alike, or choose another name.\n"
        "it is TIMESTAMP here and STRING in pattern 'ab' (pattern 'cd', measure 'what')\n"
        "A column has one type: cast one of them, or choose another name."
    )


def test_failures_name_the_pattern() -> None:
    """The error of a condition across events, a measure, a function or a limit names the pattern."""
    across = Pattern.begin("one").next("two").where("n / one.n > 0")
    inverse = Pattern.begin("one").where(lambda event: 1 / event["n"] > 0, name="inverse")
    begun = Pattern.begin("one")
    waiting = begun.followed_by("two").where("kind = 'never'")
    with pytest.raises(ConditionError, match=r"^pattern 'x': .* in the condition of stage 'two'"):
        detect(LETTERS, {**PAIRS, "x": across}, **OPTIONS)
    with pytest.raises(ConditionError, match=r"^pattern 'x': measure 'm': "):
        detect(LETTERS, {**PAIRS, "x": begun}, measures={"x": {"m": "1 div one.n"}}, **OPTIONS)
    with pytest.raises(ConditionError, match=r"^pattern 'x': (?!pattern).*ZeroDivisionError"):
        detect(LETTERS, {**PAIRS, "x": inverse}, **OPTIONS)
    with pytest.raises(LimitExceeded, match=r"^pattern 'x': more than 1 partial matches are open"):
        detect(LETTERS, {**PAIRS, "x": waiting}, limits=Limits(max_partial_matches=1), **OPTIONS)


def test_too_many_conditions_of_one() -> None:
    """Each pattern may have as many conditions as one word has bits."""
    pattern = Pattern.begin("s0").where("n > 0")
    for i in range(1, 64):
        pattern = pattern.next(f"s{i}").where(f"n > {i}")
    with pytest.raises(LimitExceeded, match=r"^pattern 'x': a pattern can have at most 63 different conditions"):
        detect(LETTERS, {"x": pattern}, **OPTIONS)


def test_a_key_with_a_name_of_the_frame() -> None:
    """The output has the columns of `outputs`, so a key cannot have their names, in upper or lower case."""
    with pytest.raises(SchemaError, match="key: 'kind' is the name of a column that the output has itself"):
        detect(LETTERS, PAIRS, key="kind", time="at")


def test_a_matcher_takes_one() -> None:
    """A Matcher accepts one pattern only."""
    with pytest.raises(PatternError, match="a Matcher finds one pattern: make one for each of several"):
        Matcher(PAIRS, LETTERS, **OPTIONS)  # type: ignore[arg-type]


def test_ties_of_several() -> None:
    """The warning says that each pattern counts its own ties."""
    events = pa.concat_tables([LETTERS, LETTERS])
    with pytest.warns(CepheidWarning, match="events agree in key and time with another, counted for each pattern;"):
        detect(events, PAIRS, key="device", time="at")


# On Spark


def is_early(event: Mapping[str, Any]) -> bool:
    return bool(event["n"] < 2)


@pytest.mark.spark
@pytest.mark.parametrize("measured", [False, True])
def test_spark_gives_the_same(spark: SparkSession, capsys: pytest.CaptureFixture[str], *, measured: bool) -> None:
    """In one pass, Spark gives the same rows and counts, with more conditions than a word has bits and one in Python. A
    measure is evaluated only for matches of its own pattern.
    """
    patterns = {**LADDERS, "jv": then("j", "v"), "early": Pattern.begin("one").where(is_early)}
    events = of_kinds("a" * 70, "akbmcpqv", "jvzxyiu")
    measures = None
    if measured:
        measures = {"from 22": {"inverse": "2200 div coalesce(s0.n, 0)", "n": "count(s1)"}, "jv": {"n": "count(two)"}}
    here, there = Report(), Report()
    options: dict[str, Any] = {**OPTIONS, "outputs": BOTH, "measures": measures}
    expected = detect(events, patterns, report=here, **options)
    frame = detect(spark.createDataFrame(events).repartition(3), patterns, report=there, **options)
    frame.explain()
    assert capsys.readouterr().out.count("MapInArrow") == 2  # one packs the events, the other one finds matches
    found = frame.toArrow()
    assert found.column_names == expected.column_names
    assert sorted(shown(found)) == sorted(shown(expected)) != []
    assert {row["pattern"] for row in expected.to_pylist()} == {*patterns}
    assert there.counts == here.counts


@pytest.mark.spark
def test_spark_names_the_pattern(spark: SparkSession) -> None:
    """Errors name the pattern before anything runs, and in a worker."""
    frame = spark.createDataFrame(LETTERS)
    with pytest.raises(PatternError, match=r"\(pattern 'x', stage 'one', where, column 1\)"):
        detect(frame, {**PAIRS, "x": Pattern.begin("one").where("m = 1")}, **OPTIONS)
    failing = detect(frame, {**PAIRS, "x": Pattern.begin("one").next("two").where("n / one.n > 0")}, **OPTIONS)
    with pytest.raises(Exception, match=r"pattern 'x': .* in the condition of stage 'two'"):
        failing.collect()
