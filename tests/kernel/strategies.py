"""Random patterns, scripts and events for tests at the border of the kernel: plans without SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache
from itertools import count

import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

from cepheid.events.batch import Schema
from cepheid.lang.expression import Name
from cepheid.lang.stages.conditions import Condition
from cepheid.lang.stages.pattern import BeginWithout, Contiguity, Pattern, Quantifier, Skip, Stage, Times
from cepheid.plan.conditions.script import (
    Aggregate,
    ConstantValue,
    CurrentValue,
    Fold,
    Operation,
    Operator,
    Script,
    StageValue,
)
from cepheid.plan.lifted import Lifted, PlannedCondition
from cepheid.plan.stages.check import pattern_problems
from cepheid.plan.stages.longest import can_be_empty
from cepheid.plan.stages.plan import Plan

INT, DOUBLE, BOOL, STRING = pa.int64(), pa.float64(), pa.bool_(), pa.string()
PRICE = pa.decimal128(6, 2)
COLUMNS = (INT, DOUBLE, PRICE, STRING)
WHOLE = st.sampled_from([Operator.FLOOR, Operator.CEIL])
VARIATIONS = [fold for fold in Fold if fold.varies]
INT_COLUMN, DOUBLE_COLUMN, DECIMAL_COLUMN, STRING_COLUMN = range(4)

times = st.sampled_from([None, None, Times(1, None), Times(2, None), Times(1, 3), Times(2, 2), Times(2, 4)])
windows = st.sampled_from([None, None, None, 1, 2, 4]).map(lambda w: None if w is None else timedelta(microseconds=w))


@st.composite
def quantifiers(draw: st.DrawFn) -> Quantifier:
    if (often := draw(times)) is None:
        return Quantifier(optional=draw(st.booleans()))
    inner = draw(st.sampled_from(["", "", "consecutive", "combinations", "greedy"]))
    flags = {inner: True} if inner else {}
    return Quantifier(often, optional=draw(st.booleans()), window=draw(windows), **flags)


@st.composite
def sequences(draw: st.DrawFn, *, depth: int, most: int) -> tuple[Stage, ...]:
    """Stages without names, for a pattern or a group; some of them are groups."""
    stages: list[Stage] = []
    for i in range(draw(st.integers(1, most))):
        may_be_negated = bool(stages) and not stages[-1].quantifier.optional
        contiguity = Contiguity.STRICT if i == 0 else draw(st.sampled_from(Contiguity) if may_be_negated else TAKING)
        if contiguity.negated:
            stages.append(Stage("", contiguity))
            continue
        group = draw(sequences(depth=depth - 1, most=2)) if depth and draw(st.integers(0, 3)) == 0 else ()
        quantifier = draw(quantifiers())
        if group:
            quantifier = replace(quantifier, greedy=False)
            if quantifier.maximum is None and all(map(can_be_empty, group)):
                quantifier = replace(quantifier, times=Times(1, 3))
        stage = Stage("", contiguity, quantifier=quantifier, window=draw(windows), group=group)
        if quantifier.maximum is None and draw(st.booleans()):
            stage = replace(stage, until=Condition("x"))
        stages.append(stage)
    return tuple(stages)


ONCE, MANY = Quantifier(), Quantifier(Times(1, None))
QUANTIFIERS = [
    ONCE,
    ONCE,
    ONCE,
    MANY,
    replace(MANY, consecutive=True),
    replace(MANY, greedy=True),
    replace(MANY, combinations=True),
    replace(MANY, optional=True),
    Quantifier(optional=True),
    Quantifier(Times(2, 2)),
    Quantifier(Times(1, 2), consecutive=True),
]
SOME_WINDOWS = st.sampled_from([None, None, None, None, timedelta(microseconds=4)])
TAKING = st.sampled_from([Contiguity.STRICT, Contiguity.RELAXED, Contiguity.RELAXED, Contiguity.RELAXED_ANY])


@st.composite
def turns(draw: st.DrawFn, *, most: int, depth: int = 0) -> tuple[Stage, ...]:
    """The stages of a longest group, with few nested loops, most of which would be refused."""
    stages: list[Stage] = []
    for i in range(draw(st.integers(1, most))):
        if i > 0 and not stages[-1].quantifier.optional and draw(st.integers(0, 7)) == 0:
            stages.append(Stage("", draw(st.sampled_from([Contiguity.NOT_NEXT, Contiguity.NOT_FOLLOWED_BY]))))
            continue
        quantifier, group = draw(st.sampled_from(QUANTIFIERS)), ()
        if depth and not quantifier.greedy and draw(st.integers(0, 5)) == 0:
            group = draw(turns(most=2))
        contiguity = draw(TAKING) if i else Contiguity.STRICT
        stages.append(Stage("", contiguity, quantifier=quantifier, window=draw(SOME_WINDOWS), group=group))
    return tuple(stages)


@st.composite
def longest_groups(draw: st.DrawFn) -> Stage:
    """The last stage of a pattern, or its only one; some are refused."""
    most = draw(st.sampled_from([Times(1, None), Times(1, None), Times(2, None), Times(1, 3), Times(2, 2)]))
    flags = {flag: draw(st.booleans()) for flag in ("optional", "consecutive")}
    return Stage(
        "",
        draw(TAKING),
        quantifier=Quantifier(most, window=draw(SOME_WINDOWS), longest=True, **flags),
        until="x" if most.maximum is None and draw(st.booleans()) else None,
        window=draw(SOME_WINDOWS),
        group=draw(turns(most=3, depth=1)),
    )


def named(stages: Sequence[Stage], names: Iterator[str]) -> tuple[Stage, ...]:
    return tuple(
        replace(stage, group=named(stage.group, names)) if stage.group else replace(stage, name=next(names))
        for stage in stages
    )


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    """Valid patterns."""
    window = draw(st.sampled_from([None, 4, 6, 12]))
    length = None if window is None else timedelta(microseconds=window)
    stages = draw(sequences(depth=2, most=4))
    last = stages[-1]
    if draw(st.integers(0, 3)) == 0:
        group = draw(longest_groups())
        stages = (*stages[:-1], group if len(stages) > 1 else replace(group, contiguity=Contiguity.STRICT))
    elif last.quantifier.loops and not (last.quantifier.greedy or last.quantifier.combinations) and draw(st.booleans()):
        stages = (*stages[:-1], replace(last, quantifier=replace(last.quantifier, longest=True)))
    stages = named(stages, (f"s{i}" for i in count()))
    gap, before = draw(windows), draw(windows)
    without = None if before is None else BeginWithout("before", Condition("x"), before)
    pattern = Pattern(stages, window=length, gap=gap, without=without)
    skips = [Skip(), Skip.to_next(), Skip.past_last_event()]
    name = draw(st.sampled_from([leaf.name for leaf in pattern.leaves if not leaf.contiguity.negated]))
    skips += [Skip.to_first(name, error_on_miss=checked) for checked in (False, True)]
    skips += [Skip.to_last(name, error_on_miss=checked) for checked in (False, True)]
    pattern = replace(pattern, skip_strategy=draw(st.sampled_from(skips)))
    assume(not pattern_problems(pattern, ()))
    return pattern


def scripts_of(make: Callable[[int], st.SearchStrategy[Script]]) -> Callable[[int], st.SearchStrategy[Script]]:
    """The strategy, shown only by its function's name: its full description would fill many pages."""
    made = cache(make)

    @st.composite
    def scripts(draw: st.DrawFn, stage: int) -> Script:
        return draw(made(stage))

    return scripts


