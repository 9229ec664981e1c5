"""Random patterns, as far as the fluent interface can make them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from cepheid.lang.pattern import Pattern, Skip, SkipTo

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


durations = st.integers(1, 10**12).map(lambda count: f"{count} microseconds")
ADD: list[Any] = [Pattern.next, Pattern.followed_by, Pattern.followed_by_any]
NOT: list[Any] = [Pattern.not_next, Pattern.not_followed_by]
FLAGS = [Pattern.optional, Pattern.greedy, Pattern.consecutive, Pattern.allow_combinations, Pattern.longest]


@st.composite
def sequences(draw: st.DrawFn, deepest: int) -> Pattern:
    """Stages, groups among them down to a depth, with any calls on them."""
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
        or_where = bool(pattern.stages[-1].conditions) and draw(st.booleans())
        pattern = pattern.or_where(condition) if or_where else pattern.where(condition)
    return draw(quantified(pattern))


@st.composite
def quantified(draw: st.DrawFn, pattern: Pattern) -> Pattern:
    kind, window = draw(st.sampled_from(["one", "times", "one_or_more", "times_or_more"])), draw(st.none() | durations)
    match kind:
        case "times":
            low, more = draw(st.integers(0, 5)), draw(st.none() | st.integers(0, 5))
            counts = (max(low, 1), None) if more is None else (low, max(low + more, 1))
            pattern = pattern.times(*counts, window=window)
        case "one_or_more":
            pattern = pattern.one_or_more(window=window)
        case "times_or_more":
            pattern = pattern.times_or_more(draw(st.integers(1, 3)), window=window)
    for flag in draw(st.lists(st.sampled_from(FLAGS), max_size=3)):
        pattern = flag(pattern)
    if draw(st.booleans()):
        pattern = pattern.until(draw(conditions))
    return pattern.within_previous(draw(durations)) if draw(st.booleans()) else pattern


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    """Any pattern that the fluent interface can make, useful or not."""
    pattern = draw(sequences(2)).named(draw(text))
    if draw(st.booleans()):
        pattern = pattern.within(draw(durations))
    to = draw(st.sampled_from(SkipTo))
    if to in (SkipTo.FIRST, SkipTo.LAST):
        return pattern.skip(Skip(to, draw(names), draw(st.booleans())))
    return pattern.skip(Skip(to))
