"""The lengths and counts of a pattern with the values of their parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TypeVar

from cepheid.errors import PatternError, Problem
from cepheid.lang.arguments import times_of, whole_number
from cepheid.lang.calendar import CalendarWindow, parse_calendar
from cepheid.lang.duration import parse_duration
from cepheid.lang.parameters import Parameter, ParameterValue
from cepheid.lang.stages.parametric import LENGTH_PLACEHOLDER, PatternPart, given_counts, parameter_of
from cepheid.lang.stages.pattern import BeginWithout, Pattern, Quantifier, Stage, Times
from cepheid.plan.conditions.parameters import Parameters

T = TypeVar("T")


def as_given(pattern: Pattern) -> Pattern:
    """The same without reporting problems, for texts about a pattern."""
    return with_values(pattern, Parameters(pattern.parameters), [])


def with_values(pattern: Pattern, parameters: Parameters, problems: list[Problem]) -> Pattern:
    """The pattern with the values of the parameters in its lengths and counts, which remain marked as parametric.
    Placeholders remain for parameters without a valid value, whose problems are added.
    """
    values = _Values({one.name: one for one in pattern.parameters}, parameters, problems)
    window, calendar = values.window(pattern)
    pattern = replace(
        pattern,
        window=window,
        calendar=calendar,
        gap=values.length(pattern, "gap", pattern.gap, "max_gap"),
        without=None if pattern.without is None else values.without(pattern.without),
    )
    values.placeholder = pattern.window or LENGTH_PLACEHOLDER
    return replace(pattern, stages=tuple(map(values.stage, pattern.stages)))


@dataclass
class _Values:
    """The values of parameters, as lengths and as counts."""

    known: dict[str, Parameter]
    parameters: Parameters
    problems: list[Problem]
    placeholder: timedelta = field(default=LENGTH_PLACEHOLDER)
    """In place of an unknown length of a stage, so that it is not longer than that of the pattern."""

    def stage(self, stage: Stage) -> Stage:
        return replace(
            stage,
            window=self.length(stage, "window", stage.window, stage.label),
            quantifier=self._quantifier(stage.quantifier, stage.label),
            group=tuple(map(self.stage, stage.group)),
        )

    def without(self, without: BeginWithout) -> BeginWithout:
        window = self.length(without, "window", without.window, without.label)
        assert window is not None
        return replace(without, window=window)

    def window(self, pattern: Pattern) -> tuple[timedelta | None, CalendarWindow | None]:
        """The window of the whole pattern: a length of time, or one by the calendar."""
        name = parameter_of(pattern, "window")
        if name is None:
            return pattern.window, pattern.calendar
        value = self._value(name, lambda given: parse_calendar(given) or _length(given), "within") or self.placeholder
        return (None, value) if isinstance(value, CalendarWindow) else (value, None)

    def length(self, part: PatternPart, field_: str, given: timedelta | None, where: str) -> timedelta | None:
        """The field of the part."""
        name = parameter_of(part, field_)
        return given if name is None else self._value(name, _length, where) or self.placeholder

    def _quantifier(self, quantifier: Quantifier, where: str) -> Quantifier:
        quantifier = replace(quantifier, window=self.length(quantifier, "window", quantifier.window, where))
        if quantifier.times is None or not any(isinstance(count, str) for count in given_counts(quantifier)):
            return quantifier
        given = quantifier.times
        names = parameter_of(quantifier, "minimum"), parameter_of(quantifier, "maximum")
        least = given.minimum if names[0] is None else self._value(names[0], _count, where)
        if given.maximum is None:
            most = None
        elif names[1] == names[0]:
            most = least
        else:
            most = given.maximum if names[1] is None else self._value(names[1], _count, where)
        if least is None or (most is None and given.maximum is not None):
            return quantifier  # without a value
        return self._with_times(quantifier, least, most, where)

    def _with_times(self, quantifier: Quantifier, least: int, most: int | None, where: str) -> Quantifier:
        """As `Pattern.times` and `times_or_more`: none or more is one or more that may be absent."""
        try:
            times_of(least, max(least, 1) if most is None else most)
        except PatternError as error:
            self.problems += [replace(problem, where=where) for problem in error.problems]
            return quantifier
        optional = quantifier.optional or least == 0
        return replace(quantifier, times=Times(max(least, 1), most), optional=optional)

    def _value(self, name: str, read: Callable[[ParameterValue], T], where: str) -> T | None:
        """The value that `read` makes of the parameter's; None if it has none, or none that is valid."""
        problem = self.parameters.use(name, where)
        if problem is not None:
            self.problems.append(problem)
        parameter = self.known.get(name)
        if parameter is None or parameter.value is None:
            return None
        try:
            return read(parameter.value)
        except PatternError as error:
            self.problems += [
                replace(one, message=f"parameter {name!r}: {one.message}", where=where) for one in error.problems
            ]
            return None


def _length(value: ParameterValue) -> timedelta:
    return parse_duration(value)


def _count(value: ParameterValue) -> int:
    count = whole_number(value)
    if count is None or count < 0:
        raise PatternError(f"a number of events is a whole number, got {value!r}")
    return count
