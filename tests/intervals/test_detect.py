"""Interval patterns through `detect`: their arguments, and several patterns at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from tests.intervals.events import EVENTS, NAMES, interval_pattern, table

from cepheid import IntervalPattern, Matcher, OccurrencePattern, Pattern, PatternError, Report, SchemaError, detect
from cepheid.intervals import IntervalMatcher
from cepheid.intervals import interval_pattern as parsed
from cepheid.matchers.counts import IntervalCounts
from cepheid.plan.limits import Limits

PAIR = interval_pattern("EVENT PAL(A a before C c)")
THEN = interval_pattern("EVENT PAL(B b before C c)")
STAGE = Pattern.begin("a")


def refused(pattern: Any = PAIR, **options: Any) -> str:
    with pytest.raises((SchemaError, PatternError)) as raised:
        detect(table(EVENTS), pattern, **options)
    return str(raised.value)


MISSING = "time: name the columns in which events start and end, as in time=('start', 'end'), got "
OF_OTHERS: list[tuple[dict[str, Any], str]] = [
    ({"time": "begins"}, MISSING + "'begins'"),
    ({"time": None}, MISSING + "None"),
    ({"time": ("begins", "ends", "ends")}, MISSING + "('begins', 'ends', 'ends')"),
    ({"time": ("begins", 5)}, MISSING + "('begins', 5)"),
    ({"time": ("begins", "over")}, "time: no column named 'over'"),
    (
        {"measures": {"n": "sum(a.id)"}},
        "sum(…) looks over several events, and here each variable is one (measure 'n', column 1)",
    ),
    ({"outputs": "timeouts"}, "outputs: intervals have no timeouts; ask for 'matches', 'late' or both"),
    (
        {"limits": Limits(max_partial_matches=5)},
        "limits: intervals have no max_partial_matches, as matches are joined anew with each event; leave it out",
    ),
    ({"key": "match_id"}, "key: 'match_id' is the name of a column that the output has itself; rename the key's"),
]


@pytest.mark.parametrize(("options", "message"), OF_OTHERS)
def test_arguments_that_do_not_fit(options: dict[str, Any], message: str) -> None:
    """Arguments that only other kinds of patterns support are refused, and missing ones are asked for."""
    assert refused(**(NAMES | options)).startswith(message)


def test_all_that_does_not_fit_is_reported_at_once() -> None:
    """All problems are reported together, also for other patterns that are given arguments of intervals."""
    assert len(refused(time="at", limits=Limits(max_partial_matches=5), outputs="timeouts").splitlines()) == 3
    assert refused(STAGE, **NAMES) == (
        "time: events of a Pattern have one time: name its column, got ('begins', 'ends')"
    )


def test_former_arguments() -> None:
    """Each former argument is refused with the present form, in the user's own values."""
    as_time = (
        "event time is one argument now: write time=('begins', 'ends'), or time='begins' where an event has one time"
    )
    as_taxonomy = "it belongs to the pattern now: write pattern.taxonomy('kind', {'X': 'A'})"
    assert refused(start="begins", end="ends", type="kind", kinds={"X": "A"}) == (
        f"start: {as_time}\nend: {as_time}\ntype: {as_taxonomy}\nkinds: {as_taxonomy}"
    )
    with pytest.raises(SchemaError, match="delay: write lateness='8 seconds', late_by='end'"):
        IntervalMatcher(PAIR, table(EVENTS), delay="8 seconds", lateness="end", **NAMES)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Matcher(STAGE, table(EVENTS), time="begins", delay="8 seconds"), "delay: write lateness='8 seconds'"),
        (lambda: Matcher(STAGE, table(EVENTS), start="begins"), "start: event time is one argument now: write time="),
        (lambda: Matcher(STAGE, table(EVENTS), time="begins", type="kind"), "type: it belongs to the pattern now"),
        (
            lambda: detect(table(EVENTS), PAIR, taxonomy="kind"),
            "taxonomy: it belongs to the pattern now: write pattern.taxonomy('kind')",
        ),
        (lambda: detect(table(EVENTS), PAIR, delay="1 hour"), "delay: write lateness='1 hour'"),
        (lambda: OccurrencePattern.of("A; B", type="kind"), "type: it belongs to the pattern now"),
        (lambda: parsed("EVENT PAL(A)", taxonomy="t"), "taxonomy: it belongs to the pattern now"),
    ],
)
def test_arguments_of_other_calls(call: Callable[[], object], message: str) -> None:
    """Former arguments, and those of another call, are refused in the same way by every call."""
    with pytest.raises(SchemaError) as caught:
        call()
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("local", ["begins", "ends"])
def test_times_of_which_one_has_a_zone(local: str) -> None:
    """An instant and a local time are not compared: both columns have a zone, or neither has one."""
    events = table(EVENTS)
    for type_ in (pa.timestamp("us"), pa.date32()):
        mixed = events.set_column(events.schema.get_field_index(local), local, events.column(local).cast(type_))
        shown = {"begins": "TIMESTAMP", "ends": "TIMESTAMP", local: "DATE" if type_ == pa.date32() else "TIMESTAMP_NTZ"}
        message = (
            f"time: 'begins' is {shown['begins']} and 'ends' is {shown['ends']}, so only one has a time zone: "
            "give both one, or none"
        )
        with pytest.raises(SchemaError) as caught:
            detect(mixed, PAIR, **NAMES)
        assert str(caught.value) == message
        with pytest.raises(SchemaError) as caught:
            IntervalMatcher(PAIR, mixed, lateness=None, **NAMES)
        assert str(caught.value) == message