@scripts_of
def integers(stage: int) -> st.SearchStrategy[Script]:
    """Scripts of type BIGINT that refer to stages up to `stage`."""
    seen = st.integers(0, stage)
    leaves = st.one_of(
        st.integers(-2, 3).map(lambda value: ConstantValue(value, INT)),
        st.just(ConstantValue(None, INT)),
        st.just(CurrentValue(INT_COLUMN, INT)),
        st.builds(lambda s, b, f: StageValue(s, INT_COLUMN, INT, b, f), seen, st.integers(0, 2), st.booleans()),
        st.builds(
            lambda fold, s: Aggregate(fold, s, INT_COLUMN, INT), st.sampled_from([Fold.SUM, Fold.MIN, Fold.MAX]), seen
        ),
        st.builds(
            lambda s, c: Aggregate(Fold.COUNT, s, c, INT), seen, st.sampled_from([None, INT_COLUMN, DOUBLE_COLUMN])
        ),
        st.builds(lambda s, c: Aggregate(Fold.DISTINCT, s, c, INT), seen, st.integers(0, len(COLUMNS) - 1)),
    )
    of_doubles = [CurrentValue(DOUBLE_COLUMN, DOUBLE), Aggregate(Fold.AVG, stage, INT_COLUMN, DOUBLE)]
    binary = st.sampled_from(
        [
            Operator.ADD,
            Operator.SUBTRACT,
            Operator.MULTIPLY,
            Operator.LEAST,
            Operator.GREATEST,
            Operator.COALESCE,
            Operator.INTEGER_DIVIDE,
            Operator.REMAINDER,
        ]
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(lambda o, a, b: Operation(o, (a, b), INT), binary, inner, inner),
            st.builds(lambda o, a: Operation(o, (a,), INT), st.sampled_from([Operator.NEGATE, Operator.ABS]), inner),
            st.builds(lambda o, a: Operation(o, (a,), INT), WHOLE, st.sampled_from(of_doubles)),
        ),
        max_leaves=3,
    )


