"""The open partial matches that the kernels list are those of the reference, and listing them changes nothing."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given, note
from tests.kernel.running import Listed, Row, open_in_reference, run_compiled
from tests.kernel.running import Visit as KeyVisit
from tests.kernel.running import run_reference as run_definition
from tests.kernel.running_python import run_python
from tests.kernel.running_sets import Visit, run_reference, run_sets
from tests.kernel.strategies import plans
from tests.kernel.test_sets_equal_reference import calls, patterns_of_sets
from tests.kernel.test_step_equals_reference import BATCHES, KEYS

from cepheid.compile.stages.compiled import compile_plan
from cepheid.compile.stages.representation import choose_representation
from cepheid.plan.stages.plan import Plan


@given(plans(scripted=False), KEYS, BATCHES)
def test_one_by_one(plan: Plan, keys: list[list[Row]], batches: list[list[KeyVisit]]) -> None:
    """The events, stages and deadlines are equal after every batch of visits, in the compiled kernel and in the Python
    kernel.
    """
    known = (1 << len(plan.bits)) - 1
    keys = [[(time, mask & known, values) for time, mask, values in rows] for rows in keys]
    batches = [[visit for visit in batch if visit.key < len(keys)] for batch in batches]
    found = run_definition(plan, keys)
    assume(found != "failed")
    expected = [*open_in_reference(plan, keys, batches)]
    compiled: list[Listed] = []
    in_python: list[Listed] = []
    assert run_compiled(plan, keys, batches, listed=compiled) == found
    given_ = run_python(replace(plan, outputs=("matches", "timeouts")), keys, batches, listed=in_python)
    assert not isinstance(given_, str)
    note(f"expected {expected}\n     got {compiled}\n     and {in_python}")
    assert compiled[: len(batches)] == expected
    assert in_python[: len(batches)] == expected


@given(plans(scripted=False, of=patterns_of_sets()), calls())
def test_sets(plan: Plan, visits: list[list[Visit]]) -> None:
    """The kernel of sets lists all partial matches that the sets represent."""
    plan = replace(plan, outputs=("matches",))
    assume(choose_representation(compile_plan(plan)).sets)
    expected: list[Listed] = []
    got: list[Listed] = []
    found = run_reference(plan, visits, expected)
    assert run_sets(plan, visits, 64, got) == found
    note(f"expected {expected}\n     got {got}")
    assert got == expected
