"""Several plans over the same events: what a host computes for all of them, each lifted column once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

from cepheid.errors import Problem, in_pattern
from cepheid.events.batch import Schema
from cepheid.lang.function import Function
from cepheid.plan.conditions.resolve import Shape, shape_of
from cepheid.plan.conditions.types import sql_name
from cepheid.plan.engine import SqlEngine
from cepheid.plan.limits import Limits
from cepheid.plan.stages.build import Asked, Shared, plan_or_problems, refusal, schema_faults
from cepheid.plan.stages.plan import WORD, Lifted, Measure, OutputName, Plan, Slot

T = TypeVar("T")


@dataclass(frozen=True)
class Place:
    """Where a plan's bits and values stand among those of all plans."""

    bits: tuple[int, ...]
    values: tuple[int, ...]


class LiftedFor(Protocol):
    """What columns are lifted for: a plan of any kind, or several."""

    @property
    def schema(self) -> Schema: ...
    @property
    def columns(self) -> tuple[str, ...]: ...
    @property
    def bits(self) -> tuple[Lifted, ...]: ...
    @property
    def values(self) -> tuple[Lifted, ...]: ...
    @property
    def functions(self) -> tuple[Function, ...]: ...


P = TypeVar("P", bound=LiftedFor)


@dataclass(frozen=True)
class Together(Generic[P]):
    """Plans of one kind and one schema, with the same columns, outputs and limits; the names of their patterns
    differ.
    """

    each: tuple[P, ...]
    named: bool
    """Whether the patterns were given by name: then errors say whose they are."""
    bits: tuple[Lifted, ...]
    """Those of all plans, equal ones once; WORD of them are in a word of the mask."""
    values: tuple[Lifted, ...]
    places: tuple[Place, ...]
    """One for each plan."""

    @property
    def only(self) -> P:
        """The plan, where there is one."""
        (plan,) = self.each
        return plan

    @property
    def schema(self) -> Schema:
        return self.each[0].schema

    @property
    def columns(self) -> tuple[str, ...]:
        return self.each[0].columns


@dataclass(frozen=True)
class Plans(Together[Plan]):
    """Those of patterns of stages."""

    @staticmethod
    def of(each: Sequence[Plan], *, named: bool = False) -> Plans:
        return Plans(tuple(each), named, *distinct(each))

    @property
    def functions(self) -> tuple[Function, ...]:
        return tuple(function for plan in self.each for function in plan.functions)


def distinct(plans: Sequence[LiftedFor]) -> tuple[tuple[Lifted, ...], tuple[Lifted, ...], tuple[Place, ...]]:
    """The bits and values of all plans, equal ones once; and where those of each stand among them."""
    bits, values = _Distinct(), _Distinct()
    places = tuple(Place(bits.add(plan.bits), values.add(plan.values)) for plan in plans)
    return tuple(bits.lifted), tuple(values.lifted), places


def naming(plans: Plans, plan: Plan) -> AbstractContextManager[None]:
    """Around what is done for one of the plans: errors say of which pattern they are, if it is one of several."""
    return in_pattern(plan.pattern.name, named=plans.named)


def words_of(bits: Sequence[T]) -> list[Sequence[T]]:
    """As many at once as a word of the mask has; at least one word."""
    return [bits[start : start + WORD] for start in range(0, max(1, len(bits)), WORD)]


def build_plans(
    asked: Sequence[Asked],
    schema: Schema,
    engine: SqlEngine,
    *,
    named: bool = False,
    columns: Sequence[str] | None = None,
    outputs: tuple[OutputName, ...] | None = None,
    limits: Limits | None = None,
) -> Plans:
    """The plans of all patterns; `named` as in Plans.

    Raises:
        as `build_plan` does, with the problems of all patterns; and PatternError where measures of one name have not
        one type.
    """
    shared = Shared(tuple(schema.columns.names if columns is None else columns), outputs, limits or Limits())
    faults = schema_faults(schema, shared)
    build = partial(plan_or_problems, schema=schema, engine=engine, shared=shared, sound=not faults)
    plans, problems = plans_or_problems([(one.pattern.name, partial(build, one)) for one in asked], named=named)
    problems += _disagreements(plans)
    if problems or faults:
        raise refusal(problems, faults)
    return Plans.of(plans, named=named)


class _WithSlots(Protocol):
    @property
    def slots(self) -> Mapping[str, Slot]: ...


S_co = TypeVar("S_co", bound=_WithSlots, covariant=True)


class _Build(Protocol[S_co]):
    def __call__(self, *, first_slot: int) -> S_co | list[Problem]: ...


def plans_or_problems(each: Iterable[tuple[str, _Build[S_co]]], *, named: bool) -> tuple[list[S_co], list[Problem]]:
    """What is built for the patterns of these names, slots numbered through; and all problems, which say of which
    pattern they are if those are `named`.
    """
    plans, problems = list[S_co](), list[Problem]()
    for name, build in each:
        with in_pattern(name, named=named):
            built = build(first_slot=sum(len(plan.slots) for plan in plans))
        if isinstance(built, list):
            problems += [problem.of_pattern(name) if named else problem for problem in built]
        else:
            plans.append(built)
    return plans, problems


class _Distinct:
    """Lifted columns, equal ones once."""

    def __init__(self) -> None:
        self.lifted: list[Lifted] = []
        self._known: dict[Shape, int] = {}

    def add(self, lifted: Iterable[Lifted]) -> tuple[int, ...]:
        """Their numbers among all."""
        return tuple(self._number(one) for one in lifted)

    def _number(self, one: Lifted) -> int:
        number = self._known.setdefault(shape_of(one.expression), len(self.lifted))
        if number == len(self.lifted):
            self.lifted.append(one)
        return number


def _disagreements(plans: Sequence[Plan]) -> Iterator[Problem]:
    """A measure is one column of the output, whichever patterns have it."""
    known: dict[str, tuple[str, Measure]] = {}
    for plan in plans:
        for measure in plan.measures or ():
            pattern, first = known.setdefault(measure.name.lower(), (plan.pattern.name, measure))
            if first.name != measure.name:
                message = f"in pattern {pattern!r} it is written {first.name!r}, and case does not count"
                yield _of_measure(plan, measure, message, "Write them alike, or choose another name.")
            elif sql_name(first.type) != sql_name(measure.type):
                message = f"it is {sql_name(measure.type)} here and {sql_name(first.type)} in pattern {pattern!r}"
                hint = "A column has one type: cast one of them, or choose another name."
                yield _of_measure(plan, measure, message, hint)


def _of_measure(plan: Plan, measure: Measure, message: str, hint: str) -> Problem:
    return Problem(message, f"measure {measure.name!r}", hint=hint).of_pattern(plan.pattern.name)
