"""Patterns: immutable values, and the fluent interface that makes new ones from them.

The words and their meaning are FlinkCEP's. A pattern is a sequence of stages; each stage has a contiguity (how its
first event follows the stage before), conditions and a quantifier. A stage may be a group: a sequence of stages that is
quantified as one. Names and texts are only collected here; they are checked when a pattern meets a schema
(`cepheid.plan.stages.build`), where all problems are reported at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, NoReturn, SupportsIndex

from cepheid.errors import PatternError, Problem
from cepheid.lang.arguments import pattern_name, shown, stage_name, version_text
from cepheid.lang.calendar import CalendarWindow, parse_calendar
from cepheid.lang.function import Function
from cepheid.lang.known_arguments import known_calls
from cepheid.lang.parameters import GivenValue, Parameter, with_values
from cepheid.lang.pictures.box import Box
from cepheid.lang.pictures.drawn import Drawn, name_advice
from cepheid.lang.semantic import check_knowledge
from cepheid.lang.stages.conditions import Condition, GivenCondition, Subtype, condition_of
from cepheid.lang.stages.parametric import (
    Parametric,
    given_window,
    least_or_parameter,
    length_or_parameter,
    shorter_or_parameter,
    times_or_parameters,
    two_lengths,
)
from cepheid.lang.stages.picture import picture_of
from cepheid.lang.stages.printer import calls_text
from cepheid.lang.taxonomy import Taxonomy, make_taxonomy

if TYPE_CHECKING:
    from cepheid.knowledge.events.mapping import EventMapping
    from cepheid.knowledge.knowledge import Knowledge


class Contiguity(Enum):
    """How an event must follow the one before it."""

    STRICT = "next"
    """Directly: no event of the key lies between them."""
    RELAXED = "followed_by"
    """Events that do not match are skipped (skip till next)."""
    RELAXED_ANY = "followed_by_any"
    """Events that match may be skipped too (skip till any)."""
    NOT_NEXT = "not_next"
    """Takes no event: the directly next event must not match."""
    NOT_FOLLOWED_BY = "not_followed_by"
    """Takes no event: no event may match before the next stage takes its first event. For the last stage, no event may
    match before time is up.
    """

    @property
    def negated(self) -> bool:
        return self in (Contiguity.NOT_NEXT, Contiguity.NOT_FOLLOWED_BY)


class SkipTo(Enum):
    """The event from which partial matches may start if they are to remain once a match is emitted."""

    NO_SKIP = "no_skip"
    NEXT = "to_next"
    PAST_LAST_EVENT = "past_last_event"
    FIRST = "to_first"
    LAST = "to_last"


class _WithAdvice(type):
    """A class that names the member which is meant, for example by FlinkCEP's name."""

    if not TYPE_CHECKING:  # a type checker reports these names itself

        def __getattr__(cls, name: str) -> NoReturn:
            advice = "" if name.startswith("_") else name_advice(name, dir(cls))
            raise AttributeError(f"{cls.__name__} has no {name!r}{advice}", name=name, obj=cls)


@known_calls
@dataclass(frozen=True)
class Skip(metaclass=_WithAdvice):
    """What happens to other partial matches once a match is emitted."""

    to: SkipTo = SkipTo.NO_SKIP
    stage: str | None = None
    """For FIRST and LAST: the stage whose first or last event is meant."""
    error_on_miss: bool = False

    @staticmethod
    def no_skip() -> Skip:
        """Every match is emitted."""
        return Skip()

    @staticmethod
    def to_next() -> Skip:
        """Partial matches with the same start are dropped: one match per start."""
        return Skip(SkipTo.NEXT)

    @staticmethod
    def past_last_event() -> Skip:
        """Partial matches that started at or before the match's last event are dropped."""
        return Skip(SkipTo.PAST_LAST_EVENT)

    @staticmethod
    def to_first(stage: str, *, error_on_miss: bool = False) -> Skip:
        """Partial matches that started before the first event of `stage` are dropped.

        If the match has no such event, none are dropped or, with `error_on_miss`, the detection fails. It also fails if
        that event is the first event of the match itself, as it is impossible to skip to it.
        """
        return Skip(SkipTo.FIRST, stage, error_on_miss)

    @staticmethod
    def to_last(stage: str, *, error_on_miss: bool = False) -> Skip:
        """As `to_first`, but with the last event of `stage`."""
        return Skip(SkipTo.LAST, stage, error_on_miss)


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
    greedy: bool = False
    consecutive: bool = False
    """Inside the loop events follow directly; otherwise non-matching events between them are skipped."""
    combinations: bool = False
    """Inside the loop matching events may be skipped too."""
    longest: bool = False
    window: timedelta | None = None
    """Each event of the loop comes less than this after the previous one."""
    parametric: Parametric = ()
    """The parameters that give `minimum`, `maximum` and `window`."""

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
    conditions: tuple[Condition | Subtype, ...] = ()
    quantifier: Quantifier = field(default_factory=Quantifier)
    until: Condition | None = None
    """An event for which this condition is true ends the loop."""
    window: timedelta | None = None
    """Each of the stage's events comes less than this after the event taken before it. For a `not_followed_by` at the
    end of the pattern: no event may match for this long after that event.
    """
    group: tuple[Stage, ...] = ()
    """For a group, its stages; `name` is then empty and there are no conditions."""
    parametric: Parametric = ()
    """The parameter that gives `window`."""

    @property
    def leaves(self) -> tuple[Stage, ...]:
        """The stage itself or, for a group, all stages in it that are not groups."""
        return tuple(leaf for stage in self.group for leaf in stage.leaves) if self.group else (self,)

    @property
    def parts(self) -> tuple[Stage, ...]:
        """The stage itself and, for a group, all stages and groups in it."""
        return (self, *(part for stage in self.group for part in stage.parts))

    @property
    def label(self) -> str:
        """The stage in messages: its name or, for a group, the names in it."""
        return f"group ({', '.join(leaf.name for leaf in self.leaves)})" if self.group else f"stage {self.name!r}"