def test_types_are_the_patterns() -> None:
    """The pattern says which column has the types."""
    assert refused(parsed("EVENT PAL(A a)"), **NAMES) == (
        "no column of the events is known to hold their types (taxonomy)\nSay which it is: .taxonomy('kind')."
    )
    assert refused(PAIR.taxonomy("kind", {"A": [], "B": "A"}), **NAMES) == (
        "no type 'C' in the taxonomy (event 'c', column 1)\n  C\n  ^\nKnown here: A, B. "
        'Types that are not kinds of others are declared, too: "C": []'
    )


def test_several_patterns() -> None:
    """One table has the matches of all patterns, with their names, and NULL for the variables of the others."""
    report = Report()
    found = detect(table(EVENTS), {"pair": PAIR, "then": THEN}, report=report, columns=["id"], **NAMES)
    times = ["match_start", "match_end", "detected_at"]
    assert found.schema.names == ["kind", "pattern", "match_id", *times, "a", "c", "b"]
    assert found.column("detected_at") == found.column("match_end")
    rows = [(row["pattern"], row["a"], row["b"], row["c"]) for row in found.to_pylist()]
    c1 = {"id": "c1"}
    assert rows == [("pair", {"id": "a1"}, None, c1), ("then", None, {"id": "b1"}, c1)]
    alone = detect(table(EVENTS), THEN.named("then"), columns=["id"], **NAMES)
    assert alone.column("match_id")[0] == found.column("match_id")[1]
    assert report.counts == IntervalCounts(events=5, matches=2)


def test_outputs() -> None:
    """A finite input has no late events; with `outputs` the columns are those of a stream."""
    found = detect(table(EVENTS), PAIR, outputs=("matches", "late"), columns=["id"], **NAMES)
    assert found.schema.names[:3] == ["kind", "pattern", "match_id"]
    assert found.schema.names[-1] == "event"
    assert found.column("kind").to_pylist() == ["match"]
    assert not detect(table(EVENTS), PAIR, outputs="late", **NAMES)


@pytest.mark.parametrize("name", ["kind", "pattern", "event"])
def test_keys_named_as_columns_that_only_outputs_have(name: str) -> None:
    """The key is a column of the matches; with outputs its name is refused."""
    events = table(EVENTS).rename_columns({"kind": "type"}).append_column(name, pa.array(["k"] * len(EVENTS)))
    options: dict[str, Any] = {**NAMES, "key": name}
    pair = parsed("EVENT PAL(A a before C c)").taxonomy("type")
    assert detect(events, pair, **options).column(name).to_pylist() == ["k"]
    with pytest.raises(SchemaError, match=f"key: '{name}' is the name of a column that the output has itself"):
        detect(events, pair, outputs="matches", **options)


