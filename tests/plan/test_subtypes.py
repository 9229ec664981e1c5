"""Subtypes in a plan: one bit of the mask, and problems of types, taxonomies and their column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cepheid.errors import PatternError
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.lifted import PlannedCondition
from cepheid.plan.stages.build import check_pattern
from cepheid.plan.stages.names import asked_types
from cepheid.plan.stages.plan import Plan
from cepheid.plan.taxonomy import taxonomy_warnings

BuildPlan = Callable[..., Plan]
KINDS = {"card": "payment", "transfer": "payment", "it's": ["card"], "refund": []}


def problems_of(plan: BuildPlan, pattern: Pattern) -> list[str]:
    with pytest.raises(PatternError) as error:
        plan(pattern)
    return [str(problem) for problem in error.value.problems]


def test_a_subtype_is_lifted(plan: BuildPlan) -> None:
    """A subtype is part of a bit of the mask, with the other conditions on the event alone: an IN
    over all types below it.
    """
    pattern = Pattern.begin("p").subtype("payment").where("n > 1").next("r").subtype("refund").where("n > p.n")
    built = plan(pattern.taxonomy("s", KINDS))
    assert [bit.sql for bit in built.bits] == [
        r"(`s` IN ('payment', 'card', 'transfer', 'it\'s')) AND (n > 1)",
        "`s` IN ('refund')",
    ]
    assert built.conditions[0] == PlannedCondition(0, None)
    assert built.conditions[1].bit == 1


def test_order_of_where_or_where_and_subtype(plan: BuildPlan) -> None:
    """`subtype` is ANDed; `or_where` is ORed with all earlier conditions, as in FlinkCEP."""
    pattern = Pattern.begin("p").subtype("x").where("n > 1").or_where("n = 0").subtype("y").taxonomy("s")
    (bit,) = plan(pattern).bits
    assert bit.sql == "(((`s` IN ('x')) AND (n > 1)) OR (n = 0)) AND (`s` IN ('y'))"


def test_without_kinds_any_type_is_known(plan: BuildPlan) -> None:
    """If no type has others below it, naming the column is enough; NOT stages have subtypes too."""
    pattern = Pattern.begin("p").not_next("forbidden").subtype("any thing").taxonomy("s")
    assert [bit.sql for bit in plan(pattern).bits] == ["`s` IN ('any thing')"]


def test_a_taxonomy_may_stand_unused(plan: BuildPlan) -> None:
    """Patterns can share a taxonomy; nothing is computed for an unused one."""
    assert plan(Pattern.begin("p").taxonomy("s", KINDS)).bits == ()


def test_problems(plan: BuildPlan) -> None:
    """Unknown types, a missing taxonomy, and a column that does not exist or holds no text."""
    named = Pattern.begin("p").subtype("paymnt").next("r").subtype("refund")
    unknown = (
        "no type 'paymnt' in the taxonomy (stage 'p', subtype, column 1)\n  paymnt\n  ^^^^^^\nDid you mean 'payment'?"
    )
    assert problems_of(plan, named.taxonomy("ss", KINDS)) == [
        unknown,
        "no column named 'ss', which holds the types (taxonomy)\nDid you mean 's'?",
    ]
    assert [str(problem) for problem in check_pattern(named.taxonomy("ss", KINDS))] == [unknown]
    hint = 'Name the column of the types: taxonomy("type") or, where types have others below them, '
    hint += 'taxonomy("type", {"transfer": "payment"}).'
    assert problems_of(plan, Pattern.begin("p").subtype("x")) == [
        f"subtype needs to know which column holds the type (stage 'p', subtype, column 1)\n  x\n  ^\n{hint}"
    ]
    assert problems_of(plan, named.taxonomy("n")) == [
        (
            "the column of the types must be STRING, 'n' is INT (taxonomy)\n"
            "Cast it to STRING in a column of its own: names of types are text."
        )
    ]


WRONG = {"payment": ["card", "transfer"], "event": ["payment", "refund"]}


@pytest.mark.parametrize(
    ("asked", "kinds", "warned"),
    [
        ("payment", WRONG, True),
        ("event", WRONG, True),
        ("payment", KINDS, False),
        ("card", KINDS, False),
        ("hybrid", {"hybrid": ["car", "electric"], "coupé": "car", "train": "electric"}, False),
        ("card", {"card": "payment"}, False),
    ],
)
def test_a_taxonomy_the_wrong_way_round(asked: str, kinds: Any, *, warned: bool) -> None:
    """If the type asked for is declared as a kind of several types that have no other kinds, a warning shows the right
    form.
    """
    pattern = Pattern.begin("p").subtype(asked).next("q").subtype(asked).taxonomy("s", kinds)
    warnings = list(taxonomy_warnings(pattern.types, asked_types(pattern)))
    assert len(warnings) == warned
    if asked == "payment" and warned:
        assert warnings[0] == (
            "taxonomy: 'payment' is declared as a kind of 'card', 'transfer', so subtype('payment') takes none of "
            'these. If they are kinds of \'payment\', write {"card": "payment", "transfer": "payment"}: each type with '
            "what it is a kind of"
        )