@scripts_of
def doubles(stage: int) -> st.SearchStrategy[Script]:
    seen = st.integers(0, stage)
    leaves = st.one_of(
        st.sampled_from([0.5, -0.0, float("nan")]).map(lambda value: ConstantValue(value, DOUBLE)),
        st.just(CurrentValue(DOUBLE_COLUMN, DOUBLE)),
        st.builds(lambda s, b: StageValue(s, DOUBLE_COLUMN, DOUBLE, b), seen, st.integers(0, 1)),
        st.builds(
            lambda fold, s: Aggregate(fold, s, DOUBLE_COLUMN, DOUBLE),
            st.sampled_from([Fold.SUM, Fold.AVG, Fold.MIN, Fold.MAX, *VARIATIONS]),
            seen,
        ),
        st.builds(lambda s: Aggregate(Fold.AVG, s, INT_COLUMN, DOUBLE), seen),
        integers(stage).map(lambda script: Operation(Operator.CAST, (script,), DOUBLE)),
        decimals(stage).map(lambda script: Operation(Operator.CAST, (script,), DOUBLE)),
    )
    binary = st.sampled_from(
        [
            Operator.ADD,
            Operator.SUBTRACT,
            Operator.MULTIPLY,
            Operator.DIVIDE,
            Operator.REMAINDER,
            Operator.LEAST,
            Operator.GREATEST,
            Operator.POWER,
        ]
    )
    unary = st.sampled_from([Operator.SQRT, Operator.EXP, Operator.LN, Operator.LOG10])
    return st.one_of(
        leaves,
        st.builds(lambda o, a, b: Operation(o, (a, b), DOUBLE), binary, leaves, leaves),
        st.builds(lambda o, a: Operation(o, (a,), DOUBLE), unary, leaves),
        st.builds(
            lambda a, digits: Operation(Operator.ROUND, (a, ConstantValue(digits, pa.int32())), DOUBLE),
            leaves,
            st.integers(0, 15),
        ),
    )


@scripts_of
def decimals(stage: int) -> st.SearchStrategy[Script]:
    """Scripts of type DECIMAL(6, 2)."""
    seen = st.integers(0, stage)
    leaves = st.one_of(
        st.just(CurrentValue(DECIMAL_COLUMN, PRICE)),
        st.builds(lambda s: StageValue(s, DECIMAL_COLUMN, PRICE), seen),
        st.builds(
            lambda fold, s: Aggregate(fold, s, DECIMAL_COLUMN, PRICE), st.sampled_from([Fold.MIN, Fold.MAX]), seen
        ),
    )
    average = st.builds(lambda s: Aggregate(Fold.AVG, s, DECIMAL_COLUMN, pa.decimal128(10, 6)), seen)
    quotient = st.builds(lambda a, b: Operation(Operator.DIVIDE, (a, b), pa.decimal128(15, 9)), leaves, leaves)
    whole = st.builds(lambda o, a: Operation(o, (a,), pa.decimal128(5, 0)), WHOLE, leaves)
    return leaves | (average | quotient | whole).map(lambda script: Operation(Operator.CAST, (script,), PRICE))


