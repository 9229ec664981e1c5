"""`cepheid explain`: what a pattern file looks for, and how it will run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from cepheid.cli import options as o
from cepheid.cli.failure import failures_reported, print_json

if TYPE_CHECKING:
    from cepheid.cli.pattern_file import PatternFile
    from cepheid.lang.intervals.pattern import IntervalPattern
    from cepheid.lang.occurrences.expression import OccurrencePattern
    from cepheid.lang.stages.pattern import Pattern


@o.spread
def explain(
    pattern: o.PatternPath,
    *,
    events: o.OptionalEvents = None,
    time: o.OptionalTime = None,
    wanted: o.Wanted,
    reading: o.Reading,
    bounds: o.Bounds,
    mermaid: Annotated[
        bool, typer.Option("--mermaid", help="Print the automaton, or the tree, as a Mermaid diagram only.")
    ] = False,
    as_json: o.AsJson = False,
) -> None:
    """Tell what a pattern looks for and how: its stages, conditions, window and skip strategy, and its automaton.

    With --events also the plan: which columns the host's SQL engine computes, what is left to scripts, all types, and
    which events are dropped before anything else.
    """
    options, parameters = o.EventOptions.of(events, time, wanted, reading, bounds), o.parameters_from(wanted.parameter)
    with failures_reported(as_json=as_json):
        from cepheid.cli.pattern_file import open_pattern, plan_for, warnings_of
        from cepheid.lang.occurrences.expression import OccurrencePattern
        from cepheid.lang.stages.pattern import Pattern

        opened = open_pattern(pattern, parameters)
        plan = plan_for(opened, options) if events else None
        if plan is None:
            _check(opened, options.measures)
        if isinstance(opened.pattern, Pattern):
            told = _stages(opened.pattern, plan)
        elif isinstance(opened.pattern, OccurrencePattern):
            told = _occurrences(opened.pattern, plan)
        else:
            told = _intervals(opened.pattern, plan)
        if as_json:
            warnings = warnings_of(opened.pattern, plan)
            print_json({"ok": True, "exit_code": 0, "plan": told.text, "mermaid": told.diagram, "warnings": warnings})
        elif mermaid and told.diagram is None:
            message = "how events are joined is drawn for their columns: name a file of them with --events"
            raise typer.BadParameter(message, param_hint="--mermaid")
        else:
            sys.stdout.write(f"{told.diagram}\n" if mermaid else told.text)


class _Explained(NamedTuple):
    text: str
    diagram: str | None
    """None where it needs events."""


def _check(opened: PatternFile, measures: Mapping[str, str] | None) -> None:
    """Raises PatternError with what is wrong whatever the events and the values of parameters are."""
    from cepheid.cli.pattern_file import problems_without_events
    from cepheid.errors import PatternError
    from cepheid.plan.conditions.parameters import with_nulls

    if problems := problems_without_events(replace(opened, pattern=with_nulls(opened.pattern)), measures):
        with opened.problems_located():
            raise PatternError(problems)


def _stages(pattern: Pattern, plan: object) -> _Explained:
    from cepheid.compile.stages.compiled import compile_plan, relevance_text
    from cepheid.compile.stages.diagram import automaton_mermaid, automaton_text
    from cepheid.compile.stages.representation import form_text
    from cepheid.plan.stages.explain import explain_pattern, explain_plan
    from cepheid.plan.stages.plan import Plan

    diagram = automaton_mermaid(pattern)
    if isinstance(plan, Plan):
        compiled = compile_plan(plan)
        text = f"{explain_plan(compiled.plan)}{relevance_text(compiled)}\n{form_text(compiled)}\n"
    else:
        text = explain_pattern(pattern)
    return _Explained(f"{text}\n{automaton_text(pattern)}\n", diagram)


def _occurrences(pattern: OccurrencePattern, plan: object) -> _Explained:
    from cepheid.plan.occurrences.explain import (
        explain_occurrence_plan,
        explain_occurrences,
        occurrence_drawing,
        occurrence_mermaid,
    )
    from cepheid.plan.occurrences.plan import OccurrencePlan

    if isinstance(plan, OccurrencePlan):
        return _Explained(explain_occurrence_plan(plan), occurrence_mermaid(plan))
    return _Explained(explain_occurrences(pattern), occurrence_drawing(pattern))


def _intervals(pattern: IntervalPattern, plan: object) -> _Explained:
    from cepheid.plan.intervals.explain import explain_interval_pattern, explain_intervals, join_diagram
    from cepheid.plan.intervals.growth import interval_warnings
    from cepheid.plan.intervals.plan import IntervalPlan

    if isinstance(plan, IntervalPlan):
        return _Explained(f"{explain_intervals(plan, warnings=interval_warnings(pattern))}\n", join_diagram(plan))
    return _Explained(f"{explain_interval_pattern(pattern)}\n", None)
