"""Patterns: immutable values, and the fluent interface that makes new ones from them.

The words and their meaning are FlinkCEP's. A pattern is a sequence of stages; each stage has a contiguity (how its
first event follows the stage before), conditions and a quantifier. Names and texts are only collected here; that they
mean something is checked when a pattern meets a schema (`cepheid.plan.build`), where all problems are reported at
once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum

from cepheid.errors import PatternError, Problem
from cepheid.lang.duration import parse_duration


class Contiguity(Enum):
    """How an event must follow the one before it."""

    STRICT = "next"
    """Directly: no event of the key lies between."""
    RELAXED = "followed_by"
    """Events that do not match are passed over (skip till next)."""
    RELAXED_ANY = "followed_by_any"
    """Events that match may be passed over too (skip till any)."""


class Skip(Enum):
    """What happens to other partial matches once a match is emitted."""

    NO_SKIP = "no_skip"
    PAST_LAST_EVENT = "past_last_event"

    @staticmethod
    def no_skip() -> Skip:
        """Every match is emitted."""
        return Skip.NO_SKIP

    @staticmethod
    def past_last_event() -> Skip:
        """Once a match is emitted, partial matches that started at or before its last event are dropped."""
        return Skip.PAST_LAST_EVENT


@dataclass(frozen=True)
class Condition:
    """One call of `where` or `or_where`: SQL text in Spark's dialect."""

    text: str
    alternative: bool = False
    """True: OR with all conditions before it; False: AND."""


@dataclass(frozen=True)
class Times:
    """How many events a stage takes: from `minimum` (at least 1) to `maximum` (None: no upper bound)."""

    minimum: int
    maximum: int | None


@dataclass(frozen=True)
class Quantifier:
    """How often a stage occurs. The order of the calls that set it does not matter."""

    times: Times | None = None
    """None: no quantifier was given, the stage takes one event."""
    optional: bool = False
    consecutive: bool = False
    """Inside the loop events follow directly; otherwise non-matching events between them are passed over."""
    longest: bool = False

    @property
    def minimum(self) -> int:
        return self.times.minimum if self.times else 1

    @property
    def maximum(self) -> int | None:
        return self.times.maximum if self.times else 1

    @property
    def loops(self) -> bool:
        """Whether the stage can hold several events."""
        return self.maximum != 1


@dataclass(frozen=True)
class Stage:
    """One named step of a pattern."""

    name: str
    contiguity: Contiguity = Contiguity.STRICT
    conditions: tuple[Condition, ...] = ()
    quantifier: Quantifier = field(default_factory=Quantifier)