def test_problems_of_several_patterns() -> None:
    """Each problem has the name of its pattern; patterns of several kinds cannot be combined."""
    wrong = interval_pattern("EVENT PAL(A a) WHERE a.x = 1")
    assert refused({"one": wrong, "two": PAIR.relate("a", "before", "z")}, **NAMES) == (
        "no column named 'x' (pattern 'one', where, column 3)\n  a.x = 1\n    ^\n"
        "Known here: kind, begins, ends, id, user\n"
        "no event has the variable 'z' (pattern 'two', relate)\nKnown here: a, c"
    )
    mixed = refused({"one": PAIR, "two": STAGE}, **NAMES)
    assert mixed.startswith("several patterns must be of one kind (intervals): an IntervalPattern is expected, got")


def test_each_matcher_names_the_other() -> None:
    """A pattern of another kind is refused with the name of the right class, whatever the other arguments are."""
    schema = pa.schema({"begin": pa.timestamp("us", "UTC")})
    others = {"stages": Pattern.begin("a"), "occurrences": OccurrencePattern.of("A").taxonomy("kind")}
    for kind, other in others.items():
        with pytest.raises(PatternError, match=f"pattern 'pattern' is a pattern of {kind}: use a Matcher"):
            IntervalMatcher(other, schema, lateness=None, **NAMES)  # type: ignore[arg-type]
    with pytest.raises(PatternError, match="pattern 'pattern' is a pattern of intervals: use an IntervalMatcher"):
        Matcher(PAIR, schema, time="begin", key="none")  # type: ignore[arg-type]
    with pytest.raises(PatternError, match="an interval pattern, or its query text, got int: 3"):
        IntervalMatcher({"a": 3}, schema, lateness=None, **NAMES)  # type: ignore[dict-item]
    with pytest.raises(PatternError, match="an IntervalMatcher finds an interval pattern, or its query text, got None"):
        IntervalMatcher(None, schema, lateness=None, **NAMES)  # type: ignore[arg-type]


def test_names_of_patterns() -> None:
    """The name of an interval pattern must be text, as with other patterns."""
    with pytest.raises(PatternError, match="a pattern's name is text, got int: 3"):
        IntervalPattern.pal(a="A").named(3)  # type: ignore[arg-type]


def test_measures() -> None:
    """Measures are SQL over the variables and their times; they replace the events, and may have parameters. With rows
    of events each row of a match has them.
    """
    pattern = interval_pattern("EVENT PAL((A a overlap B b) before C c)").with_parameters(mark="!")
    measures = {"pair": "concat(a.id, b.id, $mark)", "gap": "unix_seconds(start(c)) - unix_seconds(end(b))"}
    rows = detect(table(EVENTS), pattern, measures=measures, **NAMES).drop_columns(["match_id"]).to_pylist()
    assert [(row["pair"], row["gap"]) for row in rows] == [("a1b1!", 2)]
    assert [*rows[0]] == ["match_start", "match_end", "detected_at", "pair", "gap"]
    events = detect(table(EVENTS), pattern, measures=measures, rows_per="event", **NAMES).to_pylist()
    assert [(row["stage"], row["pair"]) for row in events] == [(name, "a1b1!") for name in "abc"]
    several = {"chain": pattern.named("chain"), "one": interval_pattern("EVENT PAL(C c)").named("one")}
    each = {"chain": {"name": "b.id", "gap": measures["gap"], "mark": "$mark"}, "one": {"name": "c.id"}}
    found = detect(table(EVENTS), several, measures=each, **NAMES).to_pylist()
    assert [(row["pattern"], row["name"], row["gap"]) for row in found] == [("chain", "b1", 2), ("one", "c1", None)]


def test_measures_that_cannot_be() -> None:
    """All problems of measures are reported together, each with its place."""
    pattern = interval_pattern("EVENT PAL(A a, (!D d gap), B b)")
    wrong = {"match_id": "a.id", "x": "d.id", "y": "count(a.id)", "z": "a", "u": "RUNNING b.id"}
    told = refused(pattern, measures=wrong, rows_per="event", **NAMES)
    for problem in (
        "measure 'match_id' has the name of another column of the output",
        "'d' is negated (measure 'x', column 1)",
        "count(…) looks over several events, and here each variable is one (measure 'y', column 1)",
        "'a' is an event, not a value (measure 'z', column 1)",
        "measures of intervals are those of the whole match, in each of its rows (measure 'u')",
    ):
        assert problem in told
