"""Where the variables of an expression are bound and known, and which variables each condition may use."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from cepheid.errors import Problem
from cepheid.lang.occurrences import expression as algebra
from cepheid.lang.occurrences.expression import Condition, Occurrence
from cepheid.plan.occurrences.plan import Variable


@dataclass(frozen=True)
class Written:
    """A condition as written in the expression, with the numbers of the variables that it may use."""

    condition: Condition
    visible: frozenset[int]
    of_minus: bool
    certain: frozenset[str]
    """The variables that are bound whenever it is asked."""


@dataclass
class Scopes:
    """The variables in the order in which they are bound, and the conditions, inner ones first, left to right."""

    each: list[Variable] = field(default_factory=list)
    conditions: list[Written] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        return [variable.name for variable in self.each]

    def number(self, variable: str) -> int:
        return [name.lower() for name in self.names].index(variable.lower())


def scopes_of(expression: Occurrence, problems: list[Problem]) -> Scopes:
    """The variables and conditions of the expression; a variable that is bound twice is a problem."""
    scopes = Scopes()
    known = _walk(expression, scopes, problems)
    scopes.each = [replace(each, in_output=number in known) for number, each in enumerate(scopes.each)]
    return scopes


def _walk(expression: Occurrence, scopes: Scopes, problems: list[Problem]) -> frozenset[int]:
    """The numbers of the variables that are known outside the expression."""
    match expression:
        case algebra.Both(left, right) | algebra.Either(left, right) | algebra.Then(left, right):
            return _walk(left, scopes, problems) | _walk(right, scopes, problems)
        case algebra.Without(left, right, condition):
            outside = _walk(left, scopes, problems)
            visible = outside | _walk(right, scopes, problems)
            if condition is not None:
                scopes.conditions.append(
                    Written(condition, visible, of_minus=True, certain=certain(left) | certain(right))
                )
            return outside
        case algebra.Timed(of):
            return _walk(of, scopes, problems)
        case algebra.Bound(of, variable):
            inside = _walk(of, scopes, problems)
            if variable.lower() in (name.lower() for name in scopes.names):
                hint = "A variable is bound once, also on the right of minus: choose another name for one of them."
                problems.append(Problem(f"the variable {variable!r} is bound twice", hint=hint))
                return inside
            scopes.each.append(Variable(variable, is_event(of), in_output=True))
            return inside | {len(scopes.each) - 1}
        case algebra.Filtered(of, condition):
            visible = _walk(of, scopes, problems)
            scopes.conditions.append(Written(condition, visible, of_minus=False, certain=certain(of)))
            return visible
    return frozenset()


def is_event(expression: Occurrence) -> bool:
    """Whether each occurrence of the expression is always one event."""
    match expression:
        case algebra.Leaf():
            return True
        case algebra.Either(left, right):
            return is_event(left) and is_event(right)
        case algebra.Without(of) | algebra.Within(of) | algebra.Bound(of) | algebra.Filtered(of):
            return is_event(of)
    return False


def certain(expression: Occurrence) -> frozenset[str]:
    """The variables that every occurrence of the expression binds."""
    match expression:
        case algebra.Both(left, right) | algebra.Then(left, right):
            return certain(left) | certain(right)
        case algebra.Either(left, right):
            return certain(left) & certain(right)
        case algebra.Without(left):
            return certain(left)
        case algebra.Bound(of, variable):
            return certain(of) | {variable}
        case algebra.Timed(of) | algebra.Filtered(of):
            return certain(of)
    return frozenset()