@dataclass(frozen=True)
class Pattern:
    """A sequence of stages. Start with `Pattern.begin(name)`; every call returns a new pattern."""

    stages: tuple[Stage, ...]
    window: timedelta | None = None
    """Set by `within`: from the first event of a match to its last, right end exclusive."""
    skip_strategy: Skip = Skip.NO_SKIP
    name: str = "pattern"
    """Part of every match_id, so that the matches of two patterns never have the same id."""

    @staticmethod
    def begin(stage: str, *, name: str = "pattern") -> Pattern:
        """A pattern of one stage, `stage`; any event may start it."""
        return Pattern((Stage(_stage_name("begin", stage)),), name=_pattern_name(name))

    def next(self, stage: str) -> Pattern:
        """Adds a stage whose first event directly follows the stage before it."""
        return self._append(stage, Contiguity.STRICT)

    def followed_by(self, stage: str) -> Pattern:
        """Adds a stage whose first event is the next one that matches; others are passed over."""
        return self._append(stage, Contiguity.RELAXED)

    def followed_by_any(self, stage: str) -> Pattern:
        """Adds a stage whose first event may be any later one that matches: each gives a match of its own."""
        return self._append(stage, Contiguity.RELAXED_ANY)

    def where(self, condition: str) -> Pattern:
        """Adds a condition to the last stage, ANDed with those before it.

        `condition` is a SQL expression in Spark's dialect. A plain column is the current event's, `stage.column` the
        last event's that the stage has so far; first, last, count, sum, avg, min and max look over the events it has
        so far.
        """
        return self._with_condition(Condition(self._text("where", condition)))

    def or_where(self, condition: str) -> Pattern:
        """Adds a condition to the last stage, ORed with all those before it."""
        if not self.stages[-1].conditions:
            raise PatternError(f"or_where needs a where before it: stage {self.stages[-1].name!r} has no condition yet")
        return self._with_condition(Condition(self._text("or_where", condition), alternative=True))

    def one_or_more(self) -> Pattern:
        """The last stage takes one event or more."""
        return self._repeat("one_or_more", Times(1, None))

    def times(self, minimum: int, maximum: int | None = None) -> Pattern:
        """The last stage takes exactly `minimum` events or, with `maximum`, between `minimum` and `maximum`.

        `times(0, n)` is an optional `times(1, n)`, as in FlinkCEP.
        """
        check_times(minimum, maximum)
        most = minimum if maximum is None else maximum
        repeated = self._repeat("times", Times(max(minimum, 1), most))
        return repeated.optional() if minimum == 0 else repeated

    def optional(self) -> Pattern:
        """The last stage may be absent."""
        return self._with_quantifier(replace(self.stages[-1].quantifier, optional=True))

    def consecutive(self) -> Pattern:
        """The events of the last stage's loop follow each other directly."""
        return self._with_quantifier(replace(self.stages[-1].quantifier, consecutive=True))

    def longest(self) -> Pattern:
        """The loop of the last stage gives one match, when it cannot grow any more, instead of one for every prefix.

        It cannot grow when an event breaks it (strict contiguity), the window closes, times(a, b) has reached b, or the
        input is complete. A loop with relaxed contiguity needs `within`, as no event breaks it.
        """
        return self._with_quantifier(replace(self.stages[-1].quantifier, longest=True))

    def within(self, length: timedelta | str) -> Pattern:
        """A match ends less than `length` after it starts; given twice, the shorter holds."""
        duration = parse_duration(length)
        return replace(self, window=duration if self.window is None else min(duration, self.window))

    def skip(self, strategy: Skip) -> Pattern:
        """Sets what happens to other partial matches once a match is emitted."""
        if not isinstance(strategy, Skip):
            allowed = ", ".join(f"Skip.{s.value}()" for s in Skip)
            raise PatternError(f"unknown skip strategy {strategy!r}; allowed: {allowed}")
        return replace(self, skip_strategy=strategy)

    def named(self, name: str) -> Pattern:
        """The same pattern under another name."""
        return replace(self, name=_pattern_name(name))

    def _append(self, stage: str, contiguity: Contiguity) -> Pattern:
        return replace(self, stages=(*self.stages, Stage(_stage_name(contiguity.value, stage), contiguity)))

    def _with_last(self, stage: Stage) -> Pattern:
        return replace(self, stages=(*self.stages[:-1], stage))

    def _with_condition(self, condition: Condition) -> Pattern:
        last = self.stages[-1]
        return self._with_last(replace(last, conditions=(*last.conditions, condition)))

    def _with_quantifier(self, quantifier: Quantifier) -> Pattern:
        return self._with_last(replace(self.stages[-1], quantifier=quantifier))

    def _repeat(self, call: str, times: Times) -> Pattern:
        last = self.stages[-1]
        if last.quantifier.times is not None:
            raise PatternError(f"{call}: stage {last.name!r} has a quantifier already")
        return self._with_quantifier(replace(last.quantifier, times=times))

    def _text(self, call: str, condition: str) -> str:
        where = f"stage {self.stages[-1].name!r}, {call}"
        if not isinstance(condition, str):
            hint = f'Write it as text, as in {call}("price > 100").'
            raise PatternError(Problem(f"a condition is SQL text, got {_given(condition)}", where, hint=hint))
        if not condition.strip():
            hint = "Leave the call out: a stage without conditions takes any event."
            raise PatternError(Problem("a condition must not be empty", where, hint=hint))
        return condition


def check_times(minimum: int, maximum: int | None) -> None:
    """Raises PatternError where these are no arguments of `Pattern.times`."""
    for count in (minimum,) if maximum is None else (minimum, maximum):
        if isinstance(count, bool) or not isinstance(count, int):
            raise PatternError(f"times takes whole numbers, got {count!r}; write times(3) or times(2, 5)")
    most = minimum if maximum is None else maximum
    if minimum < 0 or most < max(minimum, 1):
        raise PatternError(
            f"times({minimum}{'' if maximum is None else f', {maximum}'}) cannot be: "
            "write times(n) with n at least 1, or times(a, b) with 0 <= a <= b and b at least 1"
        )


def _stage_name(call: str, name: str) -> str:
    hint = f'Name the stage, as in {call}("late").'
    if not isinstance(name, str):
        raise PatternError(Problem(f"a stage's name is text, got {_given(name)}", call, hint=hint))
    if not name:
        raise PatternError(Problem("a stage's name must not be empty", call, hint=hint))
    return name


def _pattern_name(name: str) -> str:
    if not isinstance(name, str):
        raise PatternError(f"a pattern's name is text, got {_given(name)}")
    return name


def _given(value: object) -> str:
    return "None" if value is None else f"{type(value).__name__}: {value!r}"
