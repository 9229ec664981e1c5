"""Random patterns of the fluent interface."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from hypothesis import strategies as st

from cepheid.lang.stages.pattern import Pattern, Skip, SkipTo

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    [
        "on",
        "no",
        "~",
        "null",
        "1e5",
        "0x1F",
        "12:30",
        "2024-01-01",
        "=",
        "<<",
        "a: b",
        "a #b",
        "\u2028",
        "\x85",
        "\ufeff",
    ]
)
names = text.filter(bool)
conditions = text.filter(lambda t: t.strip() != "") | st.sampled_from(["a > 1", "origin = late.origin", "x <> 'it''s'"])


durations = st.integers(1, 10**12).map(lambda count: f"{count} microseconds") | st.just("$limit")
ADD: list[Any] = [Pattern.next, Pattern.followed_by, Pattern.followed_by_any]
NOT: list[Any] = [Pattern.not_next, Pattern.not_followed_by]
FLAGS = [Pattern.optional, Pattern.greedy, Pattern.consecutive, Pattern.allow_combinations, Pattern.longest]


@st.composite
def sequences(draw: st.DrawFn, deepest: int) -> Pattern:
    """Stages with any calls on them, and groups down to a given depth."""
    pattern = None
    for _ in range(draw(st.integers(1, 4))):
        stage: Any = draw(names)
        add = ADD + NOT
        if deepest > 0 and draw(st.sampled_from([False, False, True])):
            stage, add = draw(sequences(deepest - 1)), ADD
        pattern = Pattern.begin(stage) if pattern is None else draw(st.sampled_from(add))(pattern, stage)
        pattern = draw(quantified(pattern) if pattern.stages[-1].group else with_conditions(pattern))
    assert pattern is not None
    return pattern


@st.composite
def with_conditions(draw: st.DrawFn, pattern: Pattern) -> Pattern:
    for condition in draw(st.lists(conditions, max_size=3)):
        calls: list[Any] = [Pattern.where, Pattern.subtype]
        if pattern.stages[-1].conditions:
            calls.append(Pattern.or_where)
        pattern = draw(st.sampled_from(calls))(pattern, condition)
    return draw(quantified(pattern))


@st.composite
def quantified(draw: st.DrawFn, pattern: Pattern) -> Pattern:
    kind, window = draw(st.sampled_from(["one", "times", "one_or_more", "times_or_more"])), draw(st.none() | durations)
    match kind:
        case "times":
            low, more = draw(st.integers(0, 5)), draw(st.none() | st.integers(0, 5))
            counts: tuple[Any, Any] = (max(low, 1), None) if more is None else (low, max(low + more, 1))
            if draw(st.booleans()):
                counts = draw(st.sampled_from([("$n", counts[1]), (counts[0], "$m"), ("$n", "$m"), ("$n", None)]))
            pattern = pattern.times(*counts, window=window)
        case "one_or_more":
            pattern = pattern.one_or_more(window=window)
        case "times_or_more":
            pattern = pattern.times_or_more(draw(st.integers(1, 3) | st.just("$n")), window=window)
    for flag in draw(st.lists(st.sampled_from(FLAGS), max_size=3, unique=True)):
        pattern = flag(pattern)
    if draw(st.booleans()):
        pattern = pattern.until(draw(conditions))
    return pattern.within_previous(draw(durations)) if draw(st.booleans()) else pattern


# Far enough from the ends of Python's time to be a time in every zone.
FIRST, LAST = datetime(1, 1, 3), datetime(9999, 12, 29)  # noqa: DTZ001
versions = st.none() | names | st.integers(0) | st.sampled_from(["1.10", "007", "1e3"])
single_values = (
    st.integers(-(10**30), 10**30)
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.decimals(-1000, 1000, places=2)
    | text
    | st.dates()
    | st.datetimes()
    | st.datetimes(FIRST, LAST, timezones=st.timezones())
)
parameters = st.dictionaries(
    st.sampled_from(["limit", "who", "since", "Größe"]),
    single_values | st.lists(single_values, min_size=1, max_size=3),
    max_size=3,
)


@st.composite
def taxonomies(draw: st.DrawFn) -> dict[str, Any]:
    """Types, each a kind of zero or more of those before it."""
    types = draw(st.lists(names, unique=True, max_size=5))
    kinds: dict[str, Any] = {}
    for number, type_ in enumerate(types):
        above = draw(st.lists(st.sampled_from(types[:number]), unique=True, max_size=2)) if number else []
        kinds[type_] = above[0] if len(above) == 1 and draw(st.booleans()) else above
    return kinds


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    """Any pattern that the fluent interface can make, useful or not."""
    pattern = draw(sequences(2)).named(draw(text), version=draw(versions)).with_parameters(**draw(parameters))
    if draw(st.booleans()):
        pattern = pattern.taxonomy(draw(names), draw(taxonomies()))
    if draw(st.booleans()):
        pattern = pattern.within(draw(durations))
    to = draw(st.sampled_from(SkipTo))
    if to in (SkipTo.FIRST, SkipTo.LAST):
        return pattern.skip(Skip(to, draw(names), draw(st.booleans())))
    return pattern.skip(Skip(to))
