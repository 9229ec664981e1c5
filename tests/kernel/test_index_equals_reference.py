"""The kernel finds with an index what the reference finds, and what it finds without an index."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, note
from hypothesis import strategies as st
from tests.kernel.running import Eager, FailingIsFalse, FailingIsTrue, Row, Visit, run_compiled, run_reference
from tests.kernel.tied_strategies import tied_plans, tied_rows

from cepheid.plan.limits import Limits
from cepheid.plan.stages.plan import Plan

KEYS = st.lists(tied_rows(6), min_size=1, max_size=3)
BATCHES = st.lists(
    st.lists(st.builds(Visit, st.integers(0, 2), st.integers(0, 8), st.booleans()), max_size=4), max_size=3
)


@given(tied_plans(), KEYS)
def test_index(plan: Plan, keys: list[list[Row]]) -> None:
    """Patterns with ties give the same matches and timeouts in the same order: equalities, also compound, and order
    comparisons, with NULL, NaN, strings, overflow and failures, beside other parts, in patterns of every kind.
    """
    keys = _with_known_bits(plan, keys)
    expected = run_reference(plan, keys)
    got = run_compiled(plan, keys, indexed=True)
    note(f"expected {expected}\n     got {got}")
    if expected == "failed" and got != "failed":  # the failed condition decided nothing, so it need not be evaluated
        assert [run_reference(plan, keys, None, kind) for kind in (FailingIsFalse, FailingIsTrue)] == [got, got]
    elif got == "failed" and expected != "failed":  # the condition decided nothing, but may be evaluated
        assert run_reference(plan, keys, None, Eager) == "failed"
    else:
        assert got == expected


@given(tied_plans(), KEYS, BATCHES, st.sampled_from([(False, 64), (False, 2), (True, 8)]))
def test_batches(plan: Plan, keys: list[list[Row]], batches: list[list[Visit]], how: tuple[bool, int]) -> None:
    """Splits into batches, several visits of a key, snapshots between batches and little room do not change what is
    found with an index.
    """
    keys = _with_known_bits(plan, keys)
    batches = [[visit for visit in batch if visit.key < len(keys)] for batch in batches]
    expected = run_reference(plan, keys)
    restored, capacity = how
    restored = restored and plan.pattern.without is None  # its kernel would need the held events
    got = run_compiled(plan, keys, batches, indexed=True, restored=restored, capacity=capacity)
    note(f"expected {expected}\n     got {got}")
    if "failed" not in (expected, got):
        assert got == expected


@given(tied_plans(), KEYS, st.integers(1, 6), st.integers(1, 4))
def test_limits(plan: Plan, keys: list[list[Row]], most: int, matches: int) -> None:
    """With limits the same partial matches and matches are dropped as without an index, and they are counted."""
    limits = Limits(max_partial_matches=most, max_matches_per_event=matches, on_limit="drop")
    plan = replace(plan, limits=limits)
    keys = _with_known_bits(plan, keys)
    counts: list[tuple[int, int, int]] = []
    expected = run_compiled(plan, keys, indexed=False, counts=counts)
    got = run_compiled(plan, keys, indexed=True, counts=counts)
    note(f"expected {expected}\n     got {got}")
    if "failed" not in (expected, got):
        assert got == expected
        assert counts[0][1:] == counts[1][1:]


def _with_known_bits(plan: Plan, keys: list[list[Row]]) -> list[list[Row]]:
    known = (1 << len(plan.bits)) - 1
    return [[(time, mask & known, values) for time, mask, values in rows] for rows in keys]
