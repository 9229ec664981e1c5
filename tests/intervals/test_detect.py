"""Interval patterns through `detect`: which arguments they have, and several at once."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.intervals.events import EVENTS, NAMES, table

from cepheid import IntervalPattern, Matcher, OccurrencePattern, Pattern, PatternError, Report, SchemaError, detect
from cepheid.intervals import IntervalMatcher, interval_pattern
from cepheid.plan.limits import Limits
from cepheid.requests.counts import IntervalCounts

PAIR = interval_pattern("EVENT PAL(A a before C c)")
THEN = interval_pattern("EVENT PAL(B b before C c)")
STAGE = Pattern.begin("a")


def refused(pattern: Any = PAIR, **options: Any) -> str:
    with pytest.raises((SchemaError, PatternError)) as raised:
        detect(table(EVENTS), pattern, **options)
    return str(raised.value)


OF_OTHERS: list[tuple[dict[str, Any], str]] = [
    (
        {"time": "begins"},
        "time: events of an interval pattern have two: give their columns with start=… and with end=…",
    ),
    ({"time": None}, "time: events of an interval pattern have two: give their columns with start=… and with end=…"),
    ({"sequence": "id"}, "sequence: interval patterns have none; leave it out"),
    ({"measures": {"n": "a.id"}}, "measures: interval patterns have none; leave it out"),
    ({"outputs": "matches"}, "outputs: interval patterns have none; leave it out"),
    ({"as_of": "2024-01-01"}, "as_of: interval patterns have none; leave it out"),
    ({"lateness": "1 second"}, "lateness: interval patterns have none; leave it out"),
    ({"shards": 3}, "shards: interval patterns have none; leave it out"),
    (
        {"limits": Limits(max_partial_matches=5)},
        "limits: interval patterns have no partial matches; leave max_partial_matches out",
    ),
    ({"start": None}, "start: the name of a column is expected, got None"),
    ({"end": 5}, "end: the name of a column is expected, got 5"),
    ({"type": None}, "type: name the column that holds the types, here or with taxonomy(…) of the pattern"),
    ({"key": "match_id"}, "key: 'match_id' is the name of a column that the output has itself; rename the key's"),
]


@pytest.mark.parametrize(("options", "message"), OF_OTHERS)
def test_arguments_that_do_not_fit(options: dict[str, Any], message: str) -> None:
    """What other patterns have is refused, and what is lacking is asked for."""
    assert refused(**(NAMES | options)).startswith(message)


def test_all_that_does_not_fit_is_told_at_once() -> None:
    """Of intervals, and of other patterns that are given what intervals have."""
    assert len(refused(time="at", measures={}, outputs="late").splitlines()) == 6
    assert refused(STAGE, **NAMES) == (
        "time: name the column of event times; time=None is processing order\n"
        "start: only interval patterns have it; leave it out\n"
        "end: only interval patterns have it; leave it out\n"
        "type: only interval patterns have it; leave it out"
    )
    of_occurrences = OccurrencePattern.of("A").taxonomy("kind")
    assert refused(of_occurrences, time="begins", kinds={}) == "kinds: only interval patterns have it; leave it out"


def test_types_by_argument_or_by_taxonomy() -> None:
    """The pattern may say which column has the types; then they are not said again."""
    typed = PAIR.taxonomy("kind")
    times = {name: NAMES[name] for name in ("start", "end")}
    assert detect(table(EVENTS), typed, **times) == detect(table(EVENTS), PAIR, **NAMES)
    assert refused(typed, **NAMES) == (
        "type: pattern 'pattern' has a taxonomy, which names the column; leave type and kinds out"
    )
    assert refused(**times, kinds={"X": "A"}).splitlines()[0] == (
        "kinds: they are those of the column type=…, or stand in the pattern's taxonomy(…)"
    )
    assert refused(PAIR.taxonomy("kind", {"A": [], "B": "A"}), **times) == (
        "no type 'C' in the taxonomy (event 'c', column 1)\n  C\n  ^\nKnown here: A, B. "
        'Types that are kinds of none are declared, too: "C": []'
    )


def test_several_patterns() -> None:
    """One table has the matches of all, with the name of each and NULL for the variables of others."""
    report = Report()
    found = detect(table(EVENTS), {"pair": PAIR, "then": THEN}, report=report, columns=["id"], **NAMES)
    assert found.schema.names == ["pattern", "match_id", "match_start", "match_end", "a", "c", "b"]
    rows = [(row["pattern"], row["a"], row["b"], row["c"]) for row in found.to_pylist()]
    c1 = {"id": "c1"}
    assert rows == [("pair", {"id": "a1"}, None, c1), ("then", None, {"id": "b1"}, c1)]
    alone = detect(table(EVENTS), THEN.named("then"), columns=["id"], **NAMES)
    assert alone.column("match_id")[0] == found.column("match_id")[1]
    assert report.counts == IntervalCounts(events=5, matches=2)


def test_problems_of_several_patterns() -> None:
    """Each with the name of its pattern; other kinds of patterns do not go together with them."""
    wrong = interval_pattern("EVENT PAL(A a) WHERE a.x = 1")
    assert refused({"one": wrong, "two": PAIR.relate("a", "before", "z")}, **NAMES) == (
        "no column named 'x' (pattern 'one', where, column 3)\n  a.x = 1\n    ^\n"
        "Known here: kind, begins, ends, id, user\n"
        "no event has the variable 'z' (pattern 'two', relate)\nKnown here: a, c"
    )
    mixed = refused({"one": PAIR, "two": STAGE}, **NAMES)
    assert mixed.startswith(
        "where one of several patterns is of intervals all are: an IntervalPattern is expected, got"
    )


def test_each_matcher_names_the_other() -> None:
    """A pattern of another kind is told with the class that finds it, whatever else is given."""
    schema = pa.schema({"begin": pa.timestamp("us", "UTC")})
    others = {"stages": Pattern.begin("a"), "occurrences": OccurrencePattern.of("A").taxonomy("kind")}
    for kind, other in others.items():
        with pytest.raises(PatternError, match=f"pattern 'pattern' is one of {kind}, which a Matcher finds"):
            IntervalMatcher(other, schema, delay=None, **NAMES)  # type: ignore[arg-type]
    with pytest.raises(PatternError, match="pattern 'pattern' is one of intervals, which an IntervalMatcher finds"):
        Matcher(PAIR, schema, time="begin", key="none")  # type: ignore[arg-type]
    with pytest.raises(PatternError, match="an IntervalMatcher finds one interval pattern"):
        IntervalMatcher({"a": PAIR}, schema, delay=None, **NAMES)  # type: ignore[arg-type]
    with pytest.raises(PatternError, match="an IntervalMatcher finds an interval pattern, or its query text, got None"):
        IntervalMatcher(None, schema, delay=None, **NAMES)  # type: ignore[arg-type]


def test_names_of_patterns() -> None:
    """As those of other patterns they are text."""
    with pytest.raises(PatternError, match="a pattern's name is text, got int: 3"):
        IntervalPattern.pal(a="A").named(3)  # type: ignore[arg-type]
