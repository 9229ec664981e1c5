"""The plans of several patterns of stages over the same events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cepheid.errors import Problem
from cepheid.events.batch import Schema
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.conditions.types import sql_name
from cepheid.plan.engine import SqlEngine
from cepheid.plan.lifted import Measure
from cepheid.plan.pattern_request import PatternRequest, PlanOptions
from cepheid.plan.plan_set import PlanSet, distinct, plans_or_problems
from cepheid.plan.problems import refusal, schema_faults
from cepheid.plan.stages.build import plan_or_problems
from cepheid.plan.stages.plan import Plan


@dataclass(frozen=True)
class Plans(PlanSet[Plan]):
    """The plans of patterns of stages."""

    @staticmethod
    def of(each: Sequence[Plan], *, named: bool = False) -> Plans:
        return Plans(tuple(each), named, *distinct(each))


def build_plans(
    patterns: Sequence[PatternRequest[Pattern]], schema: Schema, engine: SqlEngine, options: PlanOptions
) -> Plans:
    """The plans of all patterns; for `options.named` see Plans.

    Raises:
        as `build_plan`, with the problems of all patterns; also PatternError if measures of one name have different
        types.
    """
    faults = schema_faults(schema, options)
    plans, problems = plans_or_problems(
        patterns,
        lambda one, first_slot: plan_or_problems(one, schema, engine, options, sound=not faults, first_slot=first_slot),
        named=options.named,
    )
    problems += _disagreements(plans)
    if problems or faults:
        raise refusal(problems, faults)
    return Plans.of(plans, named=options.named)


def _disagreements(plans: Sequence[Plan]) -> Iterator[Problem]:
    """Problems of measures that have one name and, in several patterns, different spellings or types."""
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
