"""Which patterns have their partial matches stored in sets, and the reasons given for the others."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from scripts.compile_kernels import EVENTS, IN_SETS, ONE_BY_ONE
from tests.plan.operator_engine import OperatorTypes

from cepheid.compile.stages.compiled import compile_plan
from cepheid.compile.stages.representation import Representation, choose_representation
from cepheid.events.batch import Schema
from cepheid.lang.stages.pattern import Pattern, Skip
from cepheid.plan.stages.build import build_plan

SCHEMA = Schema(pa.schema([("time", pa.timestamp("us", "UTC")), ("b", pa.int64())]), (), "time")

SERVED = Pattern.begin("one").where("b = 1").followed_by_any("two").where("b = 2")
LOOP = Pattern.begin("one").where("b = 1").next("run").where("b = 2").one_or_more().consecutive()


def form_of(pattern: Pattern, outputs: tuple[str, ...] = ("matches",)) -> Representation:
    plan = replace(build_plan(pattern, SCHEMA, OperatorTypes()), outputs=outputs)
    return choose_representation(compile_plan(plan))


@pytest.mark.parametrize(
    "pattern",
    [
        SERVED,
        SERVED.within("5 seconds"),
        SERVED.not_followed_by("no").where("b = 4").followed_by("three").where("b = 3").optional(),
        LOOP,
        LOOP.greedy().followed_by("end").where("b = 5"),
    ],
)
def test_sets_are_used(pattern: Pattern) -> None:
    """Sets are used for conditions on single events, with a window of the whole pattern or none."""
    assert form_of(pattern) == Representation(sets=True)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (SERVED.followed_by("three").where("b > one.b"), "a condition looks at earlier events of the match"),
        (SERVED.next(Pattern.begin("x").where("b = 3").next("y").where("b = 4")), "the pattern has groups"),
        (SERVED.skip(Skip.to_next()), "the skip strategy drops single partial matches"),
        (SERVED.one_or_more(window="5 seconds"), "the time between consecutive events is bounded"),
        (LOOP.longest(), "`longest` emits what a loop has when it ends"),
        (
            SERVED.not_followed_by("no").where("b = 4").within("5 seconds"),
            "matches become certain when their time passes",
        ),
    ],
)
def test_sets_are_not_used(pattern: Pattern, reason: str) -> None:
    """Each reason against sets is reported, alone where it is the only one."""
    assert form_of(pattern) == Representation(sets=False, reasons=(reason,))


def test_sets_are_not_used_for_timeouts() -> None:
    """A set cannot tell which of its partial matches time out, so timeouts need partial matches one by one."""
    outputs = ("matches", "timeouts")
    assert form_of(SERVED.within("5 seconds"), outputs).reasons == ("timeouts are asked for",)
    assert form_of(SERVED.within("5 seconds").skip(Skip.to_next()), outputs).reasons == (
        "the skip strategy drops single partial matches",
        "timeouts are asked for",
    )
    assert form_of(SERVED, outputs).sets  # nothing can time out


def test_both_forms_are_compiled_ahead() -> None:
    """The script that compiles the kernels before the tests run has a pattern of each form."""
    schema = Schema(EVENTS.schema, (), "at")
    plans = [build_plan(pattern, schema, OperatorTypes()) for pattern in (ONE_BY_ONE, IN_SETS)]
    assert [choose_representation(compile_plan(plan)).sets for plan in plans] == [False, True]
