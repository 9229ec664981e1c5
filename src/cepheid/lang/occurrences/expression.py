"""Expressions of the event algebra as values, built by operators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from cepheid.errors import PatternError
from cepheid.lang.arguments import shown
from cepheid.lang.duration import parse_duration
from cepheid.lang.known_arguments import known_arguments, known_calls
from cepheid.lang.occurrences.variables import plain_condition, variable_name
from cepheid.lang.semantic import SemanticFilter

Condition: TypeAlias = str | SemanticFilter
"""A condition over variables: SQL, or a semantic filter."""


@known_calls
class Occurrence:
    """An expression of the event algebra, which says which sets of events occur together. Made by `event(type)`; every
    operator returns a new expression.
    """

    def __rshift__(self, later: Occurrence) -> Occurrence:
        """`a >> b`: a ends before b starts."""
        return Then(self, _operand(later, ">>"))

    def __and__(self, other: Occurrence) -> Occurrence:
        """`a & b`: both, in any order."""
        return Both(self, _operand(other, "&"))

    def __or__(self, other: Occurrence) -> Occurrence:
        """`a | b`: either of the two."""
        return Either(self, _operand(other, "|"))

    def __sub__(self, negated: Occurrence) -> Occurrence:
        """`a - b`: an a that contains no b, from its start to its end, both included."""
        return Without(self, _operand(negated, "-"))

    def minus_if(self, negated: Occurrence, condition: Condition) -> Occurrence:
        """As `a - b`, but a b counts only if the condition, over the variables of both, is true."""
        return Without(self, _operand(negated, "minus_if"), given_condition(condition))

    def within(self, length: timedelta | str) -> Occurrence:
        """Only occurrences that take no longer than `length` from start to end."""
        return Within(self, parse_duration(length, or_zero=True))

    def plus(self, delay: timedelta | str) -> Occurrence:
        """The instant `delay` after the end of each occurrence: a temporal event."""
        return Delayed(self, parse_duration(delay, or_zero=True))

    def where(self, condition: Condition) -> Occurrence:
        """Only occurrences for which the condition is true: SQL in Spark's dialect over their variables, or a semantic
        filter.
        """
        return Filtered(self, given_condition(condition))

    def named(self, variable: str) -> Occurrence:
        """The same occurrences, bound to `variable`: conditions around them and measures use this name."""
        if isinstance(self, Bound):
            raise PatternError(f"named({variable!r}): this is named {self.variable!r} already; one name is enough")
        return Bound(self, variable_name(variable))


@dataclass(frozen=True)
class Leaf(Occurrence):
    """An event of the type, of a type below it in the taxonomy, or of a restricted type."""

    type: str


@dataclass(frozen=True)
class OfTwo(Occurrence):
    """An operator over two expressions."""

    left: Occurrence
    right: Occurrence


class Both(OfTwo):
    """Both, in any order."""


class Either(OfTwo):
    """Either of the two."""


class Then(OfTwo):
    """The left one ends before the right one starts."""


@dataclass(frozen=True)
class Without(OfTwo):
    condition: Condition | None = None
    """The right occurrence counts only if this holds between the two; None: it always counts."""


@dataclass(frozen=True)
class OfOne(Occurrence):
    """An operator over one expression."""

    of: Occurrence


@dataclass(frozen=True)
class Timed(OfOne):
    length: timedelta


class Within(Timed):
    """Takes no longer than the length."""


class Delayed(Timed):
    """A temporal event, the length after the occurrence."""


@dataclass(frozen=True)
class Bound(OfOne):
    variable: str


@dataclass(frozen=True)
class Filtered(OfOne):
    condition: Condition


def operands(expression: Occurrence) -> tuple[Occurrence, ...]:
    """The expressions that this one is made of, left to right."""
    match expression:
        case OfTwo(left, right):
            return left, right
        case OfOne(of):
            return (of,)
    return ()


def leaf_types(expression: Occurrence) -> list[str]:
    """The types of all leaves, left to right."""
    if isinstance(expression, Leaf):
        return [expression.type]
    return [type_ for operand in operands(expression) for type_ in leaf_types(operand)]


def depth_of(expression: Occurrence) -> int:
    """How many levels of operators and types are nested in the expression."""
    return max(depth for _, depth, _ in _parts(expression))


def has_delays(expression: Occurrence) -> bool:
    """Whether the expression contains temporal events."""
    return any(isinstance(part, Delayed) for part, _, _ in _parts(expression))


def delay_of(expression: Occurrence) -> timedelta:
    """The longest sum of nested delays."""
    return max(delay for _, _, delay in _parts(expression))


def _parts(expression: Occurrence) -> Iterator[tuple[Occurrence, int, timedelta]]:
    """The expression and all expressions in it, each with its depth and the sum of its own delay and the delays around
    it. This is not recursive, because the depth is not limited yet.
    """
    open_ = [(expression, 1, timedelta(0))]
    while open_:
        part, depth, delay = open_.pop()
        if isinstance(part, Delayed):
            delay += min(part.length, timedelta.max - delay)
        yield part, depth, delay
        open_ += [(operand, depth + 1, delay) for operand in operands(part)]


@known_arguments()
def event(type_: str) -> Occurrence:
    """The events of a type and of the types below it in the taxonomy; each event is an occurrence of its own."""
    return Leaf(type_name(type_))


def type_name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise PatternError(f"a type's name must be text that is not empty, got {shown(name)}")
    return name


def given_condition(given: object) -> Condition:
    """The condition as it is stored. PatternError if it is neither SQL nor a semantic filter."""
    return given if isinstance(given, SemanticFilter) else plain_condition(given)


def _operand(given: object, operator: str) -> Occurrence:
    if isinstance(given, Occurrence):
        return given
    raise PatternError(f"{operator} takes an expression such as event('a'), got {shown(given)}")


@dataclass(frozen=True)
class RestrictedType:
    """A declared type: the events of another type for which a condition is true."""

    name: str
    base: str
    condition: Condition
    variable: str | None = None
    """The name of the event in the condition. Column names alone refer to the event, too."""
