"""Random patterns in SQL and random events, for near misses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st
from tests.kernel.strategies import named
from tests.kernel.strategies import patterns as shapes

from cepheid import why
from cepheid.lang.stages.conditions import Condition
from cepheid.lang.stages.pattern import BeginWithout, Contiguity, Pattern, Quantifier, Skip, Stage, Times
from cepheid.plan.stages.build import check_pattern

START = datetime(2026, 1, 1, tzinfo=UTC)
SETS = 4
"""The sets of events tried with each pattern: planning and compiling it takes most of the time. Each set has keys of
its own.
"""
Row = tuple[str, int, str, int | None]
"""Key, microseconds after START, kind and value."""

rows = st.lists(
    st.tuples(st.sampled_from("xxy"), st.integers(1, 3), st.sampled_from("aabbcd"), st.none() | st.integers(0, 3)),
    min_size=1,
    max_size=12,
)


Value = int | None
IsMet = Callable[[str, Value, Sequence[Value]], bool]
"""Whether an event with this kind and value meets a condition, where stage `s0` has taken events with these values."""


def _at_least(value: Value, least: Value) -> bool:
    return value is not None and least is not None and value >= least


CONDITIONS: dict[str, IsMet] = {
    "kind = 'a'": lambda kind, _v, _s0: kind == "a",
    "kind = 'b'": lambda kind, _v, _s0: kind == "b",
    "kind IN ('a', 'b')": lambda kind, _v, _s0: kind in "ab",
    "v > 1": lambda _kind, v, _s0: _at_least(v, 2),
    "v BETWEEN 1 AND 2": lambda _kind, v, _s0: v in (1, 2),
    "kind <> 'c' AND v > 0": lambda kind, v, _s0: kind != "c" and _at_least(v, 1),
    "v >= s0.v": lambda _kind, v, s0: _at_least(v, next(reversed(s0), None)),
    "v < first(s0.v) + 2 AND kind <> 'd'": lambda kind, v, s0: (
        kind != "d" and v is not None and _at_least(next(iter(s0), None), v - 1)
    ),
    "v >= 0 AND (kind = 'c' OR v = 2)": lambda kind, v, _s0: _at_least(v, 0) and (kind == "c" or v == 2),
}
"""By their text."""
OF_ONE_EVENT = [text for text in CONDITIONS if "s0" not in text]


@st.composite
def patterns(draw: st.DrawFn, *, of: st.SearchStrategy[Pattern] | None = None) -> Pattern:
    """Valid patterns with conditions on `kind` and `v`, of all shapes or those of `of`."""
    shape = draw(shapes() if of is None else of)
    pattern = replace(shape, stages=tuple(draw(conditioned(stage)) for stage in shape.stages))
    if pattern.without is not None:
        pattern = replace(pattern, without=replace(pattern.without, condition=Condition("kind = 'd'")))
    pattern = replace(pattern, skip_strategy=replace(pattern.skip_strategy, error_on_miss=False))
    assume(not check_pattern(pattern))
    return pattern


@st.composite
def conditioned(draw: st.DrawFn, stage: Stage) -> Stage:
    """The stage with conditions, and those within a group."""
    if stage.until is not None:
        stage = replace(stage, until=Condition("kind = 'd'"))
    if stage.group:
        return replace(stage, group=tuple(draw(conditioned(inner)) for inner in stage.group))
    allowed = OF_ONE_EVENT if stage.name == "s0" and draw(st.integers(0, 7)) else [*CONDITIONS]
    texts = [draw(st.sampled_from(allowed))]
    alternative = draw(st.integers(0, 9)) == 0
    if alternative or draw(st.booleans()):
        texts.append(draw(st.sampled_from([one for one in allowed if alternative or _go_together(texts[0], one)])))
    return replace(
        stage, conditions=tuple(Condition(text, alternative=alternative and n > 0) for n, text in enumerate(texts))
    )


def _go_together(first: str, second: str) -> bool:
    """Whether some event meets both."""
    return any(CONDITIONS[first](*one, [1]) and CONDITIONS[second](*one, [1]) for one in EVERY)


@st.composite
def cases_with_faults(draw: st.DrawFn) -> tuple[Pattern, list[list[Row]]]:
    """A pattern, and `SETS` sets of events that follow it from its first stage to its last, but for a fault. Most
    patterns have few loops and groups, so that a start can get far. One in six has any shape.
    """
    pattern = draw(patterns(of=None if draw(st.integers(0, 5)) == 0 else plain_shapes()))
    return pattern, [draw(_rows_with_fault(pattern)) for _ in range(SETS)]


@st.composite
def _rows_with_fault(draw: st.DrawFn, pattern: Pattern) -> list[Row]:
    keys = draw(st.sampled_from(["x", "x", "x", "xx", "xy"]))
    flows = [draw(_flow(pattern)) for _ in keys]
    return [(key, *event) for key, flow in zip(keys, flows, strict=True) for event in flow][:14]


ONCE, TWICE, MANY = Quantifier(), Quantifier(Times(2, 2)), Quantifier(Times(1, None))
QUANTIFIERS = [
    *[ONCE] * 6,
    TWICE,
    replace(TWICE, consecutive=True),
    replace(TWICE, window=timedelta(microseconds=4)),
    Quantifier(Times(2, 3), consecutive=True),
    MANY,
    Quantifier(Times(2, None)),
    Quantifier(Times(3, None), consecutive=True),
    replace(MANY, greedy=True),
    replace(MANY, combinations=True),
    Quantifier(optional=True),
]
TAKING = [Contiguity.STRICT, Contiguity.RELAXED, Contiguity.RELAXED, Contiguity.RELAXED_ANY]
NEGATED = [Contiguity.NOT_NEXT, Contiguity.NOT_FOLLOWED_BY]


def some_lengths(*choices: int, of: int) -> st.SearchStrategy[timedelta | None]:
    """One of these numbers of microseconds, or in most of `of` cases none."""
    each = [timedelta(microseconds=choice) for choice in choices]
    return st.sampled_from([*[None] * (of - len(each)), *each])


@st.composite
def _plain_stages(draw: st.DrawFn, *, most: int, is_group: bool = False) -> tuple[Stage, ...]:
    stages: list[Stage] = []
    for i in range(draw(st.integers(1 if is_group else 2, most))):
        may_be_negated = i > 0 and not stages[-1].contiguity.negated and not stages[-1].quantifier.optional
        if may_be_negated and draw(st.integers(0, 2)) == 0:
            stages.append(Stage("", draw(st.sampled_from(NEGATED))))
            continue
        contiguity = draw(st.sampled_from(TAKING)) if i else Contiguity.STRICT
        quantifier = draw(st.sampled_from(QUANTIFIERS))
        group = () if is_group or draw(st.integers(0, 7)) else draw(_plain_stages(most=2, is_group=True))
        window = draw(some_lengths(3, 5, of=16)) if i else None
        until = Condition("x") if quantifier.maximum is None and draw(st.booleans()) else None
        stages.append(Stage("", contiguity, quantifier=quantifier, until=until, window=window, group=group))
    return tuple(stages)


@st.composite
def plain_shapes(draw: st.DrawFn) -> Pattern:
    """Patterns without conditions, in which few stages loop; some are refused."""
    stages = named(draw(_plain_stages(most=4)), (f"s{i}" for i in count()))
    last = stages[-1]
    if last.quantifier.loops and not last.quantifier.greedy and draw(st.booleans()):
        stages = (*stages[:-1], replace(last, quantifier=replace(last.quantifier, longest=True)))
    needs_window = last.contiguity is Contiguity.NOT_FOLLOWED_BY
    window = draw(some_lengths(8, 14, 20, of=3 if needs_window else 8))
    before = draw(some_lengths(3, 6, of=10))
    without = None if before is None else BeginWithout("before", Condition("x"), before)
    names = [stage.name for stage in stages if not stage.contiguity.negated and not stage.group]
    skips = [Skip(), Skip.to_next(), Skip.past_last_event()]
    skips += [skip(name, error_on_miss=False) for name in names[-1:] for skip in (Skip.to_first, Skip.to_last)]
    return Pattern(
        stages,
        window=window,
        gap=draw(some_lengths(3, 5, of=16)),
        without=without,
        skip_strategy=draw(st.sampled_from(skips)),
    )


Event = tuple[int, str, Value]
"""Microseconds after the event before, kind and value."""
ANY_EVENT = st.tuples(st.integers(1, 3), st.sampled_from("aabbcd"), st.none() | st.integers(0, 3))
EVERY = [(kind, v) for kind in "abcd" for v in (None, 0, 1, 2, 3)]


@st.composite
def _flow(draw: st.DrawFn, pattern: Pattern) -> list[Event]:
    """Events for the stages in turn. At one place there is a fault: an event that does not meet the conditions, one
    that is in the way or ends the loop, or a long time before the event. Instead, loops may have an event too few or
    too many, or an event comes before that `begin_without` may forbid.
    """
    events, s0 = list[Event](), list[Value]()
    wrong = draw(st.sampled_from(["event", "event", "event", "event", "fewer", "more", "before"]))
    leaves = [leaf for stage in pattern.stages for leaf in draw(_in_turn(stage, wrong))]
    faulty = draw(st.integers(max(min(1, len(leaves) - 1), 0), max(len(leaves) - 1, 1)))
    if wrong != "event":
        faulty = len(leaves)
    if wrong == "before":
        events.append((1, "d", 1))
    fault = draw(st.sampled_from(_faults_at(leaves[faulty], pattern))) if faulty < len(leaves) else ""
    for place, leaf in enumerate(leaves):
        after = draw(st.sampled_from([1, 1, 1, 2]))
        if place == faulty and fault == "late":
            after += min(_lengths_at(leaf, pattern))
        if leaf.contiguity.negated:
            if place == faulty:
                events.append((after, *draw(_event(leaf, s0))))
            continue
        if place == faulty and fault == "in the way":
            events.append((1, *draw(_other_event(leaf, s0))))
        if place == faulty and fault == "until":
            events.append((1, "d", 1))
        is_wrong = place == faulty and fault == "value"
        before = leaves[place - 1] if place else None
        kind, v = draw(_other_event(leaf, s0) if is_wrong else _event(leaf, s0, after=before))
        events.append((after, kind, v))
        if leaf.name == "s0":
            s0.append(v)
    return events + draw(st.lists(ANY_EVENT, min_size=0 if events else 1, max_size=2))


@st.composite
def _in_turn(draw: st.DrawFn, stage: Stage, wrong: str) -> list[Stage]:
    """The leaves of the stage, as often as it may take events; if that is `wrong`, once less or more often."""
    if stage.contiguity.negated:
        return [stage]
    quantifier = stage.quantifier
    most = quantifier.minimum + 1 if quantifier.maximum is None else min(quantifier.maximum, quantifier.minimum + 1)
    least = 0 if quantifier.optional and draw(st.integers(0, 3)) == 0 else quantifier.minimum
    turns_ = draw(st.integers(least, most)) if draw(st.booleans()) else max(least, 1)
    if wrong == "fewer" and quantifier.minimum > 1:
        turns_ = quantifier.minimum - 1
    if wrong == "more" and quantifier.maximum not in (None, 1):
        turns_ = quantifier.maximum + 1
    leaves = [stage] if not stage.group else [leaf for inner in stage.group for leaf in draw(_in_turn(inner, wrong))]
    return leaves * turns_


def _faults_at(leaf: Stage, pattern: Pattern) -> list[str]:
    """What may keep an event from its stage."""
    is_strict = leaf.contiguity is Contiguity.STRICT or leaf.quantifier.consecutive
    ends_loop = leaf.until is not None
    return ["value", *["in the way"] * is_strict, *["until"] * ends_loop, *["late"] * len(_lengths_at(leaf, pattern))]


def _lengths_at(leaf: Stage, pattern: Pattern) -> list[int]:
    """The windows and gaps that bound when an event of the stage may come, in microseconds."""
    lengths = (pattern.window, pattern.gap, leaf.window, leaf.quantifier.window)
    return [length // timedelta(microseconds=1) for length in lengths if length is not None]


def _event(leaf: Stage, s0: Sequence[Value], *, after: Stage | None = None) -> st.SearchStrategy[tuple[str, Value]]:
    """A kind and a value that meet the conditions of the stage, and not those of a NOT before it; any, if there are
    none.
    """
    met = [one for one in EVERY if _is_met(leaf, *one, s0)]
    if after is not None and after.contiguity.negated:
        met = [one for one in met if not _is_met(after, *one, s0)] or met
    return st.sampled_from(met or EVERY)


def _other_event(leaf: Stage, s0: Sequence[Value]) -> st.SearchStrategy[tuple[str, Value]]:
    """A kind and a value that do not meet the conditions of the stage."""
    return st.sampled_from([one for one in EVERY if not _is_met(leaf, *one, s0)])


def _is_met(stage: Stage, kind: str, v: Value, s0: Sequence[Value]) -> bool:
    met = [CONDITIONS[condition.text](kind, v, s0) for condition in stage.conditions]
    return any(met) if any(getattr(one, "alternative", False) for one in stage.conditions) else all(met)


def events_of(sets: Sequence[Sequence[Row]], *, tied: bool = False) -> pa.Table:
    """The events of each set, in the order of their times: each comes some microseconds after the one before; if they
    are `tied`, one less, so that some times agree. Each set has keys of its own.
    """
    times = []
    for rows in sets:
        at = START
        for _, after, _, _ in rows:
            at += timedelta(microseconds=after - tied)
            times.append(at)
    rows = [(f"{key}{number}", *event) for number, rows in enumerate(sets) for key, *event in rows]
    return pa.table(
        {
            "k": pa.array([row[0] for row in rows], pa.string()),
            "at": pa.array(times, pa.timestamp("us", "UTC")),
            "kind": pa.array([row[2] for row in rows], pa.string()),
            "v": pa.array([row[3] for row in rows], pa.int64()),
        }
    )


def without_skip(pattern: Pattern) -> Pattern:
    return pattern.skip(Skip.no_skip())


def starts_of_partial_matches(table: pa.Table, pattern: Pattern, options: Mapping[str, Any]) -> set[int]:
    """The rows of the events that a partial match of the pattern takes first, or would without `begin_without`. Each
    event is offered to the first stage once, in order.
    """
    found = set[int]()
    asked = why(table, replace(without_skip(pattern), without=None), **options)
    for key in set(table["k"].to_pylist()):
        offered = [one for one in asked.trace({"k": key}).steps if one.event is not None and not one.partial_match]
        own = [row for row, of in enumerate(table["k"].to_pylist()) if of == key]
        found |= {row for row, step in zip(own, offered, strict=False) if step.outcome.startswith("taken by")}
    return found
