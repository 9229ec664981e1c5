"""Guards are boolean functions, and at most one term of a guard is true at a time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cepheid.compile.stages.guard import ALWAYS, NEVER, Guard, any_of, condition

CONDITIONS = 4
guards = st.recursive(
    st.sampled_from([ALWAYS, NEVER, *map(condition, range(CONDITIONS))]),
    lambda inner: st.one_of(
        st.builds(Guard.__and__, inner, inner),
        st.builds(Guard.__or__, inner, inner),
        st.builds(Guard.__invert__, inner),
    ),
    max_leaves=8,
)
truths = st.lists(st.booleans(), min_size=CONDITIONS, max_size=CONDITIONS)


def terms_that_hold(guard: Guard, truth: list[bool]) -> int:
    return sum(all(truth[demand.condition] != demand.negated for demand in term) for term in guard.terms)


def holds(guard: Guard, truth: list[bool]) -> bool:
    return terms_that_hold(guard, truth) > 0


@given(guards, guards, truths)
def test_operators_are_those_of_logic(left: Guard, right: Guard, truth: list[bool]) -> None:
    """AND, OR, NOT and `any_of` are those of logic, for every truth of the conditions."""
    a, b = holds(left, truth), holds(right, truth)
    assert holds(left & right, truth) == (a and b)
    assert holds(left | right, truth) == (a or b)
    assert holds(~left, truth) == (not a)
    assert holds(any_of([left, right, NEVER]), truth) == (a or b)


@given(guards, truths)
def test_at_most_one_term_holds(guard: Guard, truth: list[bool]) -> None:
    """So a guard with several terms is several edges, of which one is followed."""
    assert terms_that_hold(guard, truth) <= 1
