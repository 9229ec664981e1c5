"""The conditions of stages: SQL, semantic filters, functions and subtypes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from cepheid.errors import PatternError, Problem
from cepheid.lang.arguments import shown
from cepheid.lang.function import Function, make_function
from cepheid.lang.semantic import SemanticFilter

GivenCondition: TypeAlias = str | SemanticFilter | Callable[..., object]
"""SQL text, `semantic(…)`, or a function."""


@dataclass(frozen=True)
class Condition:
    """One call of `where`, `or_where` or `until`: SQL text in Spark's dialect, a semantic filter, or a function."""

    text: str
    """For a function, its name."""
    alternative: bool = False
    """True: OR with all conditions before it; False: AND."""
    function: Function | None = None
    is_semantic: bool = False
    """Whether the text is a semantic filter."""


@dataclass(frozen=True)
class Subtype:
    """One call of `subtype`, which is ANDed with all conditions before it."""

    type: str

    @property
    def text(self) -> str:
        """The name of the condition in messages."""
        return f"subtype {self.type}"


def condition_of(call: str, given: object, name: str | None, where: str) -> Condition:
    """The condition that is given at the place `where`, by the argument or method `call`.

    Raises:
        PatternError: it is not a condition, or has a name and is not a function.
    """
    if callable(given):
        function = make_function(given, name, where)
        return Condition(function.name, function=function)
    if name is not None:
        hint = "Leave name out: the text says what the condition is."
        what = "a semantic filter" if isinstance(given, SemanticFilter) else "SQL text"
        raise PatternError(Problem(f"a name is for a function, not for {what}", where, hint=hint))
    if isinstance(given, SemanticFilter):
        return Condition(given.text, is_semantic=True)
    if not isinstance(given, str):
        hint = f'Write it as text, as in {call}("price > 100").'
        message = f"a condition is SQL text, semantic(…) or a function, got {shown(given)}"
        raise PatternError(Problem(message, where, hint=hint))
    if not given.strip():
        hint = "Leave the call out: a stage without conditions takes any event."
        raise PatternError(Problem("a condition must not be empty", where, hint=hint))
    return Condition(given)
