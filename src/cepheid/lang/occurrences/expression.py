"""Occurrences and the algebra over them: immutable values, and the operators that make new ones from them.

After Vaculín and Sycara's algebra for semantic monitoring, whose operators are Carlson and Lisper's. An occurrence is a
set of events, among them perhaps temporal ones such as "ten seconds after that", with a start and an end; an expression
says which occurrences there are. As with patterns of stages, names and texts are only collected here; that they mean
something is checked when a pattern meets a schema (`cepheid.plan.occurrences.build`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from cepheid.errors import PatternError
from cepheid.lang.arguments import pattern_name, shown
from cepheid.lang.duration import parse_duration
from cepheid.lang.occurrences.variables import plain_condition, variable_name
from cepheid.lang.parameters import Parameter, ParameterValue, with_values
from cepheid.lang.taxonomy import Taxonomy, make_taxonomy

if TYPE_CHECKING:
    import numpy as np


class Occurrence:
    """An expression: which sets of events occur together. Made by `event(type)`; every operator gives a new one."""

    def __rshift__(self, later: Occurrence) -> Occurrence:
        """`a >> b`: a ends before b starts."""
        return Then(self, _operand(later, ">>"))

    def __and__(self, other: Occurrence) -> Occurrence:
        """`a & b`: both, in any order."""
        return Both(self, _operand(other, "&"))

    def __or__(self, other: Occurrence) -> Occurrence:
        """`a | b`: any of the two."""
        return Either(self, _operand(other, "|"))

    def __sub__(self, negated: Occurrence) -> Occurrence:
        """`a - b`: an a that no b lies in, from its start to its end, both included."""
        return Without(self, _operand(negated, "-"))

    def minus_if(self, negated: Occurrence, condition: str) -> Occurrence:
        """As `a - b`, but only a b for which the condition over the variables of both holds is looked at."""
        return Without(self, _operand(negated, "minus_if"), plain_condition(condition))

    def within(self, length: timedelta | str) -> Occurrence:
        """Those that take no longer than `length` from start to end."""
        return Within(self, parse_duration(length, or_zero=True))

    def plus(self, delay: timedelta | str) -> Occurrence:
        """The instant `delay` behind the end of each: a temporal event."""
        return Delayed(self, parse_duration(delay, or_zero=True))

    def where(self, condition: str) -> Occurrence:
        """Those for whose variables the condition, SQL in Spark's dialect, is true."""
        return Filtered(self, plain_condition(condition))

    def named(self, variable: str) -> Occurrence:
        """The same; conditions around it and measures know the occurrence as `variable`."""
        if isinstance(self, Bound):
            raise PatternError(f"named({variable!r}): this is named {self.variable!r} already; one name is enough")
        return Bound(variable_name(variable), self)


@dataclass(frozen=True)
class Leaf(Occurrence):
    """An event of the type, of one below it in the taxonomy, or of a restricted type."""

    type: str


@dataclass(frozen=True)
class Both(Occurrence):
    left: Occurrence
    right: Occurrence


@dataclass(frozen=True)
class Either(Occurrence):
    left: Occurrence
    right: Occurrence


@dataclass(frozen=True)
class Then(Occurrence):
    left: Occurrence
    right: Occurrence


@dataclass(frozen=True)
class Without(Occurrence):
    left: Occurrence
    right: Occurrence
    condition: str | None = None
    """What must hold of the two for the right one to count; None: it always does."""


@dataclass(frozen=True)
class Within(Occurrence):
    of: Occurrence
    length: timedelta


@dataclass(frozen=True)
class Delayed(Occurrence):
    of: Occurrence
    delay: timedelta


@dataclass(frozen=True)
class Bound(Occurrence):
    variable: str
    of: Occurrence


@dataclass(frozen=True)
class Filtered(Occurrence):
    of: Occurrence
    condition: str


OfTwo: TypeAlias = Both | Either | Then | Without
"""Operators over two expressions."""


def operands(expression: Occurrence) -> tuple[Occurrence, ...]:
    """The expressions that this one is made of, left to right."""
    match expression:
        case Both(left, right) | Either(left, right) | Then(left, right) | Without(left, right):
            return left, right
        case Within(of=of) | Delayed(of=of) | Bound(of=of) | Filtered(of=of):
            return (of,)
    return ()


def depth_of(expression: Occurrence) -> int:
    """How many operators and types are within each other."""
    return max(depth for _, depth, _ in _parts(expression))


def has_delays(expression: Occurrence) -> bool:
    """Whether there are temporal events in it."""
    return any(isinstance(part, Delayed) for part, _, _ in _parts(expression))


def delay_of(expression: Occurrence) -> timedelta:
    """The longest that delays within each other take together."""
    return max(delay for _, _, delay in _parts(expression))


