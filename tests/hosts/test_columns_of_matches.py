"""Scripts that are evaluated for many events of matches at once give what the definition gives for each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.searching import share

from cepheid.errors import ConditionError
from cepheid.events.batch import MASK, TIME, VALUE_PREFIX, Batch, Schema
from cepheid.events.time import TIME_TYPE
from cepheid.kernel.scripts.columns import evaluated_for
from cepheid.kernel.scripts.reference import evaluate
from cepheid.lang.expression import Literal
from cepheid.output.stages.conditions import evaluated
from cepheid.output.stages.near.found import Taken
from cepheid.output.stages.near.looked_at import LookedAt
from cepheid.output.stages.near.rows_of_matches import MatchRows
from cepheid.output.stages.near.unmet import evaluation, unmet_of
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
from cepheid.plan.lifted import Lifted
from cepheid.plan.stages.near.probes import Probe, Probes, Side

DOUBLE, WHOLE, TRUTH, TEXT = pa.float64(), pa.int64(), pa.bool_(), pa.string()
COLUMN_OF = {DOUBLE: 0, WHOLE: 1, TRUTH: 2, TEXT: 3, TIME_TYPE: 4}
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    DOUBLE: st.sampled_from([0.0, -0.0, 1.5, 2.5, 0.1, -3.7, 1e300, math.nan, math.inf]),
    WHOLE: st.sampled_from([0, 1, 2, -3, 2**62, -(2**63)]),
    TRUTH: st.booleans(),
    TEXT: st.sampled_from(["", "a", "b'c"]),
    TIME_TYPE: st.integers(0, 3).map(lambda minutes: minutes * 60_000_000),
}
EVENTS = st.lists(st.tuples(*(st.none() | values for values in VALUES.values())), min_size=1, max_size=8)
_OPERATORS = {
    DOUBLE: [Operator.ADD, Operator.SUBTRACT, Operator.MULTIPLY, Operator.DIVIDE],
    WHOLE: [Operator.ADD, Operator.SUBTRACT, Operator.MULTIPLY],
}


def leaves(type_: pa.DataType) -> st.SearchStrategy[Script]:
    """A constant, or a value of this type from the current event or from those before."""
    column, stage = COLUMN_OF[type_], st.integers(0, 1)
    found: list[st.SearchStrategy[Script]] = [
        (st.none() | VALUES[type_]).map(lambda value: ConstantValue(value, type_)),
        st.just(CurrentValue(column, type_)),
        st.builds(StageValue, stage, st.just(column), st.just(type_), st.integers(0, 2), st.booleans()),
    ]
    if type_ == DOUBLE:
        found.append(st.builds(Aggregate, st.just(Fold.AVG), stage, st.just(COLUMN_OF[WHOLE]), st.just(type_)))
        folds = st.sampled_from([Fold.SUM, Fold.AVG, Fold.MIN, Fold.MAX])
        found.append(st.builds(Aggregate, folds, stage, st.just(column), st.just(type_)))
    if type_ == WHOLE:
        folds = st.sampled_from([Fold.SUM, Fold.MIN, Fold.MAX, Fold.COUNT])
        found.append(st.builds(Aggregate, folds, stage, st.just(column), st.just(type_)))
        found.append(st.builds(Aggregate, st.just(Fold.COUNT), stage, st.none(), st.just(type_)))
    return st.one_of(found)


def numbers(type_: pa.DataType) -> st.SearchStrategy[Script]:
    """Scripts of doubles or of integers."""

    def larger(inner: st.SearchStrategy[Script]) -> st.SearchStrategy[Script]:
        pairs = st.tuples(inner, inner)
        found = st.builds(Operation, st.sampled_from(_OPERATORS[type_]), pairs, st.just(type_))
        single = st.sampled_from([Operator.NEGATE, Operator.ABS])
        found |= st.builds(Operation, single, st.tuples(inner), st.just(type_))
        found |= st.builds(Operation, st.just(Operator.COALESCE), pairs, st.just(type_))
        if type_ == DOUBLE:
            found |= st.builds(Operation, st.just(Operator.CAST), st.tuples(leaves(WHOLE)), st.just(type_))
        return found

    return st.recursive(leaves(type_), larger, max_leaves=4)


COMPARISONS = {
    Operator.EQUAL: "=",
    Operator.LESS: "<",
    Operator.LESS_OR_EQUAL: "<=",
    Operator.NULL_SAFE_EQUAL: "<=>",
}


@st.composite
def comparisons(draw: st.DrawFn) -> Operation:
    """A comparison of two values of one type."""
    type_ = draw(st.sampled_from([DOUBLE, DOUBLE, WHOLE, TRUTH, TEXT, TIME_TYPE]))
    side = numbers(type_) if type_ in _OPERATORS else leaves(type_)
    equal = [Operator.EQUAL, Operator.NULL_SAFE_EQUAL]
    operator = draw(st.sampled_from(equal if type_ == TEXT else [*COMPARISONS]))
    return Operation(operator, (draw(side), draw(side)), TRUTH)


def _joined(inner: st.SearchStrategy[Script]) -> st.SearchStrategy[Script]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    found = st.builds(Operation, st.sampled_from([Operator.AND, Operator.OR]), several, st.just(TRUTH))
    return found | st.builds(
        Operation, st.sampled_from([Operator.NOT, Operator.IS_NULL]), st.tuples(inner), st.just(TRUTH)
    )


conditions = st.recursive(comparisons() | leaves(TRUTH), _joined, max_leaves=4)


@st.composite
def matches(draw: st.DrawFn, count: int) -> Taken:
    """Matches of some of `count` events, in two stages."""
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    events = st.lists(st.integers(0, count - 1), min_size=sum(lengths), max_size=sum(lengths))
    stages = st.lists(st.integers(0, 1), min_size=sum(lengths), max_size=sum(lengths))
    return Taken(np.cumsum(lengths), np.array(draw(events)), np.array(draw(stages), np.int32))


@share(30)
@given(st.data(), EVENTS)
def test_many_events_at_once(data: st.DataObject, events: list[tuple[Any, ...]]) -> None:
    """The value is the same where it is sure; where the definition fails it is not sure."""
    known, taken = looked_at(events), data.draw(matches(len(events)))
    script = data.draw(conditions | numbers(DOUBLE) | numbers(WHOLE))
    rows = every_event(taken, known)
    found = evaluated_for(script, rows)
    if found is None:  # a sum of integers may leave 64 bits
        assert any(abs(event[1] or 0) >= 2**62 for event in events)
        return
    before = known.with_stages(taken)
    for place, (value, sure) in enumerate(zip(found.to_list(), found.sure, strict=True)):
        begin = taken.begin[taken.match[place]]
        try:
            expected = evaluate(script, before[begin:place], before[place][1].values)
        except ConditionError:
            assert not sure
            continue
        assert not sure or repr(value) == repr(expected)


@share(30)
@given(st.data(), EVENTS)
def test_reasons_of_many_events_at_once(data: st.DataObject, events: list[tuple[Any, ...]]) -> None:
    """Texts and distances of a comparison are those of single events."""
    known, taken = looked_at(events), data.draw(matches(len(events)))
    script = data.draw(comparisons())
    written = data.draw(st.integers(0, 2))
    sides = tuple(Side(f"side {n}", one, is_constant=n == written) for n, one in enumerate(script.operands))
    probe = Probe("both sides", script, sides, COMPARISONS[script.operator])
    found = evaluation(probe, every_event(taken, known))
    if found is None:  # a constant fails
        return
    sure, before = np.flatnonzero(found.sure), known.with_stages(taken)
    begin = taken.begin[taken.match]
    expected = unmet_of([evaluated(probe, before[begin[place] : place], before[place][1]) for place in sure])
    unmet = found.take(sure).unmet
    assert unmet.text.equals(expected.text)
    assert unmet.is_null.tolist() == expected.is_null.tolist()
    for one, other in ((unmet.off_by, expected.off_by), (unmet.far, expected.far)):
        np.testing.assert_array_equal(one, other)


def every_event(taken: Taken, known: LookedAt) -> MatchRows:
    """Each event of the matches, after those of its match before it."""
    return MatchRows(taken, taken.match, np.arange(len(taken.event)), taken.event, known)


def looked_at(events: list[tuple[Any, ...]]) -> LookedAt:
    """The events, with one lifted column for each type."""
    columns = {
        TIME: pa.array(range(len(events))).cast(TIME_TYPE),
        MASK: pa.array([0] * len(events)),
    }
    for number, (type_, values) in enumerate(zip(VALUES, zip(*events, strict=True), strict=True)):
        columns[f"{VALUE_PREFIX}{number}"] = pa.array(values, type_)
    lifted = tuple(Lifted(str(type_), Literal(None, type_, (0, 0)), type_) for type_ in VALUES)
    probes = Probes(Schema(pa.schema([]), (), None), (), lifted, (), ())
    return LookedAt(np.arange(len(events)), probes, Batch(pa.RecordBatch.from_pydict(columns)))
