"""Functions as conditions of patterns: their names, their arguments, and where they are refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from cepheid import Pattern, PatternError, pattern_to_document, pattern_to_yaml
from cepheid.lang.stages.document import pattern_form
from cepheid.plan.stages.build import check_pattern

ANY = Pattern.begin("a")


def is_big(event: Any) -> bool:
    return bool(event["n"] > 100)


def rises(event: Any, matched: Any, by: int = 0) -> bool:
    return bool(event["n"] > matched["a"][-1]["n"] + by)


class Rule:
    def holds(self, event: Any) -> bool:
        return bool(event)

    def __call__(self, event: Any) -> bool:
        return bool(event)


def named(pattern: Pattern) -> list[tuple[str, str, bool]]:
    return [(label, function.name, function.iterative) for label, function in pattern.functions]


def test_a_function_is_known_by_its_own_name() -> None:
    """The name is that of the definition; a method's has its class, too; a nested function has only its own."""

    def within(event: Any) -> bool:
        return bool(event)

    pattern = ANY.where(is_big).where(rises).or_where(Rule().holds).one_or_more().until(within)
    assert named(pattern) == [
        ("stage 'a'", "is_big", False),
        ("stage 'a'", "rises", True),
        ("stage 'a'", "Rule.holds", False),
        ("stage 'a'", "within", False),
    ]


def test_a_function_without_a_name_is_given_one() -> None:
    """Lambdas, partials and callable objects have no name of their own, so one must be given."""
    pattern = ANY.where(lambda _: True, name="any").where(partial(rises, by=2), name="rises by 2")
    assert named(pattern.where(Rule(), name="rule")) == [
        ("stage 'a'", "any", False),
        ("stage 'a'", "rises by 2", True),
        ("stage 'a'", "rule", False),
    ]


def test_functions_of_groups_are_found() -> None:
    """They are listed in the order of the stages, with the `until` of a group."""
    group = Pattern.begin("a").where(is_big).next("b").where(rises)
    pattern = Pattern.begin(group).one_or_more().until(Rule.holds)  # type: ignore[arg-type]
    assert [name for _, name, _ in named(pattern)] == ["Rule.holds", "is_big", "rises"]


NAMELESS = "a function needs a name, which identifies it when patterns are compared; got {} (stage 'a', {})\n"
GIVE = 'Define it with def, or write where(f, name="dearer").'
UNCALLABLE = (
    "function {} must take the event alone, or the event and what has matched so far (stage 'a', where)\n"
    "Write def f(event) or def f(event, matched); give other parameters a default."
)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ANY.where(lambda _: True), NAMELESS.format("a lambda", "where") + GIVE),
        (lambda: ANY.where(partial(rises, by=2)), NAMELESS.format("a partial", "where") + GIVE),
        (lambda: ANY.until(Rule()), NAMELESS.format("a Rule", "until") + GIVE),
        (lambda: ANY.where(is_big, name=" "), NAMELESS.format("name=' '", "where") + GIVE),
        (lambda: ANY.where(lambda: True, name="none"), UNCALLABLE.format("none")),
        (lambda: ANY.where(lambda _a, _b, _c: True, name="three"), UNCALLABLE.format("three")),
        (lambda: ANY.where(lambda _, *, _by: True, name="by"), UNCALLABLE.format("by")),
        (lambda: ANY.where(lambda *_: True, name="all"), UNCALLABLE.format("all")),
        (lambda: ANY.where(dict), UNCALLABLE.format("dict")),
        (
            lambda: ANY.where("n > 1", name="one"),
            (
                "a name is for a function, not for SQL text (stage 'a', where)\n"
                "Leave name out: the text says what the condition is."
            ),
        ),
    ],
)
def test_what_is_refused(make: Callable[[], Pattern], message: str) -> None:
    """A function that has no unique name, or cannot be called with the arguments, is refused where it is given."""
    with pytest.raises(PatternError) as caught:
        make()
    assert str(caught.value) == message


def test_two_functions_have_two_names() -> None:
    """One function may stand in several stages; two functions of one name would make two patterns look the same."""
    pattern = ANY.where(is_big).next("b").where(is_big)
    assert check_pattern(pattern) == []
    (problem,) = check_pattern(pattern.next("c").where(lambda _: True, name="is_big"))
    assert str(problem) == (
        "two functions are named 'is_big' (stage 'c')\nGive one of them another name: where(f, name=\"is_big 2\")."
    )


def test_pattern_files_have_no_functions() -> None:
    """All functions that cannot be written are reported."""
    pattern = ANY.where(is_big).next("b").where("n > 1").one_or_more().until(rises)
    for write in (pattern_to_document, pattern_to_yaml):
        with pytest.raises(PatternError) as caught:
            write(pattern)
        assert str(caught.value) == (
            "function is_big cannot be written to a pattern file (stage 'a')\n"
            "Write the condition in SQL, or keep the pattern in Python.\n"
            "function rises cannot be written to a pattern file (stage 'b')\n"
            "Write the condition in SQL, or keep the pattern in Python."
        )


def test_names_stand_for_functions_where_patterns_are_compared() -> None:
    """Two patterns have equal forms if their functions have the same names; a function's form differs from that of SQL
    text.
    """
    pattern = ANY.where(is_big).or_where(rises).one_or_more().until(Rule.holds)  # type: ignore[arg-type]
    assert pattern_form(pattern)["stages"] == [
        {
            "begin": "a",
            "where": [{"function": "is_big"}, {"or": {"function": "rises"}}],
            "one_or_more": True,
            "until": {"function": "Rule.holds"},
        }
    ]
    assert pattern_form(ANY.where("is_big")) != pattern_form(ANY.where(is_big))
    assert pattern_form(ANY.where("n > 1")) == pattern_to_document(ANY.where("n > 1"))


def test_matched_may_have_a_default() -> None:
    """A parameter named `matched` receives the matched events, whether it has a default or not."""

    def has_matched(event: Any, matched: Any = None) -> bool:
        return matched is not None and bool(event)

    function = ANY.where(has_matched).stages[0].conditions[0].function
    assert function is not None
    assert function.iterative