def _parts(expression: Occurrence) -> Iterator[tuple[Occurrence, int, timedelta]]:
    """All expressions that it is made of, how deep they are, and how long their delay and those around them take
    together; found without recursion, as that needs a bound.
    """
    open_ = [(expression, 1, timedelta(0))]
    while open_:
        part, depth, delay = open_.pop()
        if isinstance(part, Delayed):
            delay += min(part.delay, timedelta.max - delay)
        yield part, depth, delay
        open_ += [(operand, depth + 1, delay) for operand in operands(part)]


def event(type_: str) -> Occurrence:
    """The events of a type, and of those below it in the taxonomy, each an occurrence of its own."""
    return Leaf(_type_name(type_))


class Policy(Enum):
    """Which of the occurrences of a pattern are given."""

    UNRESTRICTED = "unrestricted"
    """All."""
    RECENT = "recent"
    """Of those that end at one time one, of the latest start."""
    SNOOP_RECENT = "snoop_recent"
    CHRONICLE = "chronicle"
    CONTINUOUS = "continuous"
    CUMULATIVE = "cumulative"
    """Snoop's contexts: what operators keep of the occurrences that they wait with, and what they use up."""

    @property
    def is_context(self) -> bool:
        return self not in (Policy.UNRESTRICTED, Policy.RECENT)


@dataclass(frozen=True)
class RestrictedType:
    """A type of its own: the events of another one for which a condition is true."""

    name: str
    base: str
    condition: str
    variable: str | None = None
    """What the condition may call the event; its columns alone are the event's, too."""


@dataclass(frozen=True)
class OccurrencePattern:
    """An expression and how it is looked for. Start with `OccurrencePattern.of`; every call returns a new pattern."""

    expression: Occurrence
    name: str = "pattern"
    """Part of every match_id, so that the matches of two patterns never have the same id."""
    chosen: Policy | None = None
    """Set by `policy`. None: all occurrences of a finite input."""
    types: Taxonomy | None = None
    """Set by `taxonomy`."""
    restricted: tuple[RestrictedType, ...] = ()
    """Set by `restrict`, or declared in the text."""
    parameters: tuple[Parameter, ...] = ()
    """Set by `with_parameters` and by pattern files, each name once."""
    version: str | None = None
    """For those who keep patterns: not part of match_id."""

    @staticmethod
    def of(expression: Occurrence | str) -> OccurrencePattern:
        """The pattern of an expression, or of its text in the notation of `cepheid.lang.occurrences.parser`.

        Raises:
            PatternError: the text is none; with the place.
        """
        if isinstance(expression, str):
            from cepheid.lang.occurrences.parser import parse_occurrences

            return parse_occurrences(expression)
        if not isinstance(expression, Occurrence):
            raise PatternError(
                f"an expression such as event('a') >> event('b'), or its text, is expected, got {shown(expression)}"
            )
        return OccurrencePattern(expression)

    def named(self, name: str) -> OccurrencePattern:
        return replace(self, name=pattern_name(name))

    def policy(self, policy: Policy | str) -> OccurrencePattern:
        """Which occurrences are given: a `Policy`, or its name."""
        known = [one.value for one in Policy]
        if isinstance(policy, str) and policy in known:
            policy = Policy(policy)
        if not isinstance(policy, Policy):
            raise PatternError(f"policy: {policy!r} is not known; allowed are {', '.join(map(repr, known))}")
        return replace(self, chosen=policy)

    def taxonomy(self, column: str, kinds: Mapping[str, str | Sequence[str]] | None = None) -> OccurrencePattern:
        """The column that holds the type of each event and, of each type, what it is a kind of."""
        return replace(self, types=make_taxonomy(column, kinds or {}))

    def with_parameters(self, /, **values: ParameterValue | np.generic) -> OccurrencePattern:
        """Gives each `$name` in conditions and measures its value, as `Pattern.with_parameters` does."""
        return replace(self, parameters=with_values(self.parameters, values))

    def restrict(self, name: str, base: str, condition: str, *, variable: str | None = None) -> OccurrencePattern:
        """Declares a restricted type: `name` are the events of `base` for which `condition` is true."""
        made = RestrictedType(
            _type_name(name),
            _type_name(base),
            plain_condition(condition),
            None if variable is None else variable_name(variable),
        )
        return replace(self, restricted=(*self.restricted, made))


def _type_name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise PatternError(f"a type is named by text that is not empty, got {shown(name)}")
    return name


def _operand(given: object, operator: str) -> Occurrence:
    if isinstance(given, Occurrence):
        return given
    raise PatternError(f"{operator} takes an expression such as event('a'), got {shown(given)}")
