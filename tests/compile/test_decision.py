"""Conditions as tests, and what a state knows of them, mean the same as the conditions."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.kernel.strategies import BOOL, booleans, event_rows

from cepheid.compile.decision import decision_of
from cepheid.compile.instructions import Op
from cepheid.compile.stages.compiled import CompiledPattern, compile_plan, relevance_text
from cepheid.compile.stages.taken import Taken, simplified
from cepheid.events.batch import Schema
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.kernel.reference_events import Event, TakenEvents
from cepheid.kernel.scripts.reference import evaluate
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.conditions.script import Operation, Script, can_fail
from cepheid.plan.stages.build import build_plan

SCHEMA = Schema(
    pa.schema({"at": pa.timestamp("us", "UTC"), "kind": pa.int64(), "price": pa.float64(), "ok": pa.bool_()}), (), "at"
)
STAGES = 3


@st.composite
def taken_events(draw: st.DrawFn) -> TakenEvents:
    """Events that stages have taken, of which some stages may have none."""
    rows = draw(event_rows(0))
    return tuple((draw(st.integers(0, STAGES - 1)), Event(i, *row)) for i, row in enumerate(rows))


def decided(condition: Script, taken: TakenEvents, current: tuple[object, ...]) -> bool:
    """Whether the tests of the condition lead to true."""
    decision = decision_of(condition)
    while not isinstance(decision, bool):
        assert decision is not None
        comparison = Operation(decision.comparison, (decision.left, decision.right), BOOL)
        value = evaluate(comparison, taken, current)  # type: ignore[arg-type]  # events of any values
        decision = decision.held if value is (not decision.differs) else decision.missed
    return decision


@given(booleans(STAGES - 1), taken_events(), event_rows(0))
def test_a_decision_is_the_condition(condition: Script, taken: TakenEvents, rows: list[tuple[int, int, tuple]]) -> None:
    """Its tests lead to true exactly if the condition is true; not if it is false or NULL."""
    assume(not can_fail(condition))
    for _, _, current in rows:
        assert decided(condition, taken, current) is (evaluate(condition, taken, current) is True)


@given(booleans(STAGES - 1), taken_events(), event_rows(0), st.sets(st.integers(0, STAGES - 1)))
def test_a_simplified_script_is_the_script(
    script: Script, taken: TakenEvents, rows: list[tuple[int, int, tuple]], also: set[int]
) -> None:
    """For all partial matches of which is true what is known of their state."""
    assume(not can_fail(script))
    stages = frozenset(stage for stage, _ in taken)
    simple = simplified(script, Taken(stages - also, stages | also))
    for _, _, current in rows:
        assert evaluate(simple, taken, current) is evaluate(script, taken, current)


def compiled(pattern: Pattern) -> CompiledPattern:
    return compile_plan(build_plan(pattern, SCHEMA, DuckDbEngine(time_zone="UTC")))


def scripts_run(pattern: Pattern) -> dict[str, list[list[str]]]:
    """The instructions of the scripts that each state runs, by the name of the state."""
    one = compiled(pattern)
    tables, found = one.tables, {}
    for state, row in zip(one.automaton.states, tables.states, strict=True):
        numbers = tables.state_scripts[row["scripts"] : row["scripts_end"]]
        ranges = [tables.scripts[["start", "end"]][number] for number in numbers]
        found[state.name] = [[Op(code).name for code in tables.code["op"][start:end]] for start, end in ranges]
    return found


def test_a_loop_that_counts_its_events() -> None:
    """The first event needs no script, and the next ones are only compared."""
    run = Pattern.begin("run").where("count(run) = 0 OR price > last(run.price)").one_or_more().consecutive()
    states = scripts_run(run)
    assert states["run"] == []
    assert states["run[…]"] == [["TEST_LESS_F", "AT_EVENT", "CURRENT"]]


@pytest.mark.parametrize(
    ("condition", "instructions"),
    [
        ("price > a.price", ["TEST_LESS_F", "AT_EVENT", "CURRENT"]),
        ("NOT price > a.price", ["TEST_LESS_OR_EQUAL_F", "CURRENT", "AT_EVENT"]),
        ("price < avg(a.price)", ["TEST_LESS_F", "CURRENT", "AVERAGE_F"]),
        ("kind <> a.kind", ["TEST_DIFFERENT_I", "CURRENT", "AT_EVENT"]),
        ("ok = a.ok", ["TEST_EQUAL_I", "CURRENT", "AT_EVENT"]),
        ("kind <=> a.kind", ["TEST_SAME_I", "CURRENT", "AT_EVENT"]),
        ("kind + a.kind = 3", ["CURRENT", "AT_EVENT", "ADD_I", "CONSTANT", "EQUAL_I"]),
    ],
)
def test_a_comparison_is_one_test(condition: str, instructions: list[str]) -> None:
    """It compares a column with one of an earlier event. What may fail is computed as it is written."""
    pattern = Pattern.begin("a").where("kind = 0").followed_by("b").where(condition)
    assert scripts_run(pattern)["b"] == [instructions]


def test_computed_operands() -> None:
    """An operand that is more than a value is computed by the instructions after the test."""
    pattern = Pattern.begin("a").where("kind = 0").followed_by("b").where("price > avg(a.price) * 2")
    ((test, *rest),) = scripts_run(pattern)["b"]
    assert (test, sorted(rest)) == ("TEST_LESS_F", ["AVERAGE_F", "COMPUTED", "CONSTANT", "CURRENT", "MULTIPLY_F"])


@pytest.mark.parametrize(
    "pattern",
    [
        Pattern.begin("a").where("kind = 0").followed_by("b").where("kind = 1").one_or_more().followed_by("c"),
        Pattern.begin("a").where("kind = 0").followed_by("b").where("kind = 1").one_or_more().greedy().followed_by("c"),
    ],
)
def test_events_in_a_relaxed_loop_are_dropped_early(pattern: Pattern) -> None:
    """An event that neither the loop nor what follows it takes changes nothing."""
    assert "kind = 1" in relevance_text(compiled(pattern.where("kind = 2")))
