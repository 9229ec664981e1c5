"""Several plans over the same events: what a host computes for all of them, with each lifted column only once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeAlias, TypedDict, TypeVar

from cepheid.errors import Problem, in_pattern
from cepheid.events.batch import Schema
from cepheid.lang.function import Function
from cepheid.plan.condition_bits import WORD
from cepheid.plan.conditions.lift import Lifting
from cepheid.plan.conditions.resolve import Shape, shape_of
from cepheid.plan.lifted import Lifted, Measure, OutputName, RowsPer, Slot, slots_of
from cepheid.plan.limits import Limits
from cepheid.plan.pattern_request import PatternRequest, PlanOptions

if TYPE_CHECKING:
    from cepheid.knowledge.knowledge import Knowledge
    from cepheid.knowledge.question import Question

T = TypeVar("T")

Words: TypeAlias = tuple[int, ...]
"""Bits of an event's mask, one number for each word."""


@dataclass(frozen=True)
class ColumnMap:
    """The numbers that a plan's bits and values have among those of all plans."""

    bits: tuple[int, ...]
    values: tuple[int, ...]


class LiftedFor(Protocol):
    """What columns are lifted for: a plan of any kind, or several plans."""

    @property
    def schema(self) -> Schema: ...
    @property
    def columns(self) -> tuple[str, ...]: ...
    @property
    def bits(self) -> tuple[Lifted, ...]: ...
    @property
    def values(self) -> tuple[Lifted, ...]: ...
    @property
    def questions(self) -> tuple[Question, ...]:
        """What has no SQL: columns of answers, which bits and values read by the questions' names."""

    @property
    def functions(self) -> tuple[Function, ...]: ...


class NamedPattern(Protocol):
    """A pattern of any kind."""

    @property
    def name(self) -> str: ...
    @property
    def knowledge(self) -> Knowledge | None: ...


class PatternPlan(LiftedFor, Protocol):
    """The plan of one pattern of any kind."""

    @property
    def pattern(self) -> NamedPattern: ...
    @property
    def placed_functions(self) -> Sequence[tuple[str, Function]]:
        """The functions, each with the place of its condition."""

    @property
    def rows_per(self) -> RowsPer: ...
    @property
    def numbered(self) -> bool: ...
    @property
    def measures(self) -> tuple[Measure, ...] | None:
        """None: the output has the events of a match as they are."""

    @property
    def promoted(self) -> tuple[Measure, ...]:
        """Columns of open partial matches, where these are stored as rows."""

    @property
    def slots(self) -> Mapping[str, Slot]:
        """The inputs of the measures, by the name of their column in the matcher's rows."""

    @property
    def running_slots(self) -> Mapping[str, Slot]:
        """Those of running measures, which each event of a match has."""

    @property
    def computed_times(self) -> Mapping[str, tuple[str, ...]]:
        """Columns of the matcher's rows whose times may differ from the times of all events. For a column of structs,
        the names of the fields that are such times; for a column that is a time itself, none. `detected_at` and
        `deadline` are always such columns and are not listed.
        """

    @property
    def outputs(self) -> tuple[OutputName, ...] | None:
        """None: matches alone."""

    @property
    def limits(self) -> Limits: ...


class PlanParts(TypedDict):
    """The fields that plans of all kinds are given alike."""

    schema: Schema
    bits: tuple[Lifted, ...]
    values: tuple[Lifted, ...]
    outputs: tuple[OutputName, ...] | None
    limits: Limits
    questions: tuple[Question, ...]
    rows_per: RowsPer
    numbered: bool


def plan_parts(schema: Schema, lifting: Lifting, options: PlanOptions, questions: Sequence[Question] = ()) -> PlanParts:
    return PlanParts(
        schema=schema,
        bits=tuple(lifted for _, lifted in lifting.bits.values()),
        values=tuple(lifted for _, lifted in lifting.values.values()),
        outputs=options.outputs,
        limits=options.limits,
        questions=(*questions,),
        rows_per=options.rows_per,
        numbered=options.numbered,
    )


N = TypeVar("N", bound=NamedPattern)


@dataclass(frozen=True)
class PlanOf(Generic[N]):
    """What plans of all kinds begin with: a pattern, and what is lifted for it."""

    pattern: N
    schema: Schema
    bits: tuple[Lifted, ...]
    """Boolean columns, packed into one mask per event: bit i is set if bits[i] is true (not NULL, not false)."""
    values: tuple[Lifted, ...]
    """Columns that scripts and measures read."""
    questions: tuple[Question, ...] = field(default=(), kw_only=True)
    """Columns of answers, which bits and values read."""
    rows_per: RowsPer = field(default="match", kw_only=True)
    numbered: bool = field(default=False, kw_only=True)
    """Whether rows of events have the events' numbers (`NUMBER`) in place of their columns."""