@scripts_of
def strings(stage: int) -> st.SearchStrategy[Script]:
    return st.one_of(
        st.just(CurrentValue(STRING_COLUMN, STRING)),
        st.sampled_from(["", "b", "é"]).map(lambda value: ConstantValue(value, STRING)),
        st.builds(lambda s: StageValue(s, STRING_COLUMN, STRING), st.integers(0, stage)),
        st.builds(
            lambda fold, s: Aggregate(fold, s, STRING_COLUMN, STRING),
            st.sampled_from([Fold.MIN, Fold.MAX]),
            st.integers(0, stage),
        ),
    )


@scripts_of
def booleans(stage: int) -> st.SearchStrategy[Script]:
    comparison = st.sampled_from([Operator.EQUAL, Operator.LESS, Operator.LESS_OR_EQUAL, Operator.NULL_SAFE_EQUAL])
    leaves = st.one_of(
        *(
            st.builds(lambda o, a, b: Operation(o, (a, b), BOOL), comparison, operand(stage), operand(stage))
            for operand in (integers, doubles, decimals, strings)
        ),
        integers(stage).map(lambda script: Operation(Operator.IS_NULL, (script,), BOOL)),
        st.sampled_from([True, False, None]).map(lambda value: ConstantValue(value, BOOL)),
    )
    connective = st.sampled_from([Operator.AND, Operator.OR])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(lambda o, a, b: Operation(o, (a, b), BOOL), connective, inner, inner),
            inner.map(lambda script: Operation(Operator.NOT, (script,), BOOL)),
            st.builds(lambda a, b, c: Operation(Operator.CASE, (a, b, c), BOOL), inner, inner, inner),
            st.builds(lambda a, b: Operation(Operator.FAIL_IF, (a, b), BOOL), inner, inner),
        ),
        max_leaves=4,
    )


@st.composite
def plans(draw: st.DrawFn, *, scripted: bool = True, of: st.SearchStrategy[Pattern] | None = None) -> Plan:
    pattern = draw(of if of is not None else patterns())
    column = Name(("x",), ((0, 1),))
    conditions = tuple(
        PlannedCondition(
            bit=draw(st.sampled_from([None, i, i, i]))
            if i < len(pattern.leaves)
            else i,  # an until stage has a condition
            script=draw(st.none() | booleans(min(i, len(pattern.leaves) - 1))) if scripted else None,
        )
        for i in range(len(pattern.leaves) + len(pattern.loops_until))
    )
    if pattern.without is not None:
        bit = draw(st.sampled_from([None, *[len(conditions)] * 3]))
        conditions += (PlannedCondition(bit, draw(st.none() | booleans(0)) if scripted else None),)
    return Plan(
        pattern=pattern,
        schema=Schema(pa.schema([]), (), "t"),
        bits=tuple(Lifted("x", column, BOOL) for _ in conditions),
        values=tuple(Lifted("x", column, type_) for type_ in COLUMNS),
        conditions=conditions,
        measures=None,
        columns=(),
        outputs=("matches", "timeouts", "no_match"),
    )


@st.composite
def event_rows(draw: st.DrawFn, bits: int) -> list[tuple[int, int, tuple[object, ...]]]:
    """Time, mask and values of the events of one key, in order."""
    values = st.tuples(
        st.none() | st.integers(-3, 3) | st.just(2**63 - 1),
        st.none() | st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf")]),
        st.none() | st.sampled_from([0, 150, -75, 999_999]),
        st.none() | st.sampled_from(["", "a", "b", "é"]),
    )
    size = draw(st.integers(0, 10))
    gaps = draw(st.lists(st.sampled_from([0, 1, 1, 2, 4]), min_size=size, max_size=size))
    masks = st.integers(0, 2**bits - 1)
    time, rows = 0, []
    for gap in gaps:
        time += gap
        rows.append((time, draw(masks), draw(values)))
    return rows