@dataclass(frozen=True)
class BeginWithout:
    """Set by `begin_without`: the events that must not come before a match."""

    name: str
    condition: Condition | None
    """None: any event."""
    window: timedelta
    parametric: Parametric = ()
    """The parameter that gives `window`."""

    @property
    def label(self) -> str:
        """The clause in messages."""
        return f"begin_without {self.name!r}"


@known_calls
@dataclass(frozen=True)
class Pattern(Drawn):
    """A sequence of stages. Start with `Pattern.begin(name)`; every call returns a new pattern."""

    stages: tuple[Stage, ...]
    window: timedelta | None = None
    """Set by `within`: from the first event of a match to its last, right end exclusive."""
    calendar: CalendarWindow | None = None
    """Set by `within`, in place of `window`."""
    gap: timedelta | None = None
    """Set by `max_gap`: from each event of a match to the next, right end exclusive."""
    without: BeginWithout | None = None
    """Set by `begin_without`."""
    skip_strategy: Skip = field(default_factory=Skip)
    name: str = "pattern"
    """Part of every match_id, so that the matches of two patterns never have the same id."""
    version: str | None = None
    """For people who store versions of patterns. It is not part of match_id, so a match that two versions find has the
    same id.
    """
    types: Taxonomy | None = None
    """Set by `taxonomy`."""
    parameters: tuple[Parameter, ...] = ()
    """Set by `with_parameters` and by pattern files, each name once."""
    knowledge: Knowledge | None = None
    """Set by `begin`: what semantic filters ask. The types of `subtype` are then its classes."""
    mapping: EventMapping | None = None
    """Set by `begin`: how events are individuals. There if and only if there is knowledge."""
    parametric: Parametric = ()
    """The parameters that give `window` and `gap`."""

    def __repr__(self) -> str:
        return calls_text(self)

    @property
    def is_bounded(self) -> bool:
        """Whether `within` says when a match must have ended."""
        return self.window is not None or self.calendar is not None

    @property
    def picture(self) -> Box:
        """The pattern as boxes, which a notebook shows."""
        return picture_of(self)

    @property
    def leaves(self) -> tuple[Stage, ...]:
        """The stages with names and conditions, also those in groups, in order: stage numbers count these."""
        return tuple(leaf for stage in self.stages for leaf in stage.leaves)

    @property
    def loops_until(self) -> tuple[Stage, ...]:
        """The stages and groups with an `until`, outer ones first: their conditions are numbered after those of the
        leaves.
        """
        return tuple(part for stage in self.stages for part in stage.parts if part.until is not None)

    @property
    def functions(self) -> tuple[tuple[str, Function], ...]:
        """The conditions in Python, each with the label of its stage or of `begin_without`."""
        parts = (part for stage in self.stages for part in stage.parts)
        conditions = [(part.label, condition) for part in parts for condition in (*part.conditions, part.until)]
        if self.without is not None:
            conditions.append((self.without.label, self.without.condition))
        return tuple(
            (label, condition.function)
            for label, condition in conditions
            if isinstance(condition, Condition) and condition.function is not None
        )

    @staticmethod
    def begin(
        stage: str | Pattern,
        *,
        name: str = "pattern",
        version: str | int | None = None,
        knowledge: Knowledge | None = None,
        mapping: EventMapping | None = None,
    ) -> Pattern:
        """Begins a pattern with one stage, a name or a group; any event may start it. For `version` see `named`.

        `knowledge` is what the conditions `semantic(…)` ask, and `mapping` says how events are its individuals; they
        are given together. The types of `subtype` are then classes of the knowledge.
        """
        check_knowledge(knowledge, mapping)
        begun = Pattern((_stage("begin", stage, Contiguity.STRICT),), knowledge=knowledge, mapping=mapping)
        return begun.named(name, version=version)

    def next(self, stage: str | Pattern) -> Pattern:
        """Adds a stage whose first event directly follows the stage before it. A pattern is added as a group."""
        return self._append(stage, Contiguity.STRICT)

    def followed_by(self, stage: str | Pattern) -> Pattern:
        """Adds a stage whose first event is the next one that matches; other events are skipped."""
        return self._append(stage, Contiguity.RELAXED)

    def followed_by_any(self, stage: str | Pattern) -> Pattern:
        """Adds a stage whose first event may be any later one that matches: each gives a match of its own."""
        return self._append(stage, Contiguity.RELAXED_ANY)

    def not_next(self, stage: str) -> Pattern:
        """Adds a stage that takes no event: the event directly after the stage before must not match it."""
        return self._append(stage, Contiguity.NOT_NEXT)

    def not_followed_by(self, stage: str) -> Pattern:
        """Adds a stage that takes no event: no event that matches it may come before the next stage takes its first
        one.

        As the last stage it needs a window: the match is certain when the window has passed without such an event.
        """
        return self._append(stage, Contiguity.NOT_FOLLOWED_BY)

    def where(self, condition: GivenCondition, *, name: str | None = None) -> Pattern:
        """Adds a condition to the last stage, ANDed with those before it.

        `condition` is a SQL expression in Spark's dialect, `semantic(…)`, or a function. In SQL, a plain column belongs
        to the current event, and `stage.column` to the last event that the stage has so far; first, last, count, sum,
        avg, min and max look over all events that it has so far.

        A function has one or two arguments. The first is the event, as a mapping of its columns. The second maps each
        stage's name to the events that the partial match has for that stage so far. The function returns True, False or
        None, which counts as not true. Such a pattern is slower, because it runs in Python. `name` identifies the
        function in messages and when patterns are compared; a function that is defined by `def` does not need one.

        `semantic("…")` asks the pattern's knowledge. In it the variable with the name of this stage is the current
        event, and that with the name of an earlier stage its event, if that stage always has exactly one.
        """
        return self._with_condition(self._condition("where", condition, name))

    def or_where(self, condition: GivenCondition, *, name: str | None = None) -> Pattern:
        """Adds a condition to the last stage, ORed with all those before it."""
        if not self.stages[-1].conditions:
            last = self.stages[-1].label
            raise PatternError(f"or_where needs a where before it: {last} has no condition yet")
        return self._with_condition(replace(self._condition("or_where", condition, name), alternative=True))

    def subtype(self, type_: str) -> Pattern:
        """Restricts the last stage to events of a type or of a type below it, ANDed with the conditions before it.

        The column that `taxonomy` names holds the type of each event; `taxonomy` also says which types are below it.
        """
        if type_ == "" or not isinstance(type_, str):
            hint = 'Name a type as the events do, as in subtype("payment").'
            message = f"a type's name must be text that is not empty, got {shown(type_)}"
            raise PatternError(Problem(message, f"{self.stages[-1].label}, subtype", hint=hint))
        return self._with_condition(Subtype(type_))

    def until(self, condition: GivenCondition, *, name: str | None = None) -> Pattern:
        """Ends the last stage's loop at the first event for which `condition` is true; the loop does not take it."""
        last = self.stages[-1]
        if last.until is not None:
            raise PatternError(f"until: {last.label} has one already")
        return self._with_last(replace(last, until=self._condition("until", condition, name)))

    def one_or_more(self, *, window: timedelta | str | None = None) -> Pattern:
        """The last stage takes one event or more, each less than `window` after the previous one."""
        return self._repeat("one_or_more", Times(1, None), window)

    def times(
        self,
        minimum: SupportsIndex | str,
        maximum: SupportsIndex | str | None = None,
        *,
        window: timedelta | str | None = None,
    ) -> Pattern:
        """The last stage takes exactly `minimum` events or, with `maximum`, between `minimum` and `maximum` events.
        Each comes less than `window` after the previous one. A number may be a parameter, as in `times("$n")`.

        `times(0, n)` is an optional `times(1, n)`, as in FlinkCEP.
        """
        (least, most), parametric = times_or_parameters(minimum, maximum)
        repeated = self._repeat("times", Times(max(least, 1), most), window, parametric)
        return repeated.optional() if least == 0 else repeated

    def times_or_more(self, minimum: SupportsIndex | str, *, window: timedelta | str | None = None) -> Pattern:
        """The last stage takes `minimum` events or more, each less than `window` after the previous one."""
        least, parametric = least_or_parameter(minimum)
        return self._repeat("times_or_more", Times(least, None), window, parametric)

    def optional(self) -> Pattern:
        """The last stage may be absent."""
        return self._with_quantifier(replace(self.stages[-1].quantifier, optional=True))

    def greedy(self) -> Pattern:
        """The last stage takes every event that it can: the next stage does not get events that this one could take."""
        return self._with_quantifier(replace(self.stages[-1].quantifier, greedy=True))

    def allow_combinations(self) -> Pattern:
        """The last stage's loop may skip events that match: every combination of them is a loop."""
        self._check_once("allow_combinations", already=self.stages[-1].quantifier.combinations)
        return self._with_quantifier(replace(self.stages[-1].quantifier, combinations=True))

    def consecutive(self) -> Pattern:
        """The events of the last stage's loop follow each other directly."""
        self._check_once("consecutive", already=self.stages[-1].quantifier.consecutive)
        return self._with_quantifier(replace(self.stages[-1].quantifier, consecutive=True))

    def longest(self) -> Pattern:
        """The loop of the last stage gives one match, when it cannot grow any more, instead of one for every prefix.

        It cannot grow any more when an event breaks it (strict contiguity), the window closes, times(a, b) has reached
        b, or the input is complete. A loop with relaxed contiguity needs `within`, as no event breaks it.
        """
        return self._with_quantifier(replace(self.stages[-1].quantifier, longest=True))

    def within(self, length: timedelta | str) -> Pattern:
        """A match ends less than `length` after it starts. If `within` is called twice, the shorter length holds, and
        there is a warning if that is the former one. A length of this and the other calls may be a parameter, as in
        `within("$w")`.

        It may also follow the calendar of `time_zone`: months, quarters and years ("3 months"), which end at the same
        time of day, or "same day", "same week", "same month", "same quarter" and "same year", which end at midnight.
        """
        calendar = parse_calendar(length)
        if calendar is None and self.calendar is None:
            window, parametric = shorter_or_parameter("within", self, "window", length)
            return replace(self, window=window, parametric=parametric)
        if self.is_bounded:
            raise two_lengths("within", given_window(self), length, "the calendar")
        return replace(self, calendar=calendar)

    def within_previous(self, length: timedelta | str) -> Pattern:
        """Each event of the last stage comes less than `length` after the event taken before it."""
        last = self.stages[-1]
        window, parametric = shorter_or_parameter("within_previous", last, "window", length)
        return self._with_last(replace(last, window=window, parametric=parametric))

    def max_gap(self, length: timedelta | str) -> Pattern:
        """Each event of a match, in whichever stage, comes less than `length` after the one before it.

        Each event that a partial match takes moves its deadline. When the deadline passes, the partial match ends: as a
        match if only a last `not_followed_by` is open, otherwise as a timeout. Unlike `within_previous`, this also
        holds while a loop or an optional stage may be left. If `max_gap` is called twice, the shorter length holds.
        """
        gap, parametric = shorter_or_parameter("max_gap", self, "gap", length)
        return replace(self, gap=gap, parametric=parametric)

    def begin_without(self, name: str, *, within: timedelta | str, where: GivenCondition | None = None) -> Pattern:
        """An event starts a match only if no event that fits `where` came before it, exactly `within` ago or later.

        Of events of the same time, those that come first in the order count as before. The events must be of the same
        key; what came before the input began counts as absent. `name` is for messages; no event is taken under it.

        `where` is a condition as in `where`; without it any event counts. In SQL, a plain column belongs to the earlier
        event, and `stage.column` to the event that starts the match, if `stage` is the first stage.
        """
        if self.without is not None:
            raise PatternError(f"begin_without: the pattern has one already, {self.without.name!r}")
        name = stage_name("begin_without", name)
        condition = None if where is None else condition_of("where", where, None, f"begin_without {name!r}, where")
        return replace(self, without=BeginWithout(name, condition, *length_or_parameter("window", within)))

    def skip(self, strategy: Skip) -> Pattern:
        """Sets what happens to other partial matches once a match is emitted."""
        if not isinstance(strategy, Skip):
            name = getattr(strategy, "__name__", "")
            if name and getattr(Skip, name, None) is strategy:
                stage = "'stage'" if name in ("to_first", "to_last") else ""
                raise PatternError(f"skip: Skip.{name} was not called: write Skip.{name}({stage})")
            allowed = ", ".join(f"Skip.{to.value}()" for to in SkipTo)
            raise PatternError(f"unknown skip strategy {strategy!r}; allowed: {allowed}")
        return replace(self, skip_strategy=strategy)

    def taxonomy(self, column: str, kinds: Mapping[str, str | Sequence[str]] | None = None) -> Pattern:
        """Names the column that holds the type of each event, and the more general types of each type.

        `kinds` maps a type to the type, or list of types, that it is a kind of. An empty list declares a type that is
        not a kind of another. Without `kinds` every type is known, and no type has others below it.
        """
        if self.types is not None:
            raise PatternError(f"taxonomy: the pattern has one already, of column {self.types.column!r}")
        return replace(self, types=make_taxonomy(column, {} if kinds is None else kinds))

    def with_parameters(self, /, **values: GivenValue) -> Pattern:
        """Gives each `$name` in conditions, measures, lengths and counts its value: a number, text, True or False, a
        date, a datetime, or a list of these, which stands for the values of `IN ($name)`: a list, a set or a column of
        a table. The value of a length of time is text such as "12 hours", and that of a count is a whole number.

        A new value replaces the one before. Text stays text whatever is in it. A float becomes a DOUBLE and a Decimal a
        DECIMAL; a datetime becomes a TIMESTAMP if it has a zone, otherwise a TIMESTAMP_NTZ. Values of NumPy and pandas
        are treated as Python's own.
        """
        return replace(self, parameters=with_values(self.parameters, values))

    def named(self, name: str, *, version: str | int | None = None) -> Pattern:
        """The same pattern under another name and, if given, as another version.

        The name is part of every match_id, the version is not: a match that two versions find has the same id.
        """
        return replace(
            self, name=pattern_name(name), version=self.version if version is None else version_text(version)
        )

    def _append(self, stage: str | Pattern, contiguity: Contiguity) -> Pattern:
        return replace(self, stages=(*self.stages, _stage(contiguity.value, stage, contiguity)))

    def _with_last(self, stage: Stage) -> Pattern:
        return replace(self, stages=(*self.stages[:-1], stage))

    def _with_condition(self, condition: Condition | Subtype) -> Pattern:
        last = self.stages[-1]
        if last.group:
            call = "subtype" if isinstance(condition, Subtype) else "or_where" if condition.alternative else "where"
            raise PatternError(f"{call}: a group has no condition of its own; give the stages in it theirs")
        return self._with_last(replace(last, conditions=(*last.conditions, condition)))

    def _with_quantifier(self, quantifier: Quantifier) -> Pattern:
        return self._with_last(replace(self.stages[-1], quantifier=quantifier))

    def _check_once(self, call: str, *, already: bool) -> None:
        if already:
            raise PatternError(f"{call}: {self.stages[-1].label} has it already; leave one of the two calls out")

    def _repeat(self, call: str, times: Times, window: timedelta | str | None, parametric: Parametric = ()) -> Pattern:
        last = self.stages[-1]
        if last.quantifier.times is not None:
            raise PatternError(f"{call}: {last.label} has a quantifier already")
        duration, of_window = (None, ()) if window is None else length_or_parameter("window", window)
        quantifier = replace(last.quantifier, times=times, window=duration, parametric=(*parametric, *of_window))
        return self._with_quantifier(quantifier)

    def _condition(self, call: str, condition: object, name: str | None) -> Condition:
        return condition_of(call, condition, name, f"{self.stages[-1].label}, {call}")


def _stage(call: str, given: str | Pattern, contiguity: Contiguity) -> Stage:
    """A stage with this name or, for a pattern, a group of its stages."""
    if not isinstance(given, Pattern):
        return Stage(stage_name(call, given), contiguity)
    if replace(given, stages=(), name="", version=None) != Pattern((), name=""):
        calls = "within, max_gap, begin_without, skip, taxonomy, with_parameters and knowledge"
        whole = f"{calls} belong to the whole pattern, not to a group in it"
        raise PatternError(f"{call}: {whole}")
    if contiguity.negated:
        raise PatternError(f"{call} takes the name of a stage, not a group")
    return Stage("", contiguity, group=given.stages)
