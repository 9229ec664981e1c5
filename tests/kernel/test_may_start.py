"""Where only marked events may start partial matches, the kernels find what the reference finds."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, note
from hypothesis import strategies as st
from tests.kernel.running import Row, run_compiled, run_reference
from tests.kernel.running_python import run_python
from tests.kernel.running_sets import Visit, run_sets
from tests.kernel.running_sets import run_reference as run_reference_of_sets
from tests.kernel.strategies import event_rows, plans
from tests.kernel.test_sets_equal_reference import calls, patterns_of_sets
from tests.searching import share

from cepheid.compile.stages.compiled import compile_plan
from cepheid.compile.stages.representation import choose_representation
from cepheid.kernel.stages.reference import ReferenceMatcher
from cepheid.lang.stages.pattern import Skip
from cepheid.plan.stages.plan import Plan

MARK = 1 << 62


class OnlyMarked(ReferenceMatcher):
    """The reference in which only events with the bit start partial matches."""

    def __init__(self, *of: object) -> None:
        super().__init__(*of)  # type: ignore[arg-type]
        self.may_start = MARK


MARKED_KEYS = st.lists(
    st.lists(st.booleans(), min_size=10, max_size=10).flatmap(
        lambda marks: event_rows(8).map(
            lambda rows: [
                (time, mask | MARK * mark, values) for (time, mask, values), mark in zip(rows, marks, strict=False)
            ]
        )
    ),
    min_size=1,
    max_size=3,
)


@share(60)
@given(plans(scripted=False), MARKED_KEYS)
def test_marked_events_start(plan: Plan, keys: list[list[Row]]) -> None:
    """The compiled kernel and the one for functions find the same, for any marks and any skip strategy."""
    keys = _fitting(plan, keys)
    assert compile_plan(plan).may_start == MARK
    expected = run_reference(plan, keys, kind=OnlyMarked)
    got = run_compiled(plan, keys, only_marked=True)
    python = run_python(plan, keys, only_marked=True)
    note(f"expected {expected}\n     got {got}\n     and {python}")
    assert got == expected
    assert (python if python == "failed" else python[0]) == expected


@share(40)
@given(plans(scripted=False), MARKED_KEYS)
def test_matches_belong_to_their_first_event(plan: Plan, keys: list[list[Row]]) -> None:
    """Without a skip strategy, the matches are those of all whose first event is marked."""
    plan = replace(plan, pattern=replace(plan.pattern, skip_strategy=Skip.no_skip()))
    keys = _fitting(plan, keys)
    marked = [mask & MARK for rows in keys for _, mask, _ in rows]
    every, some = run_compiled(plan, keys), run_compiled(plan, keys, only_marked=True)
    assert not isinstance(every, str)
    assert not isinstance(some, str)
    assert some.matches == [match for match in every.matches if marked[match[0][0][1]]]
    assert some.timeouts == {timeout for timeout in every.timeouts if marked[timeout[0][0][1]]}


@share(40)
@given(plans(scripted=False, of=patterns_of_sets()), calls(), st.lists(st.booleans(), min_size=80, max_size=80))
def test_marked_events_start_sets(plan: Plan, visits: list[list[Visit]], marks: list[bool]) -> None:
    """The kernel of sets finds the same."""
    plan = replace(plan, outputs=("matches",))
    if not choose_representation(compile_plan(plan)).sets:
        return
    mark = iter(marks)
    marked = [
        [replace(v, rows=tuple((time, mask | MARK * next(mark)) for time, mask in v.rows)) for v in call]
        for call in visits
    ]
    expected = run_reference_of_sets(plan, marked, kind=OnlyMarked)
    got = run_sets(plan, marked, 64, only_marked=True)
    note(f"expected {expected}\n     got {got}")
    assert got == expected


def _fitting(plan: Plan, keys: list[list[Row]]) -> list[list[Row]]:
    known = (1 << len(plan.bits)) - 1 | MARK
    return [[(time, mask & known, values) for time, mask, values in rows] for rows in keys]
