"""Types of events: the types below a type, and invalid declarations."""

from __future__ import annotations

from typing import Any

import pytest

from cepheid.errors import PatternError
from cepheid.lang.stages.conditions import Subtype
from cepheid.lang.stages.pattern import Pattern
from cepheid.lang.taxonomy import make_taxonomy, subtypes

ANY = Pattern.begin("a")


def test_below_a_type_is_all_that_leads_to_it() -> None:
    """A type includes itself and all types below it, once each, also if several paths lead to one."""
    taxonomy = make_taxonomy(
        "type",
        {"visa": "card", "card": ["payment", "plastic"], "transfer": "payment", "gold": ["visa", "card"], "x": []},
    )
    assert subtypes(taxonomy) == {
        "visa": ("visa", "gold"),
        "card": ("card", "visa", "gold"),
        "payment": ("payment", "visa", "card", "transfer", "gold"),
        "plastic": ("plastic", "visa", "card", "gold"),
        "transfer": ("transfer",),
        "gold": ("gold",),
        "x": ("x",),
    }


def test_deep_taxonomies() -> None:
    """The depth of a taxonomy is not limited."""
    taxonomy = make_taxonomy("type", {f"t{n}": f"t{n + 1}" for n in range(2000)})
    assert len(subtypes(taxonomy)["t2000"]) == 2001


@pytest.mark.parametrize(
    ("column", "kinds", "messages"),
    [
        (
            "type",
            {"a": "b", "b": "c", "c": "a"},
            ["types cannot be kinds of each other in a circle: 'a' → 'b' → 'c' → 'a'"],
        ),
        ("type", {"x": "a", "a": ["b", "a"]}, ["types cannot be kinds of each other in a circle: 'a' → 'a'"]),
        (
            "",
            {"a": ["b", "b"], 3: "x", "d": 4, "e": ["", None]},
            [
                "the name of the column that holds the types is expected, got ''",
                "'a' is declared twice as a kind of 'b'",
                "a type's name must be text that is not empty, got 3",
                "'d' must be a kind of a type or of a list of types, which may be empty, got 4",
                "'e' is a kind of a type, whose name must be text that is not empty, got ''",
                "'e' is a kind of a type, whose name must be text that is not empty, got None",
            ],
        ),
        ("type", ["a"], ['types and what they are kinds of are expected, as in {"transfer": "payment"}, got [\'a\']']),
    ],
)
def test_refused_declarations(column: str, kinds: Any, messages: list[str]) -> None:
    """Cycles are named; values that are not text and duplicate declarations are reported together."""
    with pytest.raises(PatternError) as error:
        ANY.taxonomy(column, kinds)
    assert [problem.message for problem in error.value.problems] == messages
    assert {problem.where for problem in error.value.problems} == {"taxonomy"}


def test_subtypes_stand_in_the_order_of_the_calls() -> None:
    """A subtype is one of the stage's conditions, and `or_where` may follow it."""
    pattern = ANY.subtype("x").or_where("y").subtype("z")
    assert [condition.text for condition in pattern.stages[0].conditions] == ["subtype x", "y", "subtype z"]
    assert pattern.stages[0].conditions[0] == Subtype("x")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: ANY.subtype(int),
            "a type's name must be text that is not empty, got type: <class 'int'> (stage 'a', subtype)",
        ),
        (lambda: ANY.subtype(""), "a type's name must be text that is not empty, got str: '' (stage 'a', subtype)"),
        (
            lambda: Pattern.begin(ANY).subtype("x"),
            "subtype: a group has no condition of its own; give the stages in it",
        ),
        (lambda: ANY.taxonomy("t").taxonomy("t"), "taxonomy: the pattern has one already, of column 't'"),
        (
            lambda: ANY.next(ANY.taxonomy("t")),
            "next: within, max_gap, begin_without, skip, taxonomy, with_parameters and knowledge belong to the whole",
        ),
    ],
)
def test_refused_calls(call: Any, message: str) -> None:
    """A type must be text, a group has no subtype, and there is one taxonomy."""
    with pytest.raises(PatternError) as error:
        call()
    assert str(error.value).startswith(message)
