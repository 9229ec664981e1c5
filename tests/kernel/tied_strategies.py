"""Random patterns whose conditions have ties, and events of which many meet them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import count

import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st
from tests.kernel.running import Row
from tests.kernel.strategies import (
    BOOL,
    COLUMNS,
    INT,
    MANY,
    ONCE,
    booleans,
    named,
    patterns,
    windows,
)

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
from cepheid.plan.stages.plan import Plan

CONTIGUITIES = [
    *[Contiguity.RELAXED] * 3,
    *[Contiguity.RELAXED_ANY] * 4,
    Contiguity.STRICT,
    Contiguity.NOT_NEXT,
    *[Contiguity.NOT_FOLLOWED_BY] * 2,
]
QUANTIFIERS = [
    *[ONCE] * 8,
    MANY,
    replace(MANY, greedy=True),
    replace(MANY, combinations=True),
    replace(MANY, consecutive=True),
    replace(MANY, optional=True),
    Quantifier(optional=True),
    Quantifier(Times(2, 2)),
]


@st.composite
def relaxed_patterns(draw: st.DrawFn) -> Pattern:
    """Valid patterns whose stages mostly wait for an event through any others."""
    stages = [draw(stages_of(first=True))]
    stages += draw(st.lists(stages_of(), min_size=1, max_size=3))
    if draw(st.integers(0, 5)) == 0:
        inner = (replace(draw(stages_of(first=True)), quantifier=ONCE), draw(stages_of()))
        quantifier = draw(st.sampled_from([ONCE, MANY, Quantifier(optional=True)]))
        stages.append(Stage("", draw(st.sampled_from(CONTIGUITIES[:7])), quantifier=quantifier, group=inner))
    window = draw(st.sampled_from([None, 6, 12, 24]))
    pattern = Pattern(
        named(stages, (f"s{i}" for i in count())),
        window=None if window is None else timedelta(microseconds=window),
        gap=draw(windows),
        without=BeginWithout("before", Condition("x"), timedelta(microseconds=2))
        if not draw(st.integers(0, 9))
        else None,
    )
    skips = [*[Skip()] * 3, Skip.to_next(), Skip.past_last_event(), Skip.to_last(pattern.leaves[0].name)]
    pattern = replace(pattern, skip_strategy=draw(st.sampled_from(skips)))
    assume(not pattern_problems(pattern, ()))
    return pattern


@st.composite
def stages_of(draw: st.DrawFn, *, first: bool = False) -> Stage:
    contiguity = Contiguity.STRICT if first else draw(st.sampled_from(CONTIGUITIES))
    if contiguity.negated:
        return Stage("", contiguity)
    stage = Stage("", contiguity, quantifier=draw(st.sampled_from(QUANTIFIERS)), window=draw(windows))
    if stage.quantifier.maximum is None and draw(st.booleans()):
        stage = replace(stage, until=Condition("x"))
    return stage


@st.composite
def ties(draw: st.DrawFn, stage: int) -> Script:
    """A comparison of a value of the current event with one of a stage up to `stage`, at times with arithmetic."""
    column = draw(st.sampled_from([0, 0, 0, 1, 1, 2, 3]))
    type_ = COLUMNS[column]
    before = draw(st.sampled_from([0, max(0, stage - 1), max(0, stage - 1), stage]))
    value: Script = CurrentValue(column, type_)
    earlier: Script = StageValue(before, column, type_, from_first=draw(st.integers(0, 5)) == 0)
    if draw(st.integers(0, 7)) == 0 and pa.types.is_integer(type_):
        earlier = Aggregate(draw(st.sampled_from([Fold.MAX, Fold.SUM])), before, column, type_)
    if type_ == INT and draw(st.integers(0, 3)) == 0:
        earlier = Operation(Operator.ADD, (earlier, ConstantValue(1, INT)), INT)
    if type_ == INT and draw(st.integers(0, 7)) == 0:
        value = Operation(Operator.MULTIPLY, (value, ConstantValue(2, INT)), INT)
    comparison = draw(st.sampled_from([*[Operator.EQUAL] * 3, Operator.LESS, Operator.LESS_OR_EQUAL]))
    sides = (value, earlier) if draw(st.booleans()) else (earlier, value)
    return Operation(comparison, sides, BOOL)


@st.composite
def tied(draw: st.DrawFn, stage: int) -> Script:
    """One to three ties, at times among other parts of the condition."""
    parts = draw(st.lists(ties(stage), min_size=1, max_size=3))
    if draw(st.integers(0, 3)) == 0:
        parts.insert(draw(st.integers(0, len(parts))), draw(booleans(stage)))
    return parts[0] if len(parts) == 1 else Operation(Operator.AND, tuple(parts), BOOL)


@st.composite
def tied_plans(draw: st.DrawFn) -> Plan:
    """Plans whose conditions, after the first, mostly have ties; at times all have the same ones."""
    pattern = draw(st.one_of(relaxed_patterns(), relaxed_patterns(), relaxed_patterns(), patterns()))
    leaves, untils = len(pattern.leaves), len(pattern.loops_until)
    same = draw(st.none() | tied(0))
    conditions = []
    for i in range(leaves + untils):
        how = draw(st.integers(0, 5))
        script = None if i == 0 or how == 0 else draw(tied(min(i, leaves - 1)))
        if same is not None and i > 0 and how > 1:
            script = same
        bit = i if i >= leaves else draw(st.sampled_from([None, i, i, i]))
        conditions.append(PlannedCondition(bit, script))
    if pattern.without is not None:
        conditions.append(PlannedCondition(len(conditions), draw(st.none() | booleans(0))))
    column = Name(("x",), ((0, 1),))
    return Plan(
        pattern=pattern,
        schema=Schema(pa.schema([]), (), "t"),
        bits=tuple(Lifted("x", column, BOOL) for _ in conditions),
        values=tuple(Lifted("x", column, type_) for type_ in COLUMNS),
        conditions=tuple(conditions),
        measures=None,
        columns=(),
        outputs=("matches", "timeouts", "no_match"),
    )


@st.composite
def tied_rows(draw: st.DrawFn, bits: int) -> list[Row]:
    """The rows of a key. There are few values, so that ties often hold."""
    values = st.tuples(
        st.sampled_from([0, 0, 1, 1, 2, -1, None, 2**63 - 1]),
        st.sampled_from([0.0, -0.0, 1.5, -1.5, float("nan"), float("-inf"), None]),
        st.sampled_from([0, 150, -75, None]),
        st.sampled_from(["", "a", "a", "é", None]),
    )
    one_bit = st.integers(0, bits - 1).map(lambda bit: 1 << bit)
    masks = st.one_of(one_bit, one_bit, st.integers(0, 2**bits - 1))
    gaps = st.sampled_from([0, 1, 1, 2])
    time, rows = 0, []
    for gap, mask, row in draw(st.lists(st.tuples(gaps, masks, values), max_size=14)):
        time += gap
        rows.append((time, mask, row))
    return rows
