"""Where the variables of an expression are bound and known, and which of them each condition may name."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from cepheid.errors import Problem
from cepheid.lang.occurrences.expression import (
    Both,
    Bound,
    Delayed,
    Either,
    Filtered,
    Leaf,
    Occurrence,
    Then,
    Within,
    Without,
)


@dataclass(frozen=True)
class Scope:
    """A variable."""

    name: str
    is_event: bool
    """Whether it is sure to be one event."""
    in_output: bool
    """Whether it is known outside of the expression."""


@dataclass(frozen=True)
class Written:
    """A condition as it stands in the expression, and the numbers of the variables that it may name."""

    text: str
    visible: frozenset[int]
    of_minus: bool


@dataclass
class Scopes:
    """The variables in the order in which they are bound, and the conditions, inner ones first, left to right."""

    each: list[Scope] = field(default_factory=list)
    conditions: list[Written] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        return [scope.name for scope in self.each]

    def number(self, variable: str) -> int:
        return [name.lower() for name in self.names].index(variable.lower())


def scopes_of(expression: Occurrence, problems: list[Problem]) -> Scopes:
    """The variables and conditions; that a variable is bound twice is a problem."""
    scopes = Scopes()
    known = _walk(expression, scopes, problems)
    scopes.each = [replace(scope, in_output=number in known) for number, scope in enumerate(scopes.each)]
    return scopes


def _walk(expression: Occurrence, scopes: Scopes, problems: list[Problem]) -> frozenset[int]:
    """The numbers of the variables that are known outside of the expression."""
    match expression:
        case Both(left, right) | Either(left, right) | Then(left, right):
            return _walk(left, scopes, problems) | _walk(right, scopes, problems)
        case Without(left, right, condition):
            outside = _walk(left, scopes, problems)
            visible = outside | _walk(right, scopes, problems)
            if condition is not None:
                scopes.conditions.append(Written(condition, visible, of_minus=True))
            return outside
        case Within(of=of) | Delayed(of=of):
            return _walk(of, scopes, problems)
        case Bound(variable, of):
            inside = _walk(of, scopes, problems)
            if variable.lower() in (name.lower() for name in scopes.names):
                hint = "A variable is bound once, also in what minus takes away: choose another name for one of them."
                problems.append(Problem(f"the variable {variable!r} is bound twice", hint=hint))
                return inside
            scopes.each.append(Scope(variable, is_event(of), in_output=True))
            return inside | {len(scopes.each) - 1}
        case Filtered(of, condition):
            visible = _walk(of, scopes, problems)
            scopes.conditions.append(Written(condition, visible, of_minus=False))
            return visible
    return frozenset()


def is_event(expression: Occurrence) -> bool:
    """Whether each of its occurrences is sure to be one event."""
    match expression:
        case Leaf():
            return True
        case Either(left, right):
            return is_event(left) and is_event(right)
        case Without(left=of) | Within(of=of) | Bound(of=of) | Filtered(of=of):
            return is_event(of)
    return False
