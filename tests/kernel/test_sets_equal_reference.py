"""The kernel of sets finds what the reference finds, in the same order."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import count

from hypothesis import assume, given, note
from hypothesis import strategies as st
from tests.kernel.running_sets import Visit, run_reference, run_sets
from tests.kernel.strategies import named, plans, sequences

from cepheid.compile.stages.compiled import compile_plan
from cepheid.compile.stages.representation import choose_representation
from cepheid.kernel.arrays import FOREVER, NO_TIME
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.stages.check import pattern_problems
from cepheid.plan.stages.plan import Plan


@st.composite
def patterns_of_sets(draw: st.DrawFn) -> Pattern:
    """Valid patterns that need no distinction between single partial matches."""
    window = draw(st.sampled_from([None, 3, 6, 12]))
    stages = tuple(
        replace(stage, window=None, quantifier=replace(stage.quantifier, window=None))
        for stage in named(draw(sequences(depth=0, most=4)), (f"s{i}" for i in count()))
    )
    pattern = Pattern(stages, window=None if window is None else timedelta(microseconds=window))
    assume(not pattern_problems(pattern, ()))
    return pattern


@st.composite
def calls(draw: st.DrawFn, bits: int = 8) -> list[list[Visit]]:
    """Visits of up to three keys in up to three calls. A key that was closed may be opened again."""
    now: dict[int, int] = {}
    made = []
    for _ in range(draw(st.integers(1, 3))):
        visits = []
        for key in draw(st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True)):
            rows = []
            for gap in draw(st.lists(st.sampled_from([0, 1, 1, 2, 4]), max_size=8)):
                now[key] = now.get(key, 0) + gap
                rows.append((now[key], draw(st.integers(0, 2**bits - 1))))
            closes = draw(st.booleans())
            until = draw(st.sampled_from([NO_TIME, *(now.get(key, 0) + after for after in (0, 1, 5))]))
            until = FOREVER if closes and draw(st.booleans()) else until
            now[key] = 0 if closes else max(now.get(key, 0), until)
            visits.append(Visit(key, tuple(rows), until, closes))
        made.append(visits)
    return made


@given(plans(scripted=False, of=patterns_of_sets()), calls(), st.sampled_from([1, 64]))
def test_sets(plan: Plan, visits: list[list[Visit]], capacity: int) -> None:
    """The same matches in the same order, for any calls, any keys in them and any initial capacity."""
    plan = replace(plan, outputs=("matches",))
    assume(choose_representation(compile_plan(plan)).sets)
    expected = run_reference(plan, visits)
    got = run_sets(plan, visits, capacity)
    note(f"expected {expected}\n     got {got}")
    assert got == expected