class Measured:
    """The part of a plan that follows from its measures, and from its events."""

    measures: tuple[Measure, ...] | None
    promoted: tuple[Measure, ...] = ()

    @property
    def slots(self) -> dict[str, Slot]:
        """The slots of all measures, by name."""
        return slots_of(self.measures or ())

    @property
    def running_slots(self) -> dict[str, Slot]:
        """Those that each event of a match has."""
        return {name: slot for name, slot in self.slots.items() if name in self._running}

    @property
    def match_slots(self) -> dict[str, Slot]:
        """Those of measures over whole matches."""
        return {name: slot for name, slot in self.slots.items() if name not in self._running}

    @property
    def _running(self) -> frozenset[str]:
        return frozenset().union(*(measure.running for measure in self.measures or ()))

    @property
    def computed_times(self) -> dict[str, tuple[str, ...]]:
        """Empty, because a match starts and ends with events."""
        return {}


class InSql:
    """The part of a plan whose conditions are all SQL: it has no functions."""

    functions: ClassVar[tuple[Function, ...]] = ()
    placed_functions: ClassVar[tuple[tuple[str, Function], ...]] = ()


P = TypeVar("P", bound=PatternPlan)


@dataclass(frozen=True)
class PlanSet(Generic[P]):
    """Plans of one kind and one schema, with the same columns, outputs and limits; the patterns' names differ."""

    each: tuple[P, ...]
    named: bool
    """Whether the patterns were given by name. If so, errors name the pattern."""
    bits: tuple[Lifted, ...]
    """The bits of all plans, with equal bits once. A word of the mask has WORD of them."""
    values: tuple[Lifted, ...]
    places: tuple[ColumnMap, ...]
    """One for each plan."""

    @property
    def only(self) -> P:
        """The only plan of a set of one."""
        (plan,) = self.each
        return plan

    @property
    def schema(self) -> Schema:
        return self.each[0].schema

    @property
    def columns(self) -> tuple[str, ...]:
        return self.each[0].columns

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions of all plans, each once."""
        return tuple({one.name: one for plan in self.each for one in plan.questions}.values())

    @property
    def functions(self) -> tuple[Function, ...]:
        """The conditions in Python of all plans."""
        return tuple(function for plan in self.each for function in plan.functions)

    def words(self, place: ColumnMap, bits: int) -> Words:
        """The bits of the plan at `place`, as bits of the mask of all plans."""
        wanted = [bit for number, bit in enumerate(place.bits) if bits >> number & 1]
        count = len(words_of(self.bits))
        return tuple(sum(1 << bit % WORD for bit in wanted if bit // WORD == word) for word in range(count))


def relevant_to_any(relevant_to: Sequence[Words | None]) -> Words | None:
    """Bits without which an event matters to no pattern: it must have one of them. None: every event matters."""
    known = [words for words in relevant_to if words is not None]
    if len(known) < len(relevant_to):
        return None
    return tuple(reduce(or_, word) for word in zip(*known, strict=True))


def distinct(plans: Sequence[LiftedFor]) -> tuple[tuple[Lifted, ...], tuple[Lifted, ...], tuple[ColumnMap, ...]]:
    """The bits and values of all plans, with equal ones once; and the numbers that each plan's bits and values have
    there.
    """
    bits, values = _Distinct(), _Distinct()
    places = tuple(ColumnMap(bits.add(plan.bits), values.add(plan.values)) for plan in plans)
    return tuple(bits.lifted), tuple(values.lifted), places


def words_of(bits: Sequence[T]) -> list[Sequence[T]]:
    """The bits in groups that fit a word of the mask; at least one group."""
    return [bits[start : start + WORD] for start in range(0, max(1, len(bits)), WORD)]


def plans_or_problems(
    patterns: Iterable[PatternRequest[N]], build: Callable[[PatternRequest[N], int], P | list[Problem]], *, named: bool
) -> tuple[list[P], list[Problem]]:
    """The plans that `build` makes for the patterns, with slots numbered across all of them; and all problems, which
    name their pattern if the patterns are `named`. `build` gets the number of the pattern's first slot.
    """
    plans, problems = list[P](), list[Problem]()
    for one in patterns:
        name = one.pattern.name
        with in_pattern(name, named=named):
            built = build(one, sum(len(plan.slots) for plan in plans))
        if isinstance(built, list):
            problems += [problem.of_pattern(name) if named else problem for problem in built]
        else:
            plans.append(built)
    return plans, problems


class _Distinct:
    """Lifted columns, without duplicates."""

    def __init__(self) -> None:
        self.lifted: list[Lifted] = []
        self._known: dict[Shape, int] = {}

    def add(self, lifted: Iterable[Lifted]) -> tuple[int, ...]:
        """Adds the columns, and returns the number of each."""
        return tuple(self._number(one) for one in lifted)

    def _number(self, one: Lifted) -> int:
        number = self._known.setdefault(shape_of(one.expression), len(self.lifted))
        if number == len(self.lifted):
            self.lifted.append(one)
        return number
