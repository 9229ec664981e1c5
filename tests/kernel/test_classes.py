"""Counting starts by class equals the observed reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import assume, given, note
from hypothesis import strategies as st
from tests.kernel.strategies import plans
from tests.kernel.test_fates import observed_tally
from tests.kernel.test_sets_equal_reference import patterns_of_sets

from cepheid.compile.stages.compiled import compile_plan
from cepheid.compile.stages.representation import choose_representation
from cepheid.kernel.arrays import FOREVER, NO_TIME, Visits
from cepheid.kernel.stages.observed.classes.kernel import ClassKernel
from cepheid.plan.stages.plan import Plan

Rows = list[tuple[int, int]]
"""Time and mask of the events of a key."""


@st.composite
def keys(draw: st.DrawFn) -> list[Rows]:
    made = []
    for _ in range(draw(st.integers(1, 3))):
        gaps = draw(st.lists(st.sampled_from([0, 1, 1, 2, 4]), max_size=12))
        times = np.cumsum(gaps, dtype=np.int64).tolist()
        made.append([(time, draw(st.integers(0, 255))) for time in times])
    return made


@given(
    plans(scripted=False, of=patterns_of_sets()),
    keys(),
    st.none() | st.integers(0, 20),
    st.sets(st.integers(0, 36)),
    st.sampled_from([1, 64]),
)
def test_classes(plan: Plan, keys: list[Rows], until: int | None, cuts: set[int], capacity: int) -> None:
    """The same counts as from the observed reference, for any calls and any initial capacity."""
    plan = replace(plan, outputs=("matches",))
    compiled = compile_plan(plan)
    assume(choose_representation(compiled).sets)
    end = FOREVER if until is None else until + max((time for rows in keys for time, _ in rows), default=0)
    expected = observed_tally(plan, [[(time, mask, (None,) * 4) for time, mask in rows] for rows in keys], end)
    kernel = ClassKernel(compiled, capacity=capacity)
    rows = np.array([row for key in keys for row in key], np.int64).reshape(-1, 2)
    ends = np.cumsum([len(key) for key in keys])
    cuts_within = sorted(cut for cut in cuts if cut < len(rows))
    for first, last in zip([0, *cuts_within], [*cuts_within, len(rows)], strict=True):
        closing = ends[(ends >= first) & (ends < last)]
        visits = _visits(np.append(closing, last) - first, end)
        kernel.run(rows[first:last, 0].copy(), rows[first:last, 1].copy(), visits)
    nothing = np.zeros(0, np.int64)
    kernel.run(nothing, nothing, Visits(*(part[:1] for part in _visits(np.zeros(2, np.int64), end))))
    note(f"expected {expected}\n     got {kernel.tally()}")
    assert kernel.tally() == expected


def _visits(ends: np.ndarray, until: int) -> Visits:
    """Visits that close their keys, but for the last."""
    last = np.arange(len(ends)) == len(ends) - 1
    return Visits(np.zeros(len(ends), np.int32), ends, np.where(last, NO_TIME, until), ~last)
