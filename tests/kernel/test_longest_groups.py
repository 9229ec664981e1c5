"""`longest` on a group, in the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import accumulate

import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st
from tests.kernel.strategies import TAKING, longest_groups, named, turns

from cepheid.compile.stages.automaton import build_automaton
from cepheid.kernel.reference_events import Event
from cepheid.kernel.stages.reference import Match, ReferenceMatcher
from cepheid.lang.duration import microseconds
from cepheid.lang.stages.pattern import Contiguity, Pattern, Skip, SkipTo
from cepheid.plan.lifted import PlannedCondition
from cepheid.plan.stages.check import pattern_problems
from cepheid.plan.stages.longest import longest_group_problems
from cepheid.plan.stages.plan import SkipRule

Taken = tuple[tuple[int, int], ...]


def matcher_of(pattern: Pattern, conditions: Sequence[PlannedCondition]) -> ReferenceMatcher:
    window = None if pattern.window is None else microseconds(pattern.window)
    skip, names = pattern.skip_strategy, [leaf.name for leaf in pattern.leaves]
    stage = None if skip.stage is None else names.index(skip.stage)
    return ReferenceMatcher(build_automaton(pattern), conditions, window, SkipRule(skip.to, stage, skip.error_on_miss))


def stage(letter: str) -> Pattern:
    return Pattern.begin(letter)


def found(pattern: Pattern, letters: str, *, finish: bool = True) -> list[str]:
    """Matches as text, each with the time at which it was certain. A stage takes the events with the first letter of
    its name, there is one event per microsecond, and z is an event that ends the group's loop.
    """
    names = [*(leaf.name for leaf in pattern.leaves), *("z" for _ in pattern.loops_until)]
    assert not [*longest_group_problems(pattern.stages[-1], pattern)]
    matcher = matcher_of(pattern, [PlannedCondition(bit, None) for bit in range(len(names))])
    matches: list[Match] = []
    for time, letter in enumerate(letters):
        mask = sum(1 << bit for bit, name in enumerate(names) if name[0] == letter)
        matches += matcher.process(Event(time, time, mask, ()))
    matches += matcher.finish() if finish else []
    ends = ("the end" if match.detected_at is None else match.detected_at for match in matches)
    taken = (" ".join(f"{names[stage]}{position}" for stage, position in match.taken) for match in matches)
    return [f"{text} at {end}" for text, end in zip(taken, ends, strict=True)]


BC = stage("b").next("c")
STRICT = stage("a").next(BC).one_or_more().consecutive().longest()
RELAXED = stage("a").followed_by(BC).one_or_more().longest().within("9 microseconds")


def test_the_last_complete_turn_counts() -> None:
    """If a loop is broken within a turn, the match has the complete turns before, and is emitted at the event that
    breaks it.
    """
    assert found(STRICT, "abcbcbx") == ["a0 b1 c2 b3 c4 at 6"]
    assert found(STRICT, "abcbcx") == ["a0 b1 c2 b3 c4 at 5"]
    assert found(STRICT, "abcbcb") == ["a0 b1 c2 b3 c4 at the end"]
    assert found(STRICT, "abcbcb", finish=False) == []


def test_below_the_least_number_of_turns() -> None:
    """A loop with too few complete turns gives no match."""
    assert found(STRICT, "abx") == []
    twice = stage("a").next(BC).times_or_more(2).consecutive().longest()
    assert found(twice, "abcbx") == []
    assert found(twice, "abcbcbx") == ["a0 b1 c2 b3 c4 at 6"]


def test_the_greatest_number_of_turns() -> None:
    """The match is certain as soon as no further turn is possible."""
    twice = stage("a").next(BC).times(1, 2).consecutive().longest()
    assert found(twice, "abcbcbc") == ["a0 b1 c2 b3 c4 at 4"]
    assert found(twice, "abcbb") == ["a0 b1 c2 at 4"]


def test_a_loop_at_the_end_of_the_last_turn() -> None:
    """If the last turn may still grow, the match waits."""
    turns = stage("b").next("c").one_or_more().consecutive()
    assert found(stage("a").next(turns).times(2).consecutive().longest(), "abcbccx") == ["a0 b1 c2 b3 c4 c5 at 6"]


def test_the_deadline() -> None:
    """At the deadline, the complete turns are a match, emitted before the events of that time; an incomplete turn is
    not part of it.
    """
    assert found(RELAXED, "axxxbcxxxb") == ["a0 b4 c5 at 9"]
    assert found(RELAXED, "abcxbcxxbcc") == ["a0 b1 c2 b4 c5 at 9"]


def test_timeouts() -> None:
    """A partial match with a complete turn does not time out; one without does."""
    matcher = matcher_of(RELAXED, [PlannedCondition(bit, None) for bit in range(3)])
    for time, mask in enumerate([1, 2, 4, 2]):
        matcher.process(Event(time, time, mask, ()))
    assert [match.taken for match in matcher.advance_time(9)] == [((0, 0), (1, 1), (2, 2))]
    assert not matcher.timeouts
    for time, mask in enumerate([1, 2], start=20):
        matcher.process(Event(time, time, mask, ()))
    matcher.advance_time(29)
    assert [timeout.taken for timeout in matcher.timeouts] == [((0, 20), (1, 21))]


def test_until() -> None:
    """The event of `until` ends the loop, also within a turn."""
    ended = stage("a").followed_by(BC).one_or_more().until("z").longest()
    assert found(ended, "abcxbcz") == ["a0 b1 c2 b4 c5 at 6"]
    assert found(ended, "abcxbz") == ["a0 b1 c2 at 5"]


def test_a_match_may_start_at_the_event_that_breaks_the_loop() -> None:
    """The match is emitted before the event that breaks the loop may start another one."""
    overlapping = STRICT.skip(Skip.past_last_event())
    assert found(overlapping, "abcabc") == ["a0 b1 c2 at 3", "a3 b4 c5 at the end"]


def test_an_optional_stage_at_the_end_of_a_turn() -> None:
    """A turn that was complete without its optional last stage counts once, with that stage."""
    group = stage("b").next("c").optional()
    pattern = stage("a").next(group).one_or_more().consecutive().longest()
    assert found(pattern, "abcbx") == ["a0 b1 c2 b3 at 4"]
    assert found(pattern, "abcx") == ["a0 b1 c2 at 3"]


def test_an_optional_group() -> None:
    """Without a turn, the match consists of the events before the loop, and is certain when no turn may begin."""
    assert found(STRICT.optional(), "ax") == ["a0 at 1"]
    assert found(STRICT.optional(), "abx") == ["a0 at 2"]
    assert found(STRICT.optional(), "abcx") == ["a0 b1 c2 at 3"]
    several = stage("a").one_or_more().consecutive().next(BC).one_or_more().consecutive().optional().longest()
    assert found(several, "aabcx") == ["a0 at 1", "a0 a1 b2 c3 at 4", "a1 b2 c3 at 4"]


def test_branches_within_a_turn() -> None:
    """Each path through the group that no other path extends gives a match. Complete turns are emitted once, even if
    several partial matches share them, and not at all if one of these extends them.
    """
    any_ = stage("a").next(stage("b").followed_by_any("c")).one_or_more().longest().within("20 microseconds")
    assert found(any_, "abcxc") == ["a0 b1 c2 at 20", "a0 b1 c4 at 20"]
    assert found(any_, "abcbc") == ["a0 b1 c2 b3 c4 at 20", "a0 b1 c4 at 20"]
    inner = stage("b").one_or_more().consecutive().next("c")
    runs = stage("a").next(inner).one_or_more().consecutive().longest()
    assert found(runs, "abbcbbbcbbx") == ["a0 b1 b2 c3 b4 b5 b6 c7 at 10"]


def test_a_branch_that_ends_while_another_continues() -> None:
    """A branch that ends gives no match while another branch may still extend its events."""
    either = stage("b").next("c").optional().followed_by("d")
    pattern = stage("a").next(either).one_or_more().longest().within("20 microseconds")
    assert found(pattern, "abdbcxd") == ["a0 b1 d2 b3 c4 d6 at 20", "a0 b1 d2 b3 d6 at 20"]
    assert found(pattern, "abdbcx") == ["a0 b1 d2 at 20"]


def test_a_not_within_the_group() -> None:
    """The forbidden event ends the turn; the complete turns before it are the match."""
    group = stage("b").not_followed_by("n").next("c")
    assert found(stage("a").next(group).one_or_more().consecutive().longest(), "abcbnc") == ["a0 b1 c2 at 4"]


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    """Patterns with a longest group."""
    before = draw(st.just(()) | turns(most=2))
    last = replace(draw(longest_groups()), contiguity=draw(TAKING) if before else Contiguity.STRICT)
    stages = named((*before, last), (f"s{i}" for i in range(20)))
    pattern = Pattern(stages, window=draw(st.sampled_from([None, *(timedelta(microseconds=n) for n in (6, 9, 12))])))
    assume(not pattern_problems(without_longest(pattern), ()))
    assume(not [*longest_group_problems(pattern.stages[-1], pattern)])
    return pattern


@st.composite
def event_rows(draw: st.DrawFn, pattern: Pattern) -> list[tuple[int, int]]:
    """Time and mask of events; most are taken by some stage, and few by many stages."""
    takes = [bit for bit, leaf in enumerate(pattern.leaves) if not leaf.contiguity.negated]
    stops = range(len(pattern.leaves) + len(pattern.loops_until))
    bits = st.sampled_from(takes) | st.sampled_from(takes) | st.sampled_from(stops)
    masks = st.lists(bits, min_size=1, max_size=3).map(lambda chosen: sum(1 << bit for bit in set(chosen)))
    gaps = draw(st.lists(st.sampled_from([0, 1, 1, 1, 3]), min_size=3, max_size=10))
    return [(time, draw(masks)) for time in accumulate(gaps)]


def without_longest(pattern: Pattern) -> Pattern:
    last = pattern.stages[-1]
    plain = replace(last, quantifier=replace(last.quantifier, longest=False))
    return replace(pattern, stages=(*pattern.stages[:-1], plain))


def matches_of(pattern: Pattern, rows: list[tuple[int, int]]) -> list[Taken]:
    size = len(pattern.leaves) + len(pattern.loops_until)
    matcher = matcher_of(pattern, [PlannedCondition(bit, None) for bit in range(size)])
    events = [Event(position, time, mask, ()) for position, (time, mask) in enumerate(rows)]
    matches = [match for event in events for match in matcher.process(event)] + matcher.finish()
    return [match.taken for match in matches]


@given(st.data())
def test_what_longest_leaves_out(data: st.DataObject) -> None:
    """Of the matches without longest, exactly those remain that no other match extends with events of the loop, each
    once.
    """
    pattern = data.draw(patterns())
    rows = data.draw(event_rows(pattern))
    loop = range(len(pattern.leaves) - len(pattern.stages[-1].leaves), len(pattern.leaves))
    plain = matches_of(without_longest(pattern), rows)
    got = matches_of(pattern, rows)
    note(f"without {plain}\n    got {got}")
    assert sorted(got) == sorted(match for match in set(plain) if not any(continues(p, match, loop) for p in plain))


def continues(match: Taken, other: Taken, loop: range) -> bool:
    more = match[len(other) :]
    return match[: len(other)] == other and bool(more) and all(stage in loop for stage, _ in more)


@given(st.data(), st.sampled_from(SkipTo))
def test_skip_strategies(data: st.DataObject, to: SkipTo) -> None:
    """A skip strategy only removes matches, and no match is left withheld."""
    pattern = data.draw(patterns())
    rows = data.draw(event_rows(pattern))
    first = next(leaf.name for leaf in pattern.leaves if not leaf.contiguity.negated)
    every = matches_of(pattern, rows)
    got = matches_of(pattern.skip(Skip(to, first if to in (SkipTo.FIRST, SkipTo.LAST) else None)), rows)
    note(f"every {every}\n  got {got}")
    assert set(got) <= set(every)
    assert bool(got) == bool(every)


@pytest.mark.parametrize("pattern", [STRICT, RELAXED])
def test_the_automaton_does_not_depend_on_longest(pattern: Pattern) -> None:
    """Longest changes which matches are emitted, not how partial matches move."""
    automaton = build_automaton(pattern)
    assert automaton.loop == {1, 2}
    assert replace(automaton, loop=frozenset()) == build_automaton(without_longest(pattern))
