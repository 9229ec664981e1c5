"""All problems of an interval pattern are reported together, with their positions."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from tests.intervals.running import ENGINE

from cepheid.errors import PatternError, SchemaError
from cepheid.events.batch import Schema
from cepheid.lang.intervals.pattern import IntervalPattern, interval_pattern
from cepheid.plan.intervals.build import build_interval_plan
from cepheid.plan.intervals.plan import IntervalPlan

COLUMNS = pa.schema(
    {
        "type": pa.string(),
        "begins": pa.timestamp("us", "UTC"),
        "ends": pa.timestamp("us", "UTC"),
        "user": pa.string(),
        "n": pa.int64(),
    }
)


def planned(pattern: IntervalPattern | str, schema: Schema | None = None, types: str = "type") -> IntervalPlan:
    known = interval_pattern(pattern) if isinstance(pattern, str) else pattern
    return build_interval_plan(known.taxonomy(types), schema or Schema(COLUMNS, (), "begins", end="ends"), ENGINE)


def refused(pattern: IntervalPattern | str) -> str:
    with pytest.raises(PatternError) as raised:
        planned(pattern)
    return str(raised.value)


CONTRADICTIONS = {
    "EVENT PAL(A a, B b) ORDER start(a) < start(b), end(b) < start(a)": (
        "end(b) < start(a); start(a) < start(b); start(b) <= end(b)"
    ),
    "EVENT PAL(A a, B b) RELATE a before b, b before a": None,
    "EVENT SEQ(A a, B b) RELATE a after b": None,
    "EVENT PAL(A a, B b, C c) RELATE a before b, b before c, c overlap | meet a": None,
    "EVENT PAL(A a) WITHIN 5 seconds ORDER end(a) < start(a)": None,
}


@pytest.mark.parametrize("text", CONTRADICTIONS)
def test_contradictory_orders_are_named(text: str) -> None:
    """The message names the parts of the pattern that contradict each other, and no others."""
    message = refused(text)
    assert message.startswith("these cannot hold together: ")
    if expected := CONTRADICTIONS[text]:
        named = message.splitlines()[0].removeprefix("these cannot hold together: ").removesuffix(" (order)")
        assert sorted(named.split("; ")) == sorted(expected.split("; "))


def test_all_problems_come_at_once() -> None:
    """Undeclared variables, duplicates, counts over parts that are not single events, and wrong conditions are reported
    together.
    """
    pattern = (
        IntervalPattern.pal(a="A", A="B", c="C", d="D")
        .nested("a before[0, 0, 0, 0, 0] (c before d)")
        .relate("a", "before", "x")
        .ordered("start(y) < start(a)")
    )
    assert refused(pattern) == (
        "2 events have the variable 'a' (EVENT)\n"
        "Give each event a variable of its own: A first, B second.\n"
        "2 events have the variable 'A' (EVENT)\n"
        "Give each event a variable of its own: A first, B second.\n"
        "no event has the variable 'x' (relate)\n"
        "Known here: a, A, c, d\n"
        "no event has the variable 'y' (order)\n"
        "Known here: a, A, c, d\n"
        "the right part of before[…] is not one event but c, d: it cannot be counted (before[…])\n"
        "Write the pattern so that one event is on its right, or use relate(…) or ordered(…)."
    )


@pytest.mark.parametrize(
    ("text", "other"),
    [
        (
            "EVENT PAL(A a, B b) ORDER end(a) < start(b), end(b) < start(a) WHERE a.n + 1",
            "these cannot hold together: ",
        ),
        ("EVENT PAL(A a, B b) WHERE a.us = 'x' AND a.n + 1", "no column named 'us' (where, column 3)"),
        ("EVENT PAL(A a, B b) WHERE a.n LIKE '1%' AND a.n + 1", "LIKE takes STRING, got BIGINT"),
        ("EVENT PAL(A a, (!D d WHERE d.us = 'x'), B b) WHERE a.n + 1", "no column named 'us' (negation of 'd'"),
    ],
)
def test_no_problem_hides_another(text: str, other: str) -> None:
    """Conditions are typed whatever else is wrong, as far as their columns are known."""
    message = refused(text)
    assert other in message, message
    assert "a condition must be BOOLEAN, this is BIGINT (where, column " in message, message


def test_problems_of_conditions_have_their_place() -> None:
    """Unknown variables and columns, negated events, events used as values, columns without an event, and functions
    over several events.
    """
    text = (
        "EVENT PAL(A a, (!D d WHERE d.us = a.user), B b)"
        " WHERE z.n = 1 AND d.n = 1 AND a = b AND n = 1 AND count(a.n) = 1 AND a.nn = 1 AND foo = 2"
        " AND start(a.n) > 1 AND a.n + b.n"
    )
    message = refused(text)
    for part in (
        "no event has the variable 'z' (where, column 1)",
        "no column named 'nn' (where, column 66)",
        "no column named 'foo'",
        "'d' is negated (where, column 13)",
        "A condition on a negated event belongs to its negation",
        "'a' is an event, not a value (where, column 25)\n",
        "Write a.column, start(a) or end(a).",
        "count(…) looks over several events, and here each variable is one (where, column 45)",
        "start takes one variable (where, column 89)",
        "Write start(a).",
        "no column named 'us' (negation of 'd', where, column 3)",
    ):
        assert part in message, message
    assert "which event's 'n'? There is no variable before it (where, column 1)" in refused(
        "EVENT PAL(A a) WHERE n = 1"
    )
    assert "a condition must be BOOLEAN, this is BIGINT" in refused("EVENT PAL(A a, B b) WHERE a.n + b.n")
    assert "LIKE takes STRING, got BIGINT (where, column 1)" in refused("EVENT PAL(A a, B b) WHERE a.n LIKE '1%'")
    assert "a condition must be BOOLEAN" in refused("EVENT PAL(A a, B b) WHERE start(a) - start(b)")
    assert "'>' needs values of one type, got TIMESTAMP, INT (where, column 1)" in refused(
        "EVENT PAL(A a) WHERE start(a) > 5"
    )


def test_parameters() -> None:
    """A `$name` in WHERE, also of a negation, stands for the value that it is given; one without a value or use is
    reported.
    """
    text = "EVENT PAL((A a before B b) (!D d WHERE d.n > $most) before C c) WHERE a.user = $who AND start(b) > $since"
    pattern = interval_pattern(text)
    assert planned(pattern.with_parameters(most=5, who="bob", since=datetime(2024, 1, 1, tzinfo=UTC))) is not None
    message = refused(pattern.with_parameters(most=5, Who="bob", since=datetime(2024, 1, 1, tzinfo=UTC), spare=2))
    assert message == (
        "no parameter is named 'who' (where, column 10)\n"
        "  a.user = $who AND start(b) > $since\n"
        "           ^^^^\n"
        "Names are case-sensitive, and 'Who' is there. Write $Who, or name it 'who'.\n"
        "the parameter 'spare' is not used: no condition, measure, length or count has $spare (parameter 'spare')\n"
        "Known here: Who, most, since, who"
    )


def test_negations_that_say_nothing() -> None:
    """A negation is refused if it has a part on one side only, and no window; if it has none; and if it has no order
    of its own endpoints.
    """
    assert "there is no event on its left, and the pattern has no window" in refused("EVENT SEQ(!D d, A a)")
    assert "there is no event on its right, and the pattern has no window" in refused("EVENT PAL(A a, !D d)")
    span = "EVENT PAL(A a) WITHOUT (D d during_span(a |)) WITHIN 1 hour"
    assert "during_span is about the span of two parts, and there is no event on its right" in refused(span)
    for part in (None, 5, ["a", None]):
        with pytest.raises(PatternError, match=r"between names the variables of two parts, .*; \(\) is a part without"):
            IntervalPattern.pal(a="A").without("d", "D", between=("a", part))  # type: ignore[arg-type]
    for between in ("ab", ("a",), 5, ("a", "b", "c")):
        with pytest.raises(PatternError, match="between names the variables of two parts"):
            IntervalPattern.pal(a="A").without("d", "D", between=between)  # type: ignore[arg-type]
    with pytest.raises(PatternError, match="a: the type of its events is expected as text, got int: 3"):
        IntervalPattern.pal(a=3)  # type: ignore[arg-type]
    for of in (3, None, "ends"):
        with pytest.raises(PatternError, match=f"within bounds .*, got of={of!r}"):
            IntervalPattern.pal(a="A").within("1 h", of=of)  # type: ignore[arg-type]
    neither = "EVENT PAL(A a) WITHOUT (D d gap(|)) WITHIN 1 hour"
    assert "there is no event on either side of it (negation of 'd')" in refused(neither)
    without = IntervalPattern.pal(a="A").without("d", "D", ordered="start(a) < end(a)")
    assert "nothing says where the negated event may not lie (negation of 'd')" in refused(without)
    assert "'d' is negated, so it is not an event of a match (relate)" in refused(
        IntervalPattern.pal(a="A").without("d", "D", ordered="start(d) < end(a)").relate("a", "before", "d")
    )


@pytest.mark.parametrize("scope", ["start_between", "gap", "seq_between", "intersects_gap"])
def test_scopes_between_a_part_and_itself(scope: str) -> None:
    """Between a part and itself there is no event; within the span of both there may be."""
    text = f"EVENT PAL(A heat, B `first spin`) WITHOUT (D reset {scope}(`first spin`, heat | heat, `first spin`))"
    assert refused(text) == (
        f"{scope} is about what lies between two parts, and both are first spin and heat (negation of 'reset')\n"
        "Name different parts, or take during_span or an order such as start(`first spin`) < start(reset)."
    )
    planned(text.replace(scope, "during_span"))
    planned(text.replace("heat, `first spin`))", "heat))"))


def test_impossible_counts() -> None:
    """A count of more events than the left part has is refused."""
    assert "the counts of overlap[…] add up to 2, but its left part has 1 events" in refused(
        "EVENT PAL(A a overlap[1, 0, 0, 1, 0] B b)"
    )


def test_names_of_output_columns() -> None:
    """A variable cannot have the name of a column of the output."""
    assert "the variable 'match_id' has the name of an output column (EVENT)" in refused("EVENT PAL(A match_id)")


def test_faults_of_the_events() -> None:
    """Missing columns, and time columns of another type, are reported before the problems of the pattern."""
    schema = Schema(COLUMNS, ("usr",), "n", end="end")
    with pytest.raises(PatternError) as raised:
        planned("EVENT PAL(A a) RELATE a before b", schema, "kind")
    for part in (
        "key: no column named 'usr'. Did you mean 'user'?",
        "time: 'n' is of type BIGINT; event time is a TIMESTAMP, TIMESTAMP_NTZ or DATE: cast it",
        "time: no column named 'end'. Did you mean 'ends'?",
        "no column named 'kind', which holds the types",
        "no event has the variable 'b' (relate)",
    ):
        assert part in str(raised.value), str(raised.value)
    with pytest.raises(SchemaError, match="time: no column named 'end'"):
        planned("EVENT PAL(A a)", Schema(COLUMNS, (), "begins", end="end"))
