"""The reference step in batches, with limits and with restored state, gives the same as in one batch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from tests.kernel.running import Row, Visit, branches_are_counted_twice, run_compiled, run_reference
from tests.kernel.running_python import run_python
from tests.kernel.strategies import event_rows, plans
from tests.kernel.test_step_equals_reference import BATCHES, KEYS
from tests.searching import share

from cepheid.compile.stages.compiled import compile_plan
from cepheid.errors import SnapshotError
from cepheid.kernel.failures import PassedLimit
from cepheid.kernel.stages.python_kernel import PythonKernel
from cepheid.lang.stages.pattern import Skip
from cepheid.plan.limits import Limits
from cepheid.plan.stages.plan import Plan


@given(plans(), KEYS, BATCHES, st.none() | st.integers(0, 30))
def test_any_visits(plan: Plan, keys: list[list[Row]], batches: list[list[Visit]], until: int | None) -> None:
    """Matches in their order, timeouts and `until` are those of the reference, with the state restored between any two
    batches.
    """
    keys, batches = _fitting(plan, keys, batches)
    if until is not None:
        until, batches = until + max([row[0] for rows in keys for row in rows], default=0), []
    expected, got = run_reference(plan, keys, until), run_python(plan, keys, batches, until)
    note(f"expected {expected}\n     got {got}")
    if "failed" in (expected, got):
        assert expected == got or batches  # which batch fails first decides what was emitted before
        return
    assert got[0] == expected


@given(plans(), KEYS)
def test_what_is_withheld(plan: Plan, keys: list[list[Row]]) -> None:
    """After each event, as many matches are withheld as in the compiled kernel, and none when the input is complete."""
    plan = replace(plan, outputs=None)
    keys, batches = _fitting(plan, keys, [[Visit(key, 1) for key in range(len(keys))]] * 8)
    compiled, python = list[int](), list[int]()
    if "failed" in (
        run_compiled(plan, keys, batches, withheld=compiled),
        run_python(plan, keys, batches, None, python),
    ):
        return
    assert compiled == python
    assert python[-1] == 0


@share(50)
@given(plans(scripted=False), KEYS, st.integers(1, 3), st.integers(1, 2))
def test_limits_drop_the_oldest(plan: Plan, keys: list[list[Row]], partial_matches: int, matches: int) -> None:
    """What exceeds a limit is dropped in the same way as in the compiled kernel. If branches of groups take the same
    events, the Python kernel counts them all.
    """
    limits = Limits(max_partial_matches=partial_matches, max_matches_per_event=matches, on_limit="drop")
    keys, _ = _fitting(plan, keys, [])
    if any(stage.group for stage in plan.pattern.stages):
        plan = replace(plan, pattern=replace(plan.pattern, skip_strategy=Skip.no_skip()))
        if branches_are_counted_twice(plan, keys):
            return
    plan = replace(plan, limits=limits)
    expected, got = run_compiled(plan, keys), run_python(plan, keys)
    note(f"expected {expected}\n     got {got}")
    assert got == "failed" if expected == "failed" else got[0] == expected


@given(plans(scripted=False), event_rows(8))
def test_limits_raise(plan: Plan, rows: list[Row]) -> None:
    """With on_limit='raise', the exceeded limit is named wherever 'drop' would have dropped something."""
    keys, _ = _fitting(plan, [rows], [])
    strict = Limits(max_partial_matches=1, max_matches_per_event=1)
    dropping = run_python(replace(plan, limits=replace(strict, on_limit="drop")), keys)
    if dropping == "failed" or not any(dropping[1]):
        return
    with pytest.raises(PassedLimit, match=r"^max_(partial_matches|matches_per_event)$"):
        run_python(replace(plan, limits=strict), keys)


@settings(max_examples=5)
@given(plans(scripted=False))
def test_an_inconsistent_state_is_refused(plan: Plan) -> None:
    """Invalid references and arrays of the wrong type are reported before anything is built from them."""
    compiled = compile_plan(plan)
    matcher = PythonKernel(compiled)
    state = matcher.state()
    with pytest.raises(SnapshotError, match="are not those of this pattern"):
        matcher.restore(state | {"keys": np.zeros(1)}, None)
    with pytest.raises(SnapshotError, match="point to events or states that are not there"):
        matcher.restore(state | {"taken": np.array([(0, 5)], state["taken"].dtype)}, None)


def _fitting(
    plan: Plan, keys: list[list[Row]], batches: list[list[Visit]]
) -> tuple[list[list[Row]], list[list[Visit]]]:
    known = (1 << len(plan.bits)) - 1
    fitting = [[(time, mask & known, values) for time, mask, values in rows] for rows in keys]
    return fitting, [[visit for visit in batch if visit.key < len(keys)] for batch in batches]
